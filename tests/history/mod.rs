//! What is recorded, over HTTP: histories, the feed, dumps, and what flags record on request.

mod feed;
mod snapshot;
mod switches;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::client::get;
use crate::common::running::{Hand, node, pod, priority_class, start, start_with, with};

/// Returns the entries of a pod's history.
fn entries(body: &Value) -> &Vec<Value> {
    body["entries"].as_array().expect("entries")
}

fn kinds(body: &Value) -> Vec<&str> {
    entries(body).iter().map(|e| e["kind"].as_str().expect("a kind")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_attempts_are_one_entry_and_outlive_the_pod() {
    let running = start_with(vec![node("n1", "a", 2)], None, Some(Hand::default())).await;
    running.create([pod("big", 64_000)]);
    let history = "/apis/v1/history/pods/default/big";
    running.wait(history, "one refusal", |b| kinds(b) == ["Added", "Refused"]);
    for attempt in 2..=5_u64 {
        // No event helps the pod, yet it is tried again after some minutes.
        running.let_pass(400).await;
        running.wait(history, "another attempt", |b| entries(b)[1]["count"].as_u64() >= Some(attempt));
    }
    let body = running.read(history);
    assert_eq!(kinds(&body), ["Added", "Refused"]);
    let refused = &entries(&body)[1];
    assert!(refused["first"].as_str() < refused["last"].as_str(), "{refused}");
    assert_eq!(refused["codes"], json!(["InsufficientResource"]));
    assert_eq!(refused["decisionHash"].as_str().map(str::len), Some(16));
    assert!(refused["message"].as_str().unwrap().starts_with("0/1 nodes are available"));
    assert!(body["dropped"].as_u64() >= Some(0) && body["lowestId"].as_u64() <= body["highestId"].as_u64());

    // A finalizer holds the pod for a while after its deletion was requested.
    let hold = |by: Value| Patch::Merge(json!({"metadata": {"finalizers": by}}));
    let pods = running.api("v1/Pod");
    pods.patch("big", &PatchParams::default(), &hold(json!(["example.com/hold"]))).await.expect("patched");
    running.delete("v1/Pod", "big").await;
    running.wait(history, "being deleted", |b| kinds(b).last() == Some(&"Deleting"));
    pods.patch("big", &PatchParams::default(), &hold(json!([]))).await.expect("patched");
    let body = running.wait(history, "its end", |b| kinds(b).last() == Some(&"Deleted"));
    assert_eq!(kinds(&body), ["Added", "Refused", "Deleting", "Deleted"]);
    for read in ["explain/pods/default/big", "explain/pods/default/big/suggestions"] {
        let reply = get(running.instance.address, &format!("/apis/v1/{read}"));
        let (answer, said) = (reply.json(), &body["notPending"]);
        assert_eq!((reply.status, &answer["code"]), (404, &json!("PodDeleted")), "{read}");
        assert_eq!((&answer["code"], &answer["message"]), (&said["code"], &said["message"]), "{read}");
        assert!(answer["message"].as_str().is_some_and(|text| text.contains(history)), "{answer}");
    }
    assert_eq!(running.status_of("/apis/v1/history/pods/default/nobody"), 404);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_s_way_is_told_and_a_victim_knows_its_preemptor() {
    let class = priority_class("high", 1000, "PreemptLowerPriority");
    let mut running = start(vec![node("n1", "a", 2), class]).await;
    running.place(pod("low", 1_500)).await;
    let body = running.wait("/apis/v1/history/pods/default/low", "bound", |b| kinds(b).contains(&"Bound"));
    assert_eq!(kinds(&body), ["Added", "Placed", "Bound"]);
    assert!(entries(&body)[1..].iter().all(|e| e["node"] == "n1"));
    assert_eq!(entries(&body)[1]["decisionHash"], entries(&body)[2]["decisionHash"]);

    running.create([with(pod("high", 1_500), "priorityClassName", json!("high"))]);
    let body =
        running.wait("/apis/v1/history/pods/default/low", "evicted", |b| kinds(b).contains(&"Evicted"));
    let evicted = entries(&body).iter().find(|e| e["kind"] == "Evicted").unwrap();
    assert_eq!((&evicted["by"], &evicted["node"]), (&json!("default/high"), &json!("n1")));
    assert!(
        evicted["message"].as_str().is_some_and(|text| text.contains("lacked: Insufficient cpu")),
        "{evicted}"
    );
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_leaves_a_mark() {
    const FLAG: &str = "/debug/flags/recorder";
    let mut running = start(vec![node("n1", "a", 8)]).await;
    assert_eq!(running.put(FLAG, "off").status, 400);
    assert_eq!(running.put(FLAG, "false").text().trim_end(), "successfully set recorder to false");
    running.place(pod("unseen", 100)).await;
    assert_eq!(running.put(FLAG, "true").status, 200);
    running.create([pod("seen", 100)]);
    running.wait("/apis/v1/history/pods/default/seen", "recorded", |b| kinds(b).contains(&"Placed"));
    // Its Binding may be confirmed a moment later.
    if running.status_of("/apis/v1/history/pods/default/unseen") == 200 {
        assert_eq!(kinds(&running.read("/apis/v1/history/pods/default/unseen")), ["Bound"]);
    }
    let lines = feed::read(&running, "/apis/v1/events");
    let mark = lines.iter().find(|l| l["kind"] == "NotRecorded").expect("a mark");
    assert!(mark["count"].as_u64() >= Some(2), "{mark}");
    running.stop().await;
}
