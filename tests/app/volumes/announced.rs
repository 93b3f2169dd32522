//! `status.nominatedNodeName` of a pod that waits for its volume between the decision and the Binding.

use kube::api::{Patch, PatchParams};
use pellucid::sandbox::{Objects, Trouble};
use serde_json::json;

use super::{CLAIM, SELECTED_NODE, claim, three_nodes_of_time, user};
use crate::common::running::{Hand, Running, nominated};

/// Returns the node of a placed pod whose volume is not made yet, once the pod's status names it.
async fn announced(running: &mut Running) -> String {
    running.sandbox.faults().trouble(Objects::named("default", "one"), Trouble::ProvisioningHangs);
    running.create([user("first", "one")]);
    let pod = running.pod("first", "its node is announced", |pod| nominated(pod).is_some()).await;
    let node = nominated(&pod).expect("a node").to_owned();
    let chosen = running.object(CLAIM, "one", "a node is chosen", |claim| {
        claim["metadata"]["annotations"][SELECTED_NODE] == node.as_str()
    });
    chosen.await;
    node
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_is_announced_while_a_pod_waits_and_cleared_when_it_is_bound() {
    let mut running = three_nodes_of_time(vec![claim("one", "late")], Some(Hand::default())).await;
    let node = announced(&mut running).await;
    running.sandbox.faults().lift(&Objects::named("default", "one"));
    assert_eq!(running.bound("first").await, node);
    running.pod("first", "nothing is announced", |pod| nominated(pod).is_none()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_is_given_up_is_announced_no_more() {
    let mut running = three_nodes_of_time(vec![claim("one", "late")], Some(Hand::default())).await;
    announced(&mut running).await;
    // As a provisioner that cannot make the volume there says it.
    let unchosen = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
    running.api(CLAIM).patch("one", &PatchParams::default(), &Patch::Merge(unchosen)).await.expect("a patch");
    running.pod("first", "nothing is announced", |pod| nominated(pod).is_none()).await;
    running.event("first", "FailedScheduling", "provisioning failed for PVC \"one\"").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_another_instance_announced_is_tried_first() {
    // Without the announcement one of the empty nodes would be as good.
    for node in ["a", "b", "c"] {
        let mut pod = crate::common::running::pod("first", 100);
        pod["status"] = json!({"nominatedNodeName": node});
        // It stands before the scheduler starts: the sandbox writes a new object's status after the object, and the pod
        // may be placed in between.
        let mut running = three_nodes_of_time(vec![pod], Some(Hand::default())).await;
        assert_eq!(running.bound("first").await, node);
        running.stop().await;
    }
}
