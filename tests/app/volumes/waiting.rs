//! Pods that cannot be placed until their claims change.

use pellucid::sandbox::{Objects, Trouble};
use serde_json::{Value, json};

use super::{claim, three_nodes, user};
use crate::common::running::{pod, with};

fn pod_reason(explanation: &Value) -> &Value {
    assert_eq!(explanation["nodeGroups"].as_array().map(Vec::len), Some(0), "{explanation:#}");
    &explanation["podReasons"][0]["code"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_waits_for_a_claim_to_come_and_to_be_bound_by_others() {
    let mut running = three_nodes(Vec::new()).await;
    running.create([user("first", "one")]);
    running.told("first", "persistentvolumeclaim \"one\" not found").await;
    assert_eq!(pod_reason(&running.explain("first")), "ClaimNotFound");
    let one = Objects::named("default", "one");
    running.sandbox.faults().trouble(one.clone(), Trouble::ProvisioningHangs);
    running.create([claim("one", "now")]);
    running.told("first", "pod has unbound immediate PersistentVolumeClaims").await;
    assert_eq!(pod_reason(&running.explain("first")), "UnboundImmediateClaims");
    running.sandbox.faults().lift(&one);
    running.bound("first").await;
    running.bound_claim("one").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_with_resource_claims_is_refused_by_name() {
    let mut running = three_nodes(Vec::new()).await;
    let claims = json!([{"name": "gpu", "resourceClaimName": "some-gpu"}]);
    running.create([with(pod("first", 100), "resourceClaims", claims)]);
    let words = "dynamic resource allocation is not supported; the pod uses resource claims [gpu]";
    running.told("first", words).await;
    assert_eq!(pod_reason(&running.explain("first")), "DynamicResourcesUnsupported");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_for_one_pod_is_not_for_a_second_one() {
    let mut exclusive = claim("mine", "late");
    exclusive["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    let mut running = three_nodes(vec![exclusive]).await;
    running.place(user("first", "mine")).await;
    running.create([user("second", "mine")]);
    running.told("second", "ReadWriteOncePod access mode already in-use by another pod").await;
    let explained = running.explain("second");
    let has = |list: &Value| list.to_string().contains("ClaimInUse");
    assert!(has(&explained["nodeGroups"]) || has(&explained["podReasons"]), "{explained:#}");
    running.kill("first").await;
    running.bound("second").await;
    running.stop().await;
}
