//! How the sandbox calls webhooks: which, in which order, with what, and what it makes of their answers.

use http::Method;
use pellucid::sandbox::Config;
use serde_json::{Value, json};

use crate::webhook::fake::{Fake, patching, response};
use crate::webhook::fixture::{Ca, Cluster, PODS, bundle, pod, until};

fn label(key: &str, value: &str) -> Value {
    json!([{"op": "add", "path": format!("/metadata/labels/{key}"), "value": value}])
}

#[tokio::test]
async fn mutations_come_first_in_order_and_again_after_a_later_change() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |path, review| match path.split('?').next() {
        Some("/first") => patching(review, &label("first", "1")),
        Some("/second") => patching(review, &label("second", "1")),
        _ => response(review, json!({"allowed": true, "warnings": ["mind the \"gap\""]})),
    })
    .await;
    let cluster = Cluster::start(Config::default()).await;
    let at = |path: &str| json!({"url": fake.url(path), "caBundle": bundle(&ca)});
    let again = json!({"clientConfig": at("/first"), "reinvocationPolicy": "IfNeeded"});
    cluster.register("Mutating", "a", &again).await.done();
    cluster.register("Mutating", "b", &json!({"clientConfig": at("/second")})).await.done();
    cluster.register("Validating", "c", &json!({"clientConfig": at("/check")})).await.done();
    let mut object = pod("p");
    object["metadata"] = json!({"generateName": "p-", "labels": {"app": "p"}});
    let made = cluster.post(PODS, &object).await;
    assert_eq!(made.warnings, ["299 - \"mind the \\\"gap\\\"\""]);
    let made = made.done();
    assert_eq!(made["metadata"]["labels"], json!({"app": "p", "first": "1", "second": "1"}));
    let (first, check) = (fake.on("/first"), fake.on("/check"));
    assert_eq!((first.len(), fake.on("/second").len(), check.len()), (2, 1, 1));
    // The generated name is not known before the last mutation.
    assert_eq!((&first[0]["name"], &first[0]["object"]["metadata"]["uid"]), (&Value::Null, &Value::Null));
    assert_eq!(first[1]["object"]["metadata"]["labels"]["second"], "1");
    let request = &check[0];
    assert_eq!(request["name"], made["metadata"]["name"]);
    assert_eq!(request["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "Pod"}));
    assert_eq!(request["resource"], json!({"group": "", "version": "v1", "resource": "pods"}));
    assert_eq!((&request["operation"], &request["dryRun"]), (&json!("CREATE"), &json!(false)));
    assert_eq!(request["userInfo"]["username"], "kubernetes-admin");
    let timeout = fake.seen.lock()[0].0.clone();
    assert_eq!(timeout, "/first?timeout=10s");
}

#[tokio::test]
async fn operations_and_subresources_are_asked_about_as_the_rules_say() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |_, review| response(review, json!({"allowed": true}))).await;
    let cluster = Cluster::start(Config { kubelet: None, ..Config::default() }).await;
    let webhook = json!({
        "clientConfig": {"url": fake.url("/"), "caBundle": bundle(&ca)},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"], "scope": "Namespaced"}]
    });
    cluster.register("Validating", "all", &webhook).await.done();
    let p = format!("{PODS}/p");
    cluster.post(PODS, &pod("p")).await.done();
    cluster.merge(&p, &json!({"metadata": {"labels": {"x": "1"}}})).await.done();
    cluster.merge(&format!("{p}/status"), &json!({"status": {"phase": "Running"}})).await.done();
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    cluster.post(&format!("{p}/binding"), &binding).await.done();
    let dry = format!("{p}?dryRun=All");
    cluster.ask(Method::DELETE, &dry, "application/json", &Value::Null).await.done();
    cluster.delete(PODS).await.done();
    let all = fake.on("/");
    let seen: Vec<String> = all
        .iter()
        .map(|request| {
            let text = |key: &str| request[key].as_str().unwrap_or("-").to_owned();
            let parts = [text("operation"), text("subResource"), text("name")];
            let has = |key: &'static str| if request[key].is_object() { key } else { "-" };
            let dry = if request["dryRun"] == true { " dry" } else { "" };
            format!("{} {} {}{dry}", parts.join(" "), has("object"), has("oldObject"))
        })
        .collect();
    assert_eq!(
        seen,
        [
            "CREATE - p object -",
            "UPDATE - p object oldObject",
            "UPDATE status p object oldObject",
            "CREATE binding p object -",
            "DELETE - p - oldObject dry",
            "DELETE - - - oldObject",
        ]
    );
    assert_eq!(all[3]["kind"]["kind"], "Binding");
    assert_eq!(all[4]["oldObject"]["metadata"]["labels"]["x"], "1");
}

#[tokio::test]
async fn selectors_and_scope_choose() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |_, review| response(review, json!({"allowed": true}))).await;
    let cluster = Cluster::start(Config::default()).await;
    let with = |path: &str, rest: Value| {
        let mut webhook = json!({"clientConfig": {"url": fake.url(path), "caBundle": bundle(&ca)}});
        json_patch::merge(&mut webhook, &rest);
        webhook
    };
    let labels = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    for (name, rest) in [
        ("here", json!({"namespaceSelector": labels("kubernetes.io/metadata.name", "default")})),
        ("elsewhere", json!({"namespaceSelector": labels("kubernetes.io/metadata.name", "kube-system")})),
        ("object", json!({"objectSelector": labels("app", "p")})),
        ("other", json!({"objectSelector": labels("app", "q")})),
        (
            "cluster",
            json!({"rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "scope": "Cluster"}]}),
        ),
        (
            "update",
            json!({"rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}),
        ),
    ] {
        cluster.register("Validating", name, &with(&format!("/{name}"), rest)).await.done();
    }
    cluster.post(PODS, &pod("p")).await.done();
    let called = |name: &str| fake.on(&format!("/{name}")).len();
    let counts = ["here", "elsewhere", "object", "other", "cluster", "update"].map(called);
    // Configurations of webhooks are not reviewed, though `cluster` matches those registered after it.
    assert_eq!(counts, [1, 0, 1, 0, 0, 0]);
}

#[tokio::test]
async fn denials_are_passed_on() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |path, review| {
        let status = match path.split('?').next() {
            Some("/message") => json!({"code": 403, "reason": "Forbidden", "message": "no room"}),
            Some("/reason") => json!({"reason": "Teapot", "code": 200}),
            _ => Value::Null,
        };
        response(review, json!({"allowed": false, "status": status, "warnings": ["w"]}))
    })
    .await;
    let cluster = Cluster::start(Config::default()).await;
    for (name, code, end) in
        [("message", 403, ": no room"), ("reason", 400, ": Teapot"), ("nothing", 400, " without explanation")]
    {
        let config = json!({"clientConfig": {"url": fake.url(&format!("/{name}")), "caBundle": bundle(&ca)}});
        cluster.register("Validating", name, &config).await.done();
        let said = cluster.post(PODS, &pod("p")).await;
        let expected = format!("admission webhook \"{name}.test.example\" denied the request{end}");
        assert_eq!((said.code, said.message()), (code, &*expected));
        assert_eq!(said.warnings, ["299 - \"w\""]);
        cluster.unregister(name).await;
    }
    cluster.post(PODS, &pod("p")).await.done();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_controllers_create_is_reviewed_too() {
    let ca = Ca::new();
    let fake = Fake::start(&ca, |_, review| patching(review, &label("seen", "yes"))).await;
    let cluster = Cluster::start(Config::default()).await;
    let config = json!({"clientConfig": {"url": fake.url("/"), "caBundle": bundle(&ca)}});
    cluster.register("Mutating", "pods", &config).await.done();
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "r"}}, "template": {
            "metadata": {"labels": {"app": "r"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}
    });
    cluster.post("/apis/apps/v1/namespaces/default/replicasets", &set).await.done();
    let made = || async {
        let pods = cluster.get(PODS).await;
        let pods = pods["items"].as_array().unwrap().clone();
        pods.iter().filter(|pod| pod["metadata"]["labels"]["seen"] == "yes").count() == 2
    };
    until("two pods with the label", made).await;
    assert_eq!(fake.on("/")[0]["userInfo"]["username"], "system:kube-controller-manager");
}
