//! Limits of a real API server that the sandbox enforces, with the same messages.

use kube::client::Body;

use pellucid::sandbox::StartError;

use super::*;

async fn ask(client: &Client, method: &str, path: &str, content_type: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
    let request = request.body(Body::from(body.to_string().into_bytes())).expect("a request");
    let response = client.send(request).await.expect("an answer");
    let status = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.expect("a body");
    (status, serde_json::from_slice(&bytes).expect("JSON"))
}

const PODS: &str = "/api/v1/namespaces/default/pods";
const JSON: &str = "application/json";

#[track_caller]
fn is_refused((status, body): (u16, Value), message: &str, reason: &str, field: &str) {
    assert_eq!(status, 422, "{body}");
    let cause = &body["details"]["causes"][0];
    assert_eq!(
        (&cause["message"], &cause["reason"], &cause["field"]),
        (&json!(message), &json!(reason), &json!(field)),
        "{body}"
    );
}

#[tokio::test]
async fn a_small_patch_does_not_make_a_large_object() {
    let (_sandbox, client) = still().await;
    ask(&client, "POST", PODS, JSON, &serde_json::to_value(pod("a")).expect("JSON")).await;
    let path = format!("{PODS}/a");
    let seed = json!({"op": "add", "path": "/metadata/annotations", "value": {"a": "x".repeat(100)}});
    let copy = |n| json!({"op": "copy", "from": "/metadata/annotations", "path": format!("/metadata/annotations/c{n}")});
    let patch = Value::Array(std::iter::once(seed).chain((0..25).map(copy)).collect());
    let (status, body) = ask(&client, "PATCH", &path, "application/json-patch+json", &patch).await;
    assert_eq!(status, 422, "{body}");
    let message = body["message"].as_str().expect("a text");
    assert!(message.contains("the accumulated size increase of copy is"), "{message}");

    let many = Value::Array(vec![json!({"op": "test", "path": "/kind", "value": "Pod"}); 10_001]);
    let (status, body) = ask(&client, "PATCH", &path, "application/json-patch+json", &many).await;
    assert_eq!((status, &body["reason"]), (413, &json!("RequestEntityTooLarge")));
    // Updates a kind that preserves unknown fields again and again.
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.example"}, "spec": {"group": "x.example", "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(ask(&client, "POST", definitions, JSON, &definition).await.0, 201);
    let thing = json!({"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}});
    assert_eq!(ask(&client, "POST", "/apis/x.example/v1/things", JSON, &thing).await.0, 201);
    let mut answers = Vec::new();
    for n in 0..2 {
        let patch = json!({format!("field{n}"): "x".repeat(1_000_000)});
        let path = "/apis/x.example/v1/things/t";
        let (status, body) = ask(&client, "PATCH", path, "application/merge-patch+json", &patch).await;
        answers.push((status, body["message"].clone()));
    }
    assert_eq!(answers, [(200, Value::Null), (500, json!("etcdserver: request is too large"))]);
}

#[tokio::test]
async fn annotations_have_a_total_size() {
    let (_sandbox, client) = still().await;
    let annotated = |bytes: usize| {
        let mut pod = serde_json::to_value(pod("a")).expect("JSON");
        pod["metadata"]["annotations"] = json!({"k": "x".repeat(bytes - 1)});
        pod
    };
    let message = "Too long: may not be more than 262144 bytes";
    let refused = |answer| is_refused(answer, message, "FieldValueTooLong", "metadata.annotations");
    refused(ask(&client, "POST", PODS, JSON, &annotated(1_000_000)).await);
    refused(ask(&client, "POST", PODS, JSON, &annotated(262_145)).await);
    assert_eq!(ask(&client, "POST", PODS, JSON, &annotated(262_144)).await.0, 201);
    let more = json!({"metadata": {"annotations": {"l": ""}}});
    refused(ask(&client, "PATCH", &format!("{PODS}/a"), "application/merge-patch+json", &more).await);
}

#[tokio::test]
async fn ports_are_those_that_there_are() {
    let (_sandbox, client) = still().await;
    let range = "must be between 1 and 65535, inclusive";
    let with_port = |list: &str, port: Value| {
        let mut pod = serde_json::to_value(pod("a")).expect("JSON");
        pod["spec"][list] = json!([{"name": "d", "image": "i", "ports": [port]}]);
        pod
    };
    for (list, port, reason, message, field) in [
        (
            "containers",
            json!({"containerPort": 80, "hostPort": 65536}),
            "Invalid",
            format!("Invalid value: 65536: {range}"),
            "hostPort",
        ),
        (
            "containers",
            json!({"containerPort": 80, "hostPort": -1}),
            "Invalid",
            format!("Invalid value: -1: {range}"),
            "hostPort",
        ),
        (
            "initContainers",
            json!({"containerPort": 70000}),
            "Invalid",
            format!("Invalid value: 70000: {range}"),
            "containerPort",
        ),
        ("containers", json!({"containerPort": 0}), "Required", "Required value".to_owned(), "containerPort"),
        (
            "containers",
            json!({"containerPort": 1, "protocol": "tcp"}),
            "NotSupported",
            "Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \"UDP\"".to_owned(),
            "protocol",
        ),
    ] {
        let mut wanted = with_port(list, port);
        if list == "initContainers" {
            wanted["spec"]["containers"] = json!([{"name": "c", "image": "i"}]);
        }
        let answer = ask(&client, "POST", PODS, JSON, &wanted).await;
        is_refused(
            answer,
            &message,
            &format!("FieldValue{reason}"),
            &format!("spec.{list}[0].ports[0].{field}"),
        );
    }
    let fine = with_port("containers", json!({"containerPort": 1, "hostPort": 65535, "protocol": "SCTP"}));
    assert_eq!(ask(&client, "POST", PODS, JSON, &fine).await.0, 201);
    let service =
        |port: Value| json!({"metadata": {"name": "s"}, "spec": {"selector": {"a": "b"}, "ports": [port]}});
    let services = "/api/v1/namespaces/default/services";
    let answer = ask(&client, "POST", services, JSON, &service(json!({"port": 0}))).await;
    is_refused(answer, &format!("Invalid value: 0: {range}"), "FieldValueInvalid", "spec.ports[0].port");
    let answer =
        ask(&client, "POST", services, JSON, &service(json!({"port": 1, "targetPort": 99999}))).await;
    is_refused(
        answer,
        &format!("Invalid value: 99999: {range}"),
        "FieldValueInvalid",
        "spec.ports[0].targetPort",
    );
    assert_eq!(
        ask(&client, "POST", services, JSON, &service(json!({"port": 1, "targetPort": "web"}))).await.0,
        201
    );
}

#[tokio::test]
async fn other_machines_are_let_in_only_when_asked_for() {
    let everywhere: std::net::SocketAddr = "0.0.0.0:0".parse().expect("an address");
    let refused =
        Sandbox::start(Config { listen: everywhere, ..Config::default() }).await.expect_err("not loopback");
    assert!(refused.to_string().starts_with("refusing to listen on 0.0.0.0:0: "), "{refused}");
    // An address reserved for documentation, which no machine has: binding to it is tried and fails.
    let elsewhere = "192.0.2.1:0".parse().expect("an address");
    let config = Config { listen: elsewhere, beyond_loopback: true, ..Config::default() };
    let refused = Sandbox::start(config).await.expect_err("not an address of this machine");
    assert!(matches!(refused, StartError::Listen { .. }), "{refused}");
}
