//! Over HTTP: the API server's list, the pending summary and the metrics agree on one number.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::common::reads::{list, number, text};
use crate::common::running::{Running, node, pod, start, with};

/// Returns how many pods of ours the API server lists as Pending and without a node.
async fn listed(running: &Running) -> usize {
    let api: Api<Pod> = Api::all(running.client.clone());
    let pods =
        api.list(&ListParams::default().fields("status.phase=Pending,spec.nodeName=")).await.expect("listed");
    let is_ours = |pod: &&Pod| {
        let spec = pod.spec.as_ref();
        spec.and_then(|s| s.scheduler_name.as_deref()) == Some("pellucid")
    };
    pods.items.iter().filter(is_ours).count()
}

/// Returns the sum of all samples of a family.
fn metric_sum(running: &Running, family: &str) -> f64 {
    let text = running.metrics();
    let samples =
        text.lines().filter(|line| line.strip_prefix(family).is_some_and(|rest| rest.starts_with('{')));
    samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

fn member(name: &str) -> Value {
    let mut pod = pod(name, 100);
    pod["metadata"]["annotations"] = json!({"gang.scheduling.koordinator.sh/name": "crew", "gang.scheduling.koordinator.sh/min-available": "3"});
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_the_roll_up_and_the_metrics_agree() {
    let mut running = start(vec![node("a", "z", 2), node("b", "z", 2)]).await;
    let mut unreadable = pod("unreadable", 100);
    unreadable["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Near", "values": ["v"]}]}]}}});
    running.create([
        pod("fits", 100),
        pod("large", 5000),
        pod("larger", 6000),
        with(pod("gated", 100), "schedulingGates", json!([{"name": "example.com/wait"}])),
        member("crew-1"),
        member("crew-2"),
        unreadable,
        with(pod("theirs", 100), "schedulerName", json!("another")),
    ]);
    running.bound("fits").await;
    let path = "/apis/v1/summary/pending?by=code,stage";
    let settled = |body: &Value| {
        list(body, "/rows").iter().all(|row| row["code"] != "NotTried" && row["code"] != "Placed")
            && number(body, "/totalPending") == 6
    };
    let body = running.wait(path, "all were tried", settled);
    let rows: i64 = list(&body, "/rows").iter().map(|row| number(row, "/pods")).sum();
    assert_eq!((rows, listed(&running).await), (6, 6), "{body}");
    assert_eq!(metric_sum(&running, "pellucid_pending_reasons"), 6.0);
    let large =
        running.metric("pellucid_pending_reasons{code=\"InsufficientResource\",profile=\"pellucid\"}");
    assert_eq!(large, 2.0);
    // Counts pods, not units: two members of the gang and the gated pod.
    assert_eq!(running.metric("scheduler_pending_pods{queue=\"gated\"}"), 3.0);
    assert_eq!(running.metric("scheduler_pending_pods{queue=\"unschedulable\"}"), 2.0);
    assert_eq!(running.status_of("/apis/v1/summary/pending?by=colour"), 400);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_a_node_a_contrast_and_what_they_cost() {
    let mut running = start(vec![node("a", "z", 4), node("b", "z", 2)]).await;
    running.create([pod("p", 1000), pod("large", 9000), pod("larger", 10_000)]);
    running.bound("p").await;
    running.told("large", "Insufficient cpu").await;
    running.told("larger", "Insufficient cpu").await;
    let queue = running.read("/apis/v1/queue?position=default/large");
    assert_eq!(
        (number(&queue, "/position") as usize, text(&queue, "/stage")),
        (list(&queue, "/ahead").len(), "unschedulable")
    );
    assert_eq!(running.status_of("/apis/v1/queue?position=default/p"), 404);
    assert_eq!(running.status_of("/apis/v1/queue?position=nonsense"), 400);
    let of_node = running.read("/apis/v1/explain/nodes/a");
    assert_eq!(list(&of_node, "/refuses").len() as i64, number(&of_node, "/pendingConsidered"));
    assert_eq!(text(&of_node, "/refuses/0/reasons/0/code"), "InsufficientResource");
    assert_eq!(running.status_of("/apis/v1/explain/nodes/nowhere"), 404);
    let own = running.read("/apis/v1/explain/pods/default/p");
    let other = if own["placement"]["node"] == "a" { "b" } else { "a" };
    let contrast = running.read(&format!("/apis/v1/explain/placements/default/p?versus={other}"));
    let gaps: i64 = list(&contrast, "/plugins").iter().map(|plugin| number(plugin, "/gap")).sum();
    assert_eq!(gaps, number(&contrast, "/totalGap"));
    assert_eq!(
        running.status_of(&format!(
            "/apis/v1/explain/placements/default/p?versus={}",
            text(&own, "/placement/node")
        )),
        400
    );
    let fresh = running.read("/apis/v1/explain/pods/default/large?refresh");
    assert_eq!((&fresh["meta"]["refreshed"], &fresh["meta"]["stale"]), (&json!(true), &json!(false)));
    for body in [queue, of_node, own, contrast, fresh] {
        assert!(body["meta"]["costMicros"].is_u64() && body["meta"]["leader"] == true, "{body}");
    }
    running.stop().await;
}
