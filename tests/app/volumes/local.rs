//! Local disks: existing volumes, each usable on one node.

use std::time::Duration;

use pellucid::sandbox::{Fault, Match};
use serde_json::json;

use super::{STATE, VOLUME, claim, groups, held, local_volume, only_on, three_nodes, user};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_goes_where_a_disk_is() {
    let mut running = three_nodes(vec![local_volume("disk-b", "b"), claim("one", "local")]).await;
    assert_eq!(running.place(user("first", "one")).await, "b");
    let bound = running.bound_claim("one").await;
    assert_eq!(bound["spec"]["volumeName"], "disk-b");
    let is_bound = |volume: &serde_json::Value| volume["status"]["phase"] == "Bound";
    let volume = running.object(VOLUME, "disk-b", "bound", is_bound).await;
    assert_eq!(volume["spec"]["claimRef"]["uid"], bound["metadata"]["uid"]);

    // No disk is left, and the pod reports it; a new one wakes it.
    running.create([claim("two", "local"), user("second", "two")]);
    let words = "3 node(s) didn't find available persistent volumes to bind.";
    let told = running.told("second", words).await;
    assert!(told.starts_with("0/3 nodes are available: 3 node(s)"), "{told}");
    let explained = running.explain("second");
    assert_eq!(groups(&explained), [("VolumeBinding".into(), "NoVolumeToBind".into())]);
    assert!(
        explained["summary"].as_str().is_some_and(|s| s.contains("available persistent volumes")),
        "{explained:#}"
    );
    running.create([local_volume("disk-c", "c")]);
    assert_eq!(running.bound("second").await, "c");

    // The volume of a bound claim keeps other pods that use it on its node.
    running.create([only_on(user("third", "one"), "a")]);
    running.told("third", "1 node(s) didn't match PersistentVolume's node affinity").await;
    let of = |plugin: &str, code: &str| (plugin.to_owned(), code.to_owned());
    let expected =
        [of("NodeAffinity", "NodeAffinityMismatch"), of("VolumeBinding", "VolumeNodeAffinityConflict")];
    let found = groups(&running.explain("third"));
    assert_eq!(found[1], expected[1], "{found:?}");
    assert_eq!(found[0].0, expected[0].0);
    assert_eq!(running.place(only_on(user("fourth", "one"), "b")).await, "b");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_pods_do_not_get_the_same_disk() {
    let more = vec![local_volume("disk-a", "a"), claim("one", "local"), claim("two", "local")];
    let mut running = three_nodes(more).await;
    // The first pod is decided and its write in progress: the API server does not show it yet.
    let faults = running.sandbox.faults();
    faults.next(Match::on("PATCH", "persistentvolumes"), Fault::Delay(Duration::from_secs(5)));
    running.create([user("first", "one")]);
    let state = running.wait(STATE, "a held volume", |state| held(state).len() == 1);
    let line = &held(&state)[0];
    assert_eq!((&line["pod"], &line["claim"]), (&json!("default/first"), &json!("one")));
    assert_eq!((&line["nodeName"], &line["volume"]), (&json!("a"), &json!("disk-a")));
    assert_eq!((&line["waitsFor"], &state["freeVolumes"]), (&json!("write"), &json!(0)));
    assert_eq!(running.explain("first")["placement"]["stage"], "pre-binding");
    assert_eq!(running.metric("pellucid_pre_binding_pods"), 1.0);
    running.create([user("second", "two")]);
    running.told("second", "3 node(s) didn't find available persistent volumes to bind").await;
    let volumes = running.read("/apis/v1/plugins/VolumeBinding/volumes");
    let volume = &volumes["volumes"][0];
    assert_eq!((&volume["claim"], &volume["assumed"]), (&json!("default/one"), &json!(true)));

    running.pass(5);
    assert_eq!(running.bound("first").await, "a");
    running.create([local_volume("disk-b", "b")]);
    assert_eq!(running.bound("second").await, "b");
    assert_eq!(running.bound_claim("two").await["spec"]["volumeName"], "disk-b");
    running.wait(STATE, "nothing held", |state| held(state).is_empty());
    assert_eq!(running.metric("pellucid_pre_binding_pods"), 0.0);
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"written\"}"), 2.0);
    running.stop().await;
}
