//! Controller `noderesource` through an API server: what it publishes, follows and takes away, and that one replica writes.

use kube::api::{Patch, PatchParams};
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::framework::controllers;
use pellucid::{config, plugins};
use serde_json::{Value, json};

use crate::app::devices::{definition, device};
use crate::common::client;
use crate::common::running::{Running, node, parts, pod, start_configured};

const CONFIGURATION: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: pellucid
    plugins:
      multiPoint:
        enabled: [{name: DeviceShare}]
";
const KIND: &str = "scheduling.koordinator.sh/v1alpha1/Device";
const STATE: &str = "/apis/v1/plugins/DeviceShare/nodeResources";

fn configuration(elects: bool) -> config::Configuration {
    let registry = plugins::registry();
    let mut made = config::parse(CONFIGURATION, "the test's", &registry).expect("valid");
    made.controllers = controllers::named(&registry, &["noderesource".to_owned()]).expect("it is known");
    made.leader_election.leader_elect = Some(elects);
    made
}

/// A Device of eight cards of 8 GiB, of which the last ones are broken.
fn eight(broken: usize) -> Value {
    let healthy: Vec<bool> = (0..8).map(|card| card + broken < 8).collect();
    let mut made = device("n1", &healthy);
    made["metadata"]["labels"] =
        json!({"node.koordinator.sh/gpu-model": "T4", "node.koordinator.sh/gpu-driver-version": "550"});
    made
}

fn objects() -> Vec<Value> {
    vec![definition(), node("n1", "a", 10), eight(0)]
}

/// Returns whether a node says that it has so many cards.
fn has(node: &Value, cards: i64) -> bool {
    ["allocatable", "capacity"].iter().all(|list| {
        let of = |name: &str| node["status"][*list][format!("koordinator.sh/{name}")].as_str();
        let percent = (100 * cards).to_string();
        ["gpu", "gpu-core", "gpu-memory-ratio"].iter().all(|name| of(name) == Some(percent.as_str()))
            && of("gpu-memory") == Some(format!("{}Gi", 8 * cards).as_str())
    })
}

async fn change(cluster: &Running, device: Value) {
    let devices = cluster.api(KIND);
    devices.patch("n1", &PatchParams::default(), &Patch::Merge(device)).await.expect("patched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_cards_are_published_followed_and_taken_away() {
    let mut cluster = start_configured(objects(), configuration(false), None).await;
    cluster.object("v1/Node", "n1", "eight cards", |node| has(node, 8)).await;
    let labels = |node: &Value| {
        let of = |name: &str| node["metadata"]["labels"][format!("node.koordinator.sh/{name}")].clone();
        (of("gpu-model"), of("gpu-driver-version")) == (json!("T4"), json!("550"))
    };
    cluster.object("v1/Node", "n1", "labels", labels).await;
    let body = cluster.wait(STATE, "in step", |body| body["inStep"] == 1);
    assert_eq!(
        (&body["enabled"], &body["nodes"][0]["onNode"]),
        (&json!(true), &body["nodes"][0]["ofDevices"])
    );

    let mut asking = pod("half", 100);
    let amounts = json!({"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50});
    asking["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    assert_eq!(cluster.place(asking).await, "n1");

    change(&cluster, eight(1)).await;
    cluster.object("v1/Node", "n1", "seven cards", |node| has(node, 7)).await;
    cluster.delete(KIND, "n1").await;
    let is_bare = |node: &Value| {
        let lists = ["allocatable", "capacity"].map(|list| node["status"][list].as_object().cloned());
        lists.into_iter().flatten().all(|list| list.keys().all(|name| !name.contains("koordinator.sh")))
    };
    let bare = cluster.object("v1/Node", "n1", "no cards", is_bare).await;
    assert_eq!(bare["status"]["allocatable"]["cpu"], "10", "what others publish stays");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_replica_writes_nothing_until_it_leads() {
    let mut cluster = start_configured(objects(), configuration(true), None).await;
    cluster.object("v1/Node", "n1", "eight cards", |node| has(node, 8)).await;
    let second =
        InstanceConfig { configuration: configuration(true), ..parts(cluster.sandbox.kube_config()).await };
    let second = Instance::start(second).await.expect("an instance");
    client::wait(second.address, STATE, "the node", |body| body["inStep"] == 1);
    change(&cluster, eight(1)).await;
    cluster.object("v1/Node", "n1", "seven cards", |node| has(node, 7)).await;
    let seven = |body: &Value| body["nodes"][0]["onNode"]["koordinator.sh/gpu-core"] == "700";
    let body = client::wait(second.address, STATE, "the change", seven);
    assert_eq!(body["nodes"][0]["lastWritten"], Value::Null, "{body}");
    // The first one goes.
    std::mem::replace(&mut cluster.instance, second).stop().await;
    change(&cluster, eight(2)).await;
    cluster.object("v1/Node", "n1", "six cards", |node| has(node, 6)).await;
    cluster.wait(STATE, "its write", |body| body["nodes"][0]["lastWritten"].is_string());
    cluster.stop().await;
}

#[test]
fn unknown_controllers_are_refused_with_the_known_ones() {
    let problem = controllers::named(&plugins::registry(), &["nodes".to_owned()]).err();
    assert_eq!(problem.as_deref(), Some("there is no controller \"nodes\"; there are: noderesource"));
}
