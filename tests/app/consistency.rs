//! The state compared with the API server's lists: what a watch never brought is found by object and field, and mended.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use pellucid::app::consistency::ConsistencyConfig;
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::sandbox::{Config, Fault, Handle, Match};
use serde_json::{Value, json};

use crate::common::running::{node, parts, pod};
use crate::common::{PATIENCE, client, running};

/// Compares soon, and again after this time.
async fn instance(sandbox: &Handle, grace: Duration) -> Instance {
    let consistency = ConsistencyConfig { interval: Duration::from_millis(100), grace };
    let parts = InstanceConfig { consistency, ..parts(sandbox.kube_config()).await };
    Instance::start(parts).await.expect("an instance")
}

/// Reads the comparisons until they are as wanted.
async fn until(instance: &Instance, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let body = client::get(instance.address, "/apis/v1/consistency").json();
        if is_wanted(&body) {
            return body;
        }
        assert!(tokio::time::Instant::now() < end, "{what} did not come about: {body:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn drifts(body: &Value) -> &[Value] {
    body["drifts"].as_array().expect("an array")
}

fn is_repaired(body: &Value, n: usize) -> bool {
    drifts(body).len() == n && drifts(body).iter().all(|drift| drift["repairedAt"].is_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_watch_lost_is_found_by_field_and_mended() {
    let objects = vec![node("n", "z", 4), node("full", "z", 0)];
    let (sandbox, client) = running::sandbox(Config { objects, ..Config::default() }).await;
    sandbox.create(pod("stays", 100)).expect("a pod");
    let instance = instance(&sandbox, Duration::from_millis(300)).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let clean = until(&instance, "a sweep", |body| body["sweeps"].as_u64() >= Some(1)).await;
    assert_eq!((drifts(&clean), &clean["open"]), (&[][..], &json!(0)));

    // A field of a node.
    sandbox.faults().next(Match::watches("nodes"), Fault::LoseEvent);
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch("full", &PatchParams::default(), &cordon).await.expect("patched");
    let found = until(&instance, "the lost field", |body| is_repaired(body, 1)).await;
    let drift = &drifts(&found)[0];
    assert_eq!((&drift["kind"], &drift["name"]), (&json!("Node"), &json!("full")));
    let field = json!([{"field": "spec.unschedulable", "ours": "false", "theirs": "true"}]);
    assert_eq!(drift["fields"], field, "{drift:#}");

    // A pod that is gone and still took room. Its end is two events: it is marked, then deleted.
    sandbox.faults().times(Match::watches("pods"), Fault::LoseEvent, 2);
    pods.delete("stays", &DeleteParams { grace_period_seconds: Some(0), ..Default::default() })
        .await
        .expect("deleted");
    let found = until(&instance, "the lost end", |body| is_repaired(body, 2)).await;
    assert_eq!(
        (&drifts(&found)[0]["name"], &drifts(&found)[0]["fields"][0]["theirs"]),
        (&json!("stays"), &json!("absent"))
    );

    // A pod that nobody would ever have scheduled.
    sandbox.faults().next(Match::watches("pods"), Fault::LoseEvent);
    sandbox.create(pod("lost", 100)).expect("a pod");
    let found = until(&instance, "the lost pod", |body| is_repaired(body, 3)).await;
    assert_eq!(
        (&drifts(&found)[0]["name"], &drifts(&found)[0]["fields"][0]["ours"]),
        (&json!("lost"), &json!("absent"))
    );
    let end = tokio::time::Instant::now() + PATIENCE;
    while sandbox.node_of("default", "lost").is_none() {
        assert!(tokio::time::Instant::now() < end, "the pod is not bound");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let metrics = client::get(instance.address, "/metrics").text().to_owned();
    for line in [
        "pellucid_consistency_drifts_total{kind=\"Pod\"} 2",
        "pellucid_consistency_repaired_drifts_total{kind=\"Pod\"} 2",
        "pellucid_consistency_repaired_drifts_total{kind=\"Node\"} 1",
        "pellucid_consistency_open_drifts 0",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    instance.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_cluster_does_not_drift() {
    let objects = (0..4).map(|n| node(&format!("n{n}"), "z", 16)).collect();
    let (sandbox, _) = running::sandbox(Config { objects, ..Config::default() }).await;
    let instance = instance(&sandbox, Duration::from_secs(2)).await;
    let mut created: usize = 0;
    let busy = async {
        loop {
            sandbox.create(pod(&format!("p{created}"), 100)).expect("a pod");
            if let Some(old) = created.checked_sub(100) {
                sandbox.delete("pods", "default", &format!("p{old}"), Some(0)).expect("deleted");
            }
            created += 1;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let body = tokio::select! {
        () = busy => unreachable!("it goes on"),
        body = until(&instance, "two sweeps", |body| body["sweeps"].as_u64() >= Some(2)) => body,
    };
    assert!(drifts(&body).is_empty(), "{body:#}");
    let pods =
        body["kinds"].as_array().expect("kinds").iter().find(|kind| kind["kind"] == "Pod").expect("pods");
    assert!(pods["objects"].as_u64() > Some(0) && pods["error"].is_null(), "{pods}");
    instance.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_cannot_be_listed_says_so_and_the_others_are_compared() {
    let (sandbox, _) =
        running::sandbox(Config { objects: vec![node("n", "z", 4)], ..Config::default() }).await;
    let instance = instance(&sandbox, Duration::from_millis(300)).await;
    until(&instance, "a sweep", |body| body["sweeps"].as_u64() >= Some(1)).await;
    sandbox.faults().times(Match::reads("nodes"), Fault::Status(403), usize::MAX);
    let of = |body: &Value, kind: &str| {
        body["kinds"]
            .as_array()
            .expect("kinds")
            .iter()
            .find(|of| of["kind"] == kind)
            .cloned()
            .unwrap_or_default()
    };
    let body = until(&instance, "the error", |body| of(body, "Node")["error"].is_string()).await;
    let error = of(&body, "Node")["error"].to_string();
    assert!(error.contains("list failed: 403"), "{error}");
    assert!(of(&body, "Pod")["error"].is_null());
    instance.stop().await;
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_broken_watch_has_yet_to_bring_is_no_drift() {
    let (sandbox, _) =
        running::sandbox(Config { objects: vec![node("n", "z", 4)], ..Config::default() }).await;
    let instance = instance(&sandbox, Duration::from_millis(100)).await;
    until(&instance, "a sweep", |body| body["sweeps"].as_u64() >= Some(1)).await;
    sandbox.faults().next(Match::watches("pods"), Fault::DropMidLine);
    sandbox.faults().times(Match { is_watch: Some(true), ..Match::reads("pods") }, Fault::Status(503), 3);
    sandbox.create(pod("late", 100)).expect("a pod");
    let error = |body: &Value| {
        let kinds = body["kinds"].as_array().expect("kinds");
        kinds.iter().find(|of| of["kind"] == "Pod").map(|of| of["error"].to_string()).unwrap_or_default()
    };
    let body = until(&instance, "the error", |body| error(body).contains("opened anew")).await;
    assert!(drifts(&body).is_empty(), "{body:#}");
    let body = until(&instance, "a comparison", |body| {
        sandbox.node_of("default", "late").is_some() && error(body) == "null"
    });
    assert!(drifts(&body.await).is_empty());
    instance.stop().await;
    sandbox.stop().await;
}
