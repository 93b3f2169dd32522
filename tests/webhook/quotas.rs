//! `pellucid webhook` behind the sandbox's API: what is filled in, and every rule refused with its message.

use std::path::PathBuf;

use pellucid::app::{clock, instance::version};
use pellucid::http::{Certificate, ClientCa, Tls};
use pellucid::kubernetes::Connection;
use pellucid::sandbox::Config;
use pellucid::webhook::{Gates, MUTATE_QUOTA, VALIDATE_POD, VALIDATE_QUOTA, Webhook, WebhookConfig};
use serde_json::{Value, json};

use crate::common::kubeconfig;
use crate::common::process::Process;
use crate::webhook::fixture::{Ca, Cluster, PODS, bundle, pod, until};

const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/kube-system/elasticquotas";
pub(crate) const PREFIX: &str = "quota.scheduling.koordinator.sh/";

/// A cluster that asks `pellucid webhook` about quotas and pods.
struct Guarded {
    cluster: Cluster,
    webhook: Webhook,
    _folder: tempfile::TempDir,
}

/// Makes an authority, and the files of a certificate of it for 127.0.0.1.
fn certificate() -> (Ca, tempfile::TempDir, [PathBuf; 2]) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (ca, folder) = (Ca::new(), tempfile::tempdir().unwrap());
    let files = ["tls.crt", "tls.key"].map(|name| folder.path().join(name));
    let pem = ca.sign("webhook", &["127.0.0.1"]);
    std::fs::write(&files[0], pem.0).unwrap();
    std::fs::write(&files[1], pem.1).unwrap();
    (ca, folder, files)
}

/// Starts a cluster that knows quotas.
async fn with_quotas(objects: Vec<Value>) -> Cluster {
    let definition = pellucid::sandbox::definition(pellucid_api::definitions::koordinator::ELASTIC_QUOTAS);
    let objects = [vec![definition], objects].concat();
    Cluster::start(Config { objects, kubelet: None, ..Config::default() }).await
}

/// Has a cluster ask what serves at this address, `https://ADDRESS`, about quotas and pods.
async fn register(cluster: &Cluster, address: &str, ca: &Ca) {
    let quotas = json!([{"operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": ["scheduling.sigs.k8s.io"],
        "apiVersions": ["*"], "resources": ["elasticquotas"]}]);
    let pods = json!([{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    for (kind, name, path, rules) in [
        ("Mutating", "mutate", MUTATE_QUOTA, &quotas),
        ("Validating", "validate", VALIDATE_QUOTA, &quotas),
        ("Validating", "pods", VALIDATE_POD, &pods),
    ] {
        let url = format!("{address}{path}");
        let config = json!({"clientConfig": {"url": url, "caBundle": bundle(ca)}, "rules": rules});
        cluster.register(kind, name, &config).await.done();
    }
    // Until the caches are filled, every review says so.
    let is_ready = || async {
        let probe = quota("probe", json!({}), json!({}), json!({}));
        cluster.post(&format!("{QUOTAS}?dryRun=All"), &probe).await.code == 201
    };
    until("the webhook is ready", is_ready).await;
}

async fn guarded(objects: Vec<Value>) -> Guarded {
    let (ca, folder, [certificate, key]) = certificate();
    let cluster = with_quotas(objects).await;
    let connection =
        Connection::with_config(cluster.sandbox.kube_config(), "test", std::time::Duration::from_secs(20));
    let webhook = Webhook::start(WebhookConfig {
        connection: connection.await.unwrap(),
        listen: ([127, 0, 0, 1], 0).into(),
        tls: Tls::new(Certificate::Files { certificate, key }, ClientCa::default()).unwrap(),
        gates: Gates::default(),
        clock: clock::system(),
        version: version(""),
    })
    .await
    .unwrap();
    register(&cluster, &format!("https://{}", webhook.address), &ca).await;
    Guarded { cluster, webhook, _folder: folder }
}

pub(crate) fn quota(name: &str, labels: Value, annotations: Value, spec: Value) -> Value {
    let prefixed = |map: Value| -> Value {
        let map = map.as_object().cloned().unwrap_or_default();
        map.into_iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect()
    };
    json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "kube-system", "labels": prefixed(labels), "annotations": prefixed(annotations)},
        "spec": spec
    })
}

/// org (parent; min 20, max 40) has a (min 8) and b (min 6); solo has a pod.
fn tree() -> Vec<Value> {
    let amounts = |min: i64, max: i64| json!({"min": {"cpu": min}, "max": {"cpu": max}});
    let mut member = pod("member");
    member["metadata"]["labels"][format!("{PREFIX}name")] = "solo".into();
    member["metadata"]["labels"][format!("{PREFIX}preemptible")] = "false".into();
    vec![
        quota("org", json!({"is-parent": "true", "tree-id": "t"}), json!({}), amounts(20, 40)),
        quota("a", json!({"parent": "org", "tree-id": "t"}), json!({}), amounts(8, 30)),
        quota(
            "b",
            json!({"parent": "org", "tree-id": "t"}),
            json!({"namespaces": "[\"ns-b\"]"}),
            amounts(6, 30),
        ),
        quota("solo", json!({}), json!({}), amounts(1, 2)),
        member,
    ]
}

impl Guarded {
    /// Asserts that a write is refused by a webhook with these words.
    #[track_caller]
    fn refused(&self, said: &crate::webhook::fixture::Said, webhook: &str, words: &str) {
        let expected = format!("admission webhook \"{webhook}.test.example\" denied the request: {words}");
        let expected = expected.replace("Q/", PREFIX);
        assert_eq!((said.code, said.message()), (403, &*expected));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_filled_in() {
    let guarded = guarded(Vec::new()).await;
    let cluster = &guarded.cluster;
    let labels = json!({"is-parent": "true", "tree-id": "t"});
    let org =
        quota("org", labels, json!({}), json!({"min": {"cpu": 4}, "max": {"cpu": "4500m", "memory": "1Gi"}}));
    let made = cluster.post(QUOTAS, &org).await.done();
    assert_eq!(made["metadata"]["labels"][format!("{PREFIX}parent")], "koordinator-root-quota");
    let weight = |made: &Value| made["metadata"]["annotations"][format!("{PREFIX}shared-weight")].clone();
    assert_eq!(weight(&made), "{\"cpu\":\"4500m\",\"memory\":\"1Gi\"}");
    // Right behind its parent, which the watch may not have brought yet.
    let child = quota("a", json!({"parent": "org"}), json!({}), json!({"max": {"cpu": 1, "memory": 1}}));
    let made = cluster.post(QUOTAS, &child).await.done();
    assert_eq!(made["metadata"]["labels"][format!("{PREFIX}tree-id")], "t");
    let change = json!({"metadata": {"annotations": {format!("{PREFIX}shared-weight"): "{\"cpu\":\"7\",\"gone\":\"1\"}"}}});
    let made = cluster.merge(&format!("{QUOTAS}/a"), &change).await.done();
    assert_eq!(weight(&made), "{\"cpu\":\"7\",\"memory\":\"1\"}");
    let dry = quota("dry", json!({}), json!({}), json!({"max": {"cpu": 1}}));
    let shown = cluster.post(&format!("{QUOTAS}?dryRun=All"), &dry).await.done();
    assert_eq!(weight(&shown), "{\"cpu\":\"1\"}");
    assert_eq!(cluster.get(QUOTAS).await["items"].as_array().unwrap().len(), 2);
    guarded.webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rule_is_refused_with_quota_key_and_numbers() {
    let guarded = guarded(tree()).await;
    let (cluster, none) = (&guarded.cluster, || json!({}));
    let cpu = |min: i64, max: i64| json!({"min": {"cpu": min}, "max": {"cpu": max}});
    for (labels, annotations, spec, words) in [
        (none(), none(), cpu(-1, 1), "quota n: spec.min.cpu \"-1\": it is below 0, which counts as 0"),
        (
            none(),
            none(),
            cpu(12, 10),
            "quota n: spec.min.cpu \"12\": it is above max, 10, which limits requests",
        ),
        (
            none(),
            json!({"shared-weight": "{\"cpu\": -3}"}),
            cpu(0, 1),
            "quota n: metadata.annotations.Q/shared-weight.cpu \"-3\": it is below 0, which counts as 0",
        ),
        (
            none(),
            none(),
            json!({"min": {"memory": 1}, "max": {"cpu": 1}}),
            "quota n: spec.min.memory \"1\": max does not have the resource, so it does not count",
        ),
        (
            json!({"parent": "no"}),
            none(),
            cpu(0, 1),
            "quota n: metadata.labels.Q/parent \"no\": there is no quota of this name",
        ),
        (
            json!({"parent": "solo"}),
            none(),
            cpu(1, 1),
            "quota n: metadata.labels.Q/parent \"solo\": its label Q/is-parent is not \"true\", so it may not have children",
        ),
        (
            json!({"parent": "org", "tree-id": "u"}),
            none(),
            cpu(0, 1),
            "quota n: metadata.labels.Q/tree-id \"u\": its parent org is of tree \"t\"",
        ),
        (
            json!({"parent": "org"}),
            none(),
            cpu(7, 30),
            "quota n: spec.min.cpu \"7\": the mins of the children of org add up to 21, more than its min, 20",
        ),
        (
            json!({"parent": "org"}),
            none(),
            json!({"max": {"cpu": 1, "memory": 2}}),
            "quota n: spec.max.memory \"2\": its parent org has no max for the resource",
        ),
        (
            json!({"parent": "org"}),
            none(),
            json!({}),
            "quota n: spec.max.cpu \"0\": its parent org has a max for the resource, 40",
        ),
        (
            none(),
            json!({"namespaces": "[\"ns-b\"]"}),
            cpu(0, 1),
            "quota n: metadata.annotations.Q/namespaces \"ns-b\": the namespace is bound to quota b already",
        ),
    ] {
        let said = cluster.post(QUOTAS, &quota("n", labels, annotations, spec)).await;
        guarded.refused(&said, "validate", words);
    }
    let label = |key: &str, value: &str| json!({"metadata": {"labels": {format!("{PREFIX}{key}"): value}}});
    for (name, patch, words) in [
        (
            "org",
            label("is-parent", "false"),
            "quota org: metadata.labels.Q/is-parent \"false\": it has 2 children: a, b",
        ),
        (
            "solo",
            label("is-parent", "true"),
            "quota solo: metadata.labels.Q/is-parent \"true\": it has pods: default/member",
        ),
        (
            "org",
            json!({"spec": {"min": {"cpu": 10}}}),
            "quota org: spec.min.cpu \"10\": the mins of its children add up to 14",
        ),
        (
            "a",
            label("tree-id", "u"),
            "quota a: metadata.labels.Q/tree-id \"u\": the tree of a quota cannot change, and was \"t\"; \
            quota a: metadata.labels.Q/tree-id \"u\": its parent org is of tree \"t\"",
        ),
    ] {
        let said = cluster.merge(&format!("{QUOTAS}/{name}"), &patch).await;
        guarded.refused(&said, "validate", words);
    }
    let used = json!({"status": {"used": {"cpu": 2}}});
    cluster.merge(&format!("{QUOTAS}/solo/status"), &used).await.done();
    let strict = json!({"metadata": {"annotations": {format!("{PREFIX}max-strict-check-resource-keys"): "[\"cpu\"]"}},
        "spec": {"max": {"cpu": 1}}});
    let said = cluster.merge(&format!("{QUOTAS}/solo"), &strict).await;
    guarded.refused(&said, "validate", "quota solo: spec.max.cpu \"1\": it is below what is used, 2");
    let said = cluster.delete(&format!("{QUOTAS}/org")).await;
    guarded.refused(&said, "validate", "quota org: metadata.name \"org\": it has 2 children: a, b");
    let said = cluster.delete(&format!("{QUOTAS}/solo")).await;
    guarded.refused(&said, "validate", "quota solo: metadata.name \"solo\": it has pods: default/member");
    cluster.delete(&format!("{QUOTAS}/b")).await.done();
    let elsewhere = QUOTAS.replace("kube-system", "default");
    let mut other = quota("a", none(), none(), cpu(0, 1));
    other["metadata"]["namespace"] = "default".into();
    let said = cluster.post(&elsewhere, &other).await;
    let words = "quota a: metadata.name \"a\": names of quotas count across namespaces, and namespace kube-system has one of this name";
    guarded.refused(&said, "validate", words);
    guarded.webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_name_leaves_and_stay_as_preemptible_as_they_were() {
    let guarded = guarded(tree()).await;
    let cluster = &guarded.cluster;
    let mut object = pod("p");
    object["metadata"]["labels"][format!("{PREFIX}name")] = "org".into();
    let said = cluster.post(PODS, &object).await;
    let words = "pod p: label Q/name \"org\": quota org has the label Q/is-parent \"true\", so it takes no pods; name one of \
        its children";
    guarded.refused(&said, "pods", words);
    object["metadata"]["labels"][format!("{PREFIX}name")] = "a".into();
    cluster.post(PODS, &object).await.done();
    let change = json!({"metadata": {"labels": {format!("{PREFIX}preemptible"): "true"}}});
    let said = cluster.merge(&format!("{PODS}/member"), &change).await;
    let words = "pod member: label Q/preemptible \"true\": it cannot change, and was \"false\"";
    guarded.refused(&said, "pods", words);
    guarded.webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_slipped_past_can_be_mended_and_accounted_for() {
    let guarded = guarded(tree()).await;
    let cluster = &guarded.cluster;
    // Seeds do not pass webhooks: the object is there as if the webhook had been off.
    let broken = quota(
        "slipped",
        json!({"parent": "nobody"}),
        json!({}),
        json!({"min": {"cpu": 3}, "max": {"cpu": 2}}),
    );
    cluster.sandbox.create(broken).unwrap();
    let path = format!("{QUOTAS}/slipped");
    let written = json!({"metadata": {"annotations": {format!("{PREFIX}runtime"): "{\"cpu\":\"1\"}"}}});
    // What the scheduler writes is taken, and is no occasion to fill in anything.
    let made = cluster.merge(&path, &written).await.done();
    assert_eq!(made["metadata"]["annotations"], written["metadata"]["annotations"]);
    // Any other change is judged as a whole.
    let said = cluster.merge(&path, &json!({"spec": {"max": {"cpu": 1}}})).await;
    let words = "quota slipped: spec.min.cpu \"3\": it is above max, 1, which limits requests; quota slipped: metadata.labels.Q/parent \"nobody\": \
        there is no quota of this name";
    guarded.refused(&said, "validate", words);
    let mended =
        json!({"metadata": {"labels": {format!("{PREFIX}parent"): null}}, "spec": {"min": {"cpu": 1}}});
    cluster.merge(&path, &mended).await.done();
    cluster.delete(&path).await.done();
    guarded.webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_bodies_are_refused() {
    let guarded = guarded(Vec::new()).await;
    let url = format!("https://{}", guarded.webhook.address);
    let mut config = kube::Config::new(url.parse().unwrap());
    config.accept_invalid_certs = true;
    let client = kube::Client::try_from(config).unwrap();
    let ask = |path: &'static str, body: String| {
        let request = http::Request::post(path).header("Content-Type", "application/json");
        let request = request.body(kube::client::Body::from(body.into_bytes())).unwrap();
        let client = client.clone();
        async move {
            let response = client.send(request).await.unwrap();
            let code = response.status().as_u16();
            let bytes = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
            (code, String::from_utf8(bytes.to_vec()).unwrap())
        }
    };
    let review = |request: Value| {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
            .to_string()
    };
    for (path, body, code, words) in [
        (VALIDATE_QUOTA, "no JSON".to_owned(), 400, "MalformedJson"),
        (VALIDATE_QUOTA, json!({"kind": "Pod"}).to_string(), 400, "NoAdmissionReview"),
        // It would take 64 MiB as values.
        (VALIDATE_QUOTA, format!("[{}0]", "0,".repeat(2_000_000)), 400, "NoAdmissionReview"),
        (MUTATE_QUOTA, review(json!({})), 400, "request.uid is missing"),
        (VALIDATE_POD, review(json!({"uid": "u", "operation": "CREATE"})), 400, "without object"),
        (
            VALIDATE_POD,
            review(json!({"uid": "u", "operation": "CREATE", "object": {},
            "resource": {"resource": "nodes"}})),
            400,
            "WrongResource",
        ),
    ] {
        let (status, said) = ask(path, body).await;
        assert!(status == code && said.contains(words), "{path}: {status} {said}");
    }
    guarded.webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_serves_the_rules_until_it_is_stopped() {
    let (ca, _folder, [certificate, key]) = certificate();
    let cluster = with_quotas(Vec::new()).await;
    let config = kubeconfig(&cluster.sandbox.url());
    let files = [config.path(), &certificate, &key].map(|path| path.to_str().unwrap().to_owned());
    let [config, certificate, key] = files.each_ref().map(String::as_str);
    let mut process = Process::start(&[
        "webhook",
        "--listen=127.0.0.1:0",
        "--kubeconfig",
        config,
        "--tls-cert-file",
        certificate,
        "--tls-private-key-file",
        key,
    ]);
    let line = process.wait_for_stdout("webhook: https://");
    register(&cluster, line.trim_start_matches("webhook: "), &ca).await;
    let broken = quota("n", json!({}), json!({}), json!({"min": {"cpu": 2}, "max": {"cpu": 1}}));
    let said = cluster.post(QUOTAS, &broken).await;
    let words = "admission webhook \"validate.test.example\" denied the request: quota n: spec.min.cpu \"2\": it is above max, \
        1, which limits requests";
    assert_eq!((said.code, said.message()), (403, words));
    assert!(process.terminate().success());
}
