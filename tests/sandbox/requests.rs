//! Requests: patches, lists in pages, and bad input.

use super::*;

#[tokio::test]
async fn patches_of_every_kind_do_what_they_say() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    let params = PatchParams::default();
    let labels = Patch::Merge(json!({"metadata": {"labels": {"x": "1", "app": null}}}));
    let merged = pods.patch("a", &params, &labels);
    assert_eq!(merged.await.expect("merged").labels().get("x").map(String::as_str), Some("1"));
    let condition = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True"}]}});
    pods.patch_status("a", &params, &Patch::Strategic(condition("A"))).await.expect("patched");
    let both = pods.patch_status("a", &params, &Patch::Strategic(condition("B"))).await.expect("patched");
    assert_eq!(both.status.and_then(|s| s.conditions).map_or(0, |c| c.len()), 2);
    let operations: json_patch::Patch = of(json!([{"op": "remove", "path": "/metadata/labels/x"}]));
    let removed = pods.patch("a", &params, &Patch::<Pod>::Json(operations)).await.expect("patched");
    assert!(removed.labels().is_empty());
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"y": "1"}}});
    assert_eq!(code(&pods.patch("a", &params, &Patch::Merge(stale)).await.expect_err("stale")), 409);
    let applied =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "z"}}});
    let nodes: Api<Node> = Api::all(client);
    let node = nodes.patch("n1", &PatchParams::apply("test"), &Patch::Apply(applied)).await.expect("applied");
    assert_eq!(node.labels().get("zone").map(String::as_str), Some("z"));
}

#[tokio::test]
async fn lists_come_in_pages_of_one_revision() {
    let (_sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    for index in 0..7 {
        pods.create(&PostParams::default(), &pod(&format!("p{index}"))).await.expect("created");
    }
    let first = pods.list(&ListParams::default().limit(3)).await.expect("a page");
    assert_eq!((first.items.len(), first.metadata.remaining_item_count), (3, Some(4)));
    pods.delete("p5", &DeleteParams::default()).await.expect("deleted");
    pods.create(&PostParams::default(), &pod("p9")).await.expect("created");
    let token = first.metadata.continue_.expect("more pages");
    let rest = pods.list(&ListParams::default().limit(10).continue_token(&token)).await.expect("a page");
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["p3", "p4", "p5", "p6"], "the second page is as old as the first");
    let selected =
        pods.list(&ListParams::default().labels("app in (a),x notin (1)").fields("metadata.name!=p0")).await;
    assert_eq!(selected.expect("a list").items.len(), 6);
}

#[tokio::test]
async fn bad_input_is_refused_and_never_a_panic() {
    let (sandbox, client) = still().await;
    let send = async |method: &str, path: &str, content: &str, body: Vec<u8>| {
        let request = http::Request::builder().method(method).uri(path).header("content-type", content);
        let request = request.body(kube::client::Body::from(body)).expect("a request");
        client.send(request).await.expect("an answer").status().as_u16()
    };
    let pods = "/api/v1/namespaces/default/pods";
    let json = "application/json";
    for (body, expected) in
        [("[]", 400), ("null", 400), ("\"x\"", 400), ("{\"metadata\":[]}", 400), ("{}", 422)]
    {
        assert_eq!(send("POST", pods, json, body.into()).await, expected, "{body}");
    }
    assert_eq!(send("POST", pods, json, vec![b' '; 3 * 1024 * 1024 + 1]).await, 413);
    assert_eq!(send("POST", pods, "application/vnd.kubernetes.protobuf", b"k8s".to_vec()).await, 415);
    assert_eq!(send("GET", "/api/v1/namespaces/default/pods/a/b/c", json, Vec::new()).await, 404);
    assert_eq!(send("GET", "/api/v1/nothing", json, Vec::new()).await, 404);
    assert_eq!(send("GET", "/api/v1/pods?labelSelector=%ff%zz%", json, Vec::new()).await, 400);
    assert_eq!(send("GET", "/api/v1/pods?limit=x", json, Vec::new()).await, 400);
    let (_unused, taken) = (client.clone(), sandbox.address());
    let error =
        Sandbox::start(Config { listen: taken, ..Config::default() }).await.expect_err("the port is taken");
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}
