//! What fails between the decision and the Binding: the place is given up, and the pod tried again.

use pellucid::sandbox::{Fault, Match, Objects, Trouble};

use crate::made::{SELECTED_NODE, STATE, claim, held, local_volume, three_nodes, user};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_on_the_volume_gives_the_place_up_and_the_pod_is_tried_again() {
    let mut running = three_nodes(vec![local_volume("disk-a", "a"), claim("one", "local")]).await;
    running.sandbox.faults().next(Match::on("PATCH", "persistentvolumes"), Fault::Status(409));
    running.create([user("first", "one")]);
    assert_eq!(running.bound("first").await, "a");
    running.event("first", "FailedScheduling", "(HTTP 409)").await;
    running.event("first", "FailedScheduling", "running PreBind failed").await;
    assert_eq!(running.bound_claim("one").await["spec"]["volumeName"], "disk-a");
    assert_eq!(running.metric("pellucid_volume_orders_total{outcome=\"refused\"}"), 1.0);
    assert_eq!(running.metric("pellucid_volume_orders_total{outcome=\"written\"}"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 1.0);
    running.wait(STATE, "nothing held", |state| held(state).is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_server_are_borne_for_a_while() {
    let mut running = three_nodes(vec![claim("one", "late"), claim("two", "late")]).await;
    let patch = Match::on("PATCH", "persistentvolumeclaims");
    running.sandbox.faults().times(patch.clone(), Fault::Status(500), 1);
    running.create([user("first", "one")]);
    running.bound("first").await;
    assert_eq!(running.metric("pellucid_volume_retries_total"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 0.0);
    // As often as one write is tried: then the place is given up.
    running.sandbox.faults().times(patch, Fault::Status(500), 6);
    running.create([user("second", "two")]);
    let node = running.bound("second").await;
    running.event("second", "FailedScheduling", "(HTTP 500)").await;
    assert_eq!(running.bound_claim("two").await["metadata"]["annotations"][SELECTED_NODE], node.as_str());
    assert_eq!(running.metric("pellucid_volume_orders_total{outcome=\"refused\"}"), 1.0);
    assert_eq!(running.metric("pellucid_bind_failures_total"), 1.0);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_is_planned_anew_when_its_volume_cannot_be_made() {
    let mut running = three_nodes(vec![claim("one", "late")]).await;
    let one = Objects::named("default", "one");
    running.sandbox.faults().trouble_times(one, Trouble::ProvisioningFails, 1);
    running.create([user("first", "one")]);
    let node = running.bound("first").await;
    running.event("first", "FailedScheduling", "provisioning failed for PVC \"one\"").await;
    assert_eq!(running.bound_claim("one").await["metadata"]["annotations"][SELECTED_NODE], node.as_str());
    assert_eq!(running.metric("pellucid_volume_orders_total{outcome=\"written\"}"), 2.0);
    running.stop().await;
}
