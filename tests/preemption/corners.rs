//! Small cases: pods that may not preempt, room promised to others, and victims that were not bound yet.

use pellucid::sandbox::{Objects, Trouble};
use serde_json::{Value, json};

use crate::common::running::{Running, node, nominated, pod, priority_class, start, with};
use crate::preemption::views::{
    STATE, all_ordered, check_metrics, check_state, is_over, list, number, path, text, wasted,
};

/// Starts a node with this many cores, and some priority classes.
async fn one_node(cores: u32) -> Running {
    let preempts = "PreemptLowerPriority";
    start(vec![
        node("n", "za", cores),
        priority_class("low", 10, preempts),
        priority_class("high", 1000, preempts),
        priority_class("top", 2000, preempts),
        priority_class("polite", 1000, "Never"),
    ])
    .await
}

/// Makes a pod with this many cores.
fn of(class: &str, name: &str, cores: u32) -> Value {
    with(pod(name, cores * 1000), "priorityClassName", class.into())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_never_preempts_waits() {
    let mut running = one_node(2).await;
    running.place(of("low", "small", 2)).await;
    running.create([of("polite", "waits", 1)]);
    let told = running.told("waits", "Insufficient cpu").await;
    assert!(told.contains("not eligible due to preemptionPolicy=Never."), "{told}");
    let body = running.read(&path("waits"));
    assert_eq!(text(&body, "message"), "not eligible due to preemptionPolicy=Never.");
    assert!(text(&body, "summary").starts_with("Nothing was evicted for it: "), "{body:#}");
    assert!(body["nomination"].is_null() && body["search"].is_null(), "{body:#}");
    let state = running.read(STATE);
    assert_eq!((number(&state, "preemptions"), number(&state, "victims")), (0, 0));
    assert!(is_over(&state));
    running.kill("small").await;
    assert_eq!(running.bound("waits").await, "n");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn room_that_others_nominated_a_pod_to_is_kept_for_it() {
    let mut running = one_node(4).await;
    running.place(of("polite", "runs", 3)).await;
    running.create([of("polite", "first", 2)]);
    running.told("first", "Insufficient cpu").await;
    running.set_status("first", json!({"nominatedNodeName": "n"})).await;
    let state = running.wait(STATE, "the nomination", |state| !list(state, "nominations").is_empty());
    let nomination = &list(&state, "nominations")[0];
    assert_eq!((text(nomination, "name"), text(nomination, "by")), ("first", "status"));
    assert_eq!(running.read("/apis/v1/nodes/n")["nominated"]["cpu"], 2000);
    let body = running.read(&path("first"));
    assert_eq!(text(&body, "summary"), "Nominated to n by status; nobody was evicted for it.");

    // One core is free. A later pod of equal priority does not get it; one of higher priority would.
    running.create([of("polite", "later", 1)]);
    running.told("later", "Insufficient cpu").await;
    running.kill("runs").await;
    running.bound("first").await;
    running.bound("later").await;
    running.wait(STATE, "no nomination", is_over);
    running.pod("first", "no nomination", |pod| nominated(pod).is_none()).await;

    // The same again, and the nomination is withdrawn.
    running.create([of("polite", "next", 2)]);
    running.told("next", "Insufficient cpu").await;
    running.set_status("next", json!({"nominatedNodeName": "n"})).await;
    running.wait(STATE, "the nomination", |state| !list(state, "nominations").is_empty());
    running.create([of("polite", "last", 1)]);
    running.told("last", "Insufficient cpu").await;
    running.set_status("next", json!({"nominatedNodeName": null})).await;
    running.bound("last").await;
    running.wait(STATE, "no nomination", is_over);
    check_metrics(&running);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_overtaken_waits_again_and_its_victims_go_for_the_other() {
    let mut running = one_node(4).await;
    running.create((0..4).map(|n| of("low", &format!("low-{n}"), 1)));
    for n in 0..4 {
        running.bound(&format!("low-{n}")).await;
    }
    running.create([of("high", "overtaken", 2)]);
    let is_under_way = |state: &Value| list(state, "underWay").len() == 1 && all_ordered(state);
    check_state(&running.wait(STATE, "two victims", is_under_way));
    running.pod("overtaken", "nominated", |pod| nominated(pod) == Some("n")).await;
    running.create([of("top", "wins", 4)]);
    let state = running.wait(STATE, "four victims", |state| {
        is_under_way(state) && list(state, "underWay")[0]["name"] == "wins"
    });
    check_state(&state);
    assert_eq!((number(&state, "victims"), wasted(&state).len()), (4, 0), "{state:#}");
    assert!(list(&list(&state, "underWay")[0], "victims").iter().all(|v| v["counted"] == true));
    running.pod("overtaken", "not nominated any more", |pod| nominated(pod).is_none()).await;
    assert_eq!(running.read(&path("overtaken"))["ended"][0]["end"], "overtaken");
    running.pass(30);
    running.bound("wins").await;
    let state = running.wait(STATE, "nothing under way", is_over);
    assert_eq!((number(&state, "usefulEvictions"), wasted(&state).len()), (4, 0));
    running.told("overtaken", "No preemption victims found for incoming pod").await;
    check_metrics(&running);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_victim_that_waits_for_its_volume_loses_its_place_and_nothing_else() {
    let mut running = one_node(1).await;
    running.sandbox.faults().trouble(Objects::named("default", "disk"), Trouble::ProvisioningHangs);
    running.create([
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
            "provisioner": "disk.example", "volumeBindingMode": "WaitForFirstConsumer"
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                "resources": {"requests": {"storage": "1Gi"}}}
        }),
        with(
            of("low", "patient", 1),
            "volumes",
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}]),
        ),
    ]);
    running.wait("/apis/v1/plugins/VolumeBinding/state", "a held claim", |state| {
        list(state, "held").iter().any(|held| held["waitsFor"] == "bind")
    });
    assert_eq!(running.metric("pellucid_pre_binding_pods"), 1.0);
    assert_eq!(running.place(of("high", "urgent", 1)).await, "n");
    // All this takes a moment, before which nothing is in progress either.
    let state = running.wait(STATE, "a useful eviction, and nothing under way", |state| {
        is_over(state) && number(state, "usefulEvictions") == 1
    });
    check_state(&state);
    assert_eq!(wasted(&state).len(), 0);
    let body = running.read(&path("patient"));
    assert_eq!(body["asVictim"]["victim"]["state"], "cancelled");
    running.event("patient", "Preempted", "(in kube-scheduler memory).").await;
    let told = running.told("patient", "Insufficient cpu").await;
    assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told}");
    assert_eq!(running.metric("pellucid_evict_orders_total{outcome=\"deleted\"}"), 0.0);
    assert_eq!(running.metric("pellucid_pre_binding_pods"), 0.0);
    running.stop().await;
}
