//! Failures between the decision and the Binding: the place is released, and the pod is tried again.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use pellucid::sandbox::{Fault, Match, Objects, Trouble};
use serde_json::json;

use super::{CLAIM, SELECTED_NODE, STATE, claim, held, local_volume, three_nodes, three_nodes_of_time, user};
use crate::common::running::Hand;

/// Path of what the pod of these tests waits for.
const WAKEUPS: &str = "/apis/v1/explain/pods/default/first/wakeups";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_on_the_volume_gives_the_place_up_and_the_pod_is_tried_again() {
    let mut running = three_nodes(vec![local_volume("disk-a", "a"), claim("one", "local")]).await;
    running.sandbox.faults().next(Match::on("PATCH", "persistentvolumes"), Fault::Status(409));
    assert_eq!(running.place(user("first", "one")).await, "a");
    running.event("first", "FailedScheduling", "(HTTP 409)").await;
    running.event("first", "FailedScheduling", "running PreBind failed").await;
    assert_eq!(running.bound_claim("one").await["spec"]["volumeName"], "disk-a");
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"refused\"}"), 1.0);
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"written\"}"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 1.0);
    running.wait(STATE, "nothing held", |state| held(state).is_empty());
    running.stop().await;
}

/// A real conflict: another client changes the claim while our write is in progress.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_others_change_meanwhile_is_chosen_for_anew() {
    let mut running = three_nodes_of_time(vec![claim("one", "late")], Some(Hand::default())).await;
    let ours = Match::new("PATCH", "persistentvolumeclaims/one");
    running.sandbox.faults().next(ours, Fault::Delay(Duration::from_secs(5)));
    running.create([user("first", "one")]);
    running.wait(STATE, "a claim held", |state| !held(state).is_empty());
    running.until("our write is under way", || running.sandbox.faults().pending() == 0).await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "seen"}}});
    let api = running.api(CLAIM);
    api.patch("one", &PatchParams::default(), &Patch::Merge(note)).await.expect("somebody else's write");

    // The place and the holds are released, and the pod waits out a backoff.
    running.event("first", "FailedScheduling", "binding volumes: provisioning failed for PVC").await;
    let waits = running.wait(WAKEUPS, "its backoff", |body| body["stage"] == "backoff");
    assert_eq!(waits["summary"], "Its last attempt failed; it is tried when its backoff ends.");
    assert!(waits["backoffUntil"].is_string(), "{waits:#}");
    assert!(held(&running.read(STATE)).is_empty());
    assert_eq!(running.metric("pellucid_pre_binding_pods"), 0.0);

    // The late write is rejected for its version, not carried out.
    running.pass(5);
    let refused = "pellucid_object_orders_total{outcome=\"refused\"}";
    running.until("the late write is refused", || running.metric(refused) == 1.0).await;
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"written\"}"), 0.0);
    running.let_pass(1).await;
    let node = running.bound("first").await;
    let bound = running.bound_claim("one").await;
    assert_eq!(bound["metadata"]["annotations"]["example.com/note"], "seen");
    assert_eq!(bound["metadata"]["annotations"][SELECTED_NODE], node.as_str());
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"written\"}"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 1.0);
    let bound = running.wait(WAKEUPS, "bound", |body| body["stage"] == "bound");
    assert_eq!(bound["summary"], "It is on a node and waits for nothing.");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_server_are_borne_for_a_while() {
    let mut running = three_nodes(vec![claim("one", "late"), claim("two", "late")]).await;
    let patch = Match::on("PATCH", "persistentvolumeclaims");
    running.sandbox.faults().times(patch.clone(), Fault::Status(500), 1);
    running.place(user("first", "one")).await;
    assert_eq!(running.metric("pellucid_object_retries_total"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 0.0);
    // The number of tries of one write: then the place is released.
    running.sandbox.faults().times(patch, Fault::Status(500), 6);
    let node = running.place(user("second", "two")).await;
    running.event("second", "FailedScheduling", "(HTTP 500)").await;
    assert_eq!(running.bound_claim("two").await["metadata"]["annotations"][SELECTED_NODE], node.as_str());
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"refused\"}"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 1.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_planned_anew_when_its_volume_cannot_be_made() {
    let mut running = three_nodes(vec![claim("one", "late")]).await;
    let one = Objects::named("default", "one");
    running.sandbox.faults().trouble_times(one, Trouble::ProvisioningFails, 1);
    let node = running.place(user("first", "one")).await;
    running.event("first", "FailedScheduling", "provisioning failed for PVC \"one\"").await;
    assert_eq!(running.bound_claim("one").await["metadata"]["annotations"][SELECTED_NODE], node.as_str());
    assert_eq!(running.metric("pellucid_object_orders_total{outcome=\"written\"}"), 2.0);
    running.stop().await;
}
