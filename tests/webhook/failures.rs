//! Webhooks that are away, late, not trusted, or answer nonsense: the failure policy decides.

use std::time::Duration;

use pellucid::sandbox::{Clock, Config};
use serde_json::{Value, json};

use crate::webhook::fake::{Fake, patching, response};
use crate::webhook::fixture::{Ca, Cluster, PODS, bundle, pod, until};

/// Asserts that a failing webhook refuses a pod with these words, and lets it pass under the policy Ignore.
async fn fails(cluster: &Cluster, config: Value, words: &str) {
    for kind in ["Validating", "Mutating"] {
        cluster.register(kind, "fails", &json!({"clientConfig": config})).await.done();
        let said = cluster.post(PODS, &pod("p")).await;
        let start = "Internal error occurred: failed calling webhook \"fails.test.example\": ";
        let is_it = said.code == 500 && said.message().starts_with(start) && said.message().contains(words);
        assert!(is_it, "{kind}: {}: {}", said.code, said.message());
        let path = format!(
            "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/fails",
            kind.to_lowercase()
        );
        let ignore = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
        cluster.ask(http::Method::PATCH, &path, "application/json-patch+json", &ignore).await.done();
        cluster.post(PODS, &pod("p")).await.done();
        cluster.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await;
        cluster.delete(&path).await.done();
        cluster.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await;
    }
}

#[tokio::test]
async fn the_failure_policy_decides_whatever_is_wrong() {
    let (ca, other) = (Ca::new(), Ca::new());
    let fake = Fake::start(&ca, |path, review| match path.split('?').next() {
        Some("/500") => (500, "broken".to_owned()),
        Some("/404") => (404, String::new()),
        Some("/text") => (200, "no JSON".to_owned()),
        Some("/kind") => (200, json!({"kind": "Status", "apiVersion": "v1"}).to_string()),
        Some("/empty") => {
            (200, json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}).to_string())
        }
        Some("/uid") => {
            let mut body: Value =
                serde_json::from_str(&response(review, json!({"allowed": true})).1).unwrap();
            body["response"]["uid"] = "another".into();
            (200, body.to_string())
        }
        _ => response(review, json!({"allowed": true, "patch": "W10="})),
    })
    .await;
    let cluster = Cluster::start(Config::default()).await;
    let at = |path: &str| json!({"url": fake.url(path), "caBundle": bundle(&ca)});
    let text = |pem: &str| json!(k8s_openapi::ByteString(pem.as_bytes().to_vec()));
    fails(&cluster, at("/500"), "an error on the server (\"broken\") has prevented the request").await;
    fails(&cluster, at("/404"), "the server could not find the requested resource").await;
    fails(&cluster, at("/text"), "received invalid webhook response: expected").await;
    fails(&cluster, at("/kind"), "Kind=AdmissionReview, got v1, Kind=Status").await;
    fails(&cluster, at("/empty"), "webhook response was absent").await;
    fails(&cluster, at("/uid"), "got \"another\"").await;
    fails(&cluster, at("/patch"), "response.patch but not response.patchType").await;
    fails(&cluster, json!({"url": fake.url("/"), "caBundle": bundle(&other)}), "certificate").await;
    fails(&cluster, json!({"url": fake.url("/"), "caBundle": text("x")}), "unable to load root").await;
    // Nobody listens on a port that was just given up.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = json!({"url": format!("https://127.0.0.1:{port}/"), "caBundle": bundle(&ca)});
    fails(&cluster, away, "refused").await;
    let service = json!({"service": {"namespace": "default", "name": "fake"}, "caBundle": bundle(&ca)});
    fails(&cluster, service, "Post \"https://fake.default.svc:443\": service \"fake\" not found").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_answer_is_none() {
    let ca = Ca::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (clock, port) =
        (Clock::manual("2026-01-01T00:00:00Z".parse().unwrap()), listener.local_addr().unwrap().port());
    let cluster = Cluster::start(Config { clock: clock.clone(), ..Config::default() }).await;
    let config = json!({
        "timeoutSeconds": 3, "clientConfig": {"url": format!("https://127.0.0.1:{port}/late"), "caBundle": bundle(&ca)}
    });
    cluster.register("Validating", "late", &config).await.done();
    let object = pod("p");
    let asked = cluster.post(PODS, &object);
    let time = async {
        let (_stream, _) = listener.accept().await.unwrap();
        clock.advance(Duration::from_secs(3));
        std::future::pending::<()>().await;
    };
    let said = tokio::select! { said = asked => said, () = time => unreachable!() };
    let words = format!("Post \"https://127.0.0.1:{port}/late?timeout=3s\": context deadline exceeded");
    assert!(said.code == 500 && said.message().ends_with(&words), "{}", said.message());
}

#[tokio::test]
async fn a_service_stands_for_a_port_of_this_machine() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |_, review| response(review, json!({"allowed": true}))).await;
    let port = fake.address.port();
    let cluster = Cluster::start(Config::default()).await;
    let service = |target: Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "fake"},
            "spec": {"selector": {"app": "server"}, "ports": [{"port": 8443, "targetPort": target}]}})
    };
    let services = "/api/v1/namespaces/default/services";
    cluster.post(services, &service(json!(port))).await.done();
    let mut server = pod("server");
    server["spec"]["containers"][0]["ports"] = json!([{"name": "https", "containerPort": port}]);
    cluster.post(PODS, &server).await.done();
    let at = json!({"namespace": "default", "name": "fake", "port": 8443, "path": "check"});
    let config = json!({"clientConfig": {"service": at, "caBundle": bundle(&ca)}});
    cluster.register("Validating", "service", &config).await.done();
    cluster.post(PODS, &pod("p")).await.done();
    let named = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": "https"}]);
    let path = format!("{services}/fake");
    cluster.ask(http::Method::PATCH, &path, "application/json-patch+json", &named).await.done();
    cluster.post(PODS, &pod("q")).await.done();
    assert_eq!(fake.on("/check").len(), 2);
}

#[tokio::test]
async fn a_delete_cannot_be_patched_and_a_validating_webhook_patches_nothing() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |_, review| patching(review, &json!([]))).await;
    let cluster = Cluster::start(Config::default()).await;
    cluster.post(PODS, &pod("p")).await.done();
    let config = json!({"clientConfig": {"url": fake.url("/"), "caBundle": bundle(&ca)}});
    cluster.register("Validating", "v", &config).await.done();
    let said = cluster.post(PODS, &pod("q")).await;
    assert!(
        said.code == 500 && said.message().contains("received invalid webhook response"),
        "{}",
        said.message()
    );
    cluster.unregister("v").await;
    cluster.register("Mutating", "m", &config).await.done();
    let said = cluster.delete(&format!("{PODS}/p")).await;
    let words = "admission webhook \"m.test.example\" attempted to modify the object, which is not supported for this operation";
    assert!(said.code == 500 && said.message().ends_with(words), "{}", said.message());
    until("the pod is still there", || async { cluster.get(&format!("{PODS}/p")).await["kind"] == "Pod" })
        .await;
}
