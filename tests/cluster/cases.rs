//! The cases: schedule, refuse and explain, gangs, preemption, volumes, hand-over, rights.

use std::time::Duration;

use pellucid::app::instance::Instance;
use serde_json::{Value, json};

use crate::common::dialects::{DIALECTS, NATIVE, member, pod_group};
use crate::common::running::{self, with};
use crate::schedulers::{Schedulers, explained, until_it_leads};
use crate::suite::{MARK, NAMESPACE, NODES, SCHEDULER, Suite};

const POD: &str = "v1/Pod";
const CLAIM: &str = "v1/PersistentVolumeClaim";
const VOLUME: &str = "v1/PersistentVolume";
/// How long a controller may take to bind a claim before the suite does it.
const CONTROLLER: Duration = Duration::from_secs(3);
/// Pods that are created while the leader is stopped.
const HANDED_OVER: usize = 20;

/// Makes a pod that only the suite's nodes can run and only its scheduler places.
fn pod(name: &str, milli_cpu: u32) -> Value {
    let mut made = running::pod(name, milli_cpu);
    for (field, value) in [
        ("schedulerName", json!(SCHEDULER)),
        ("serviceAccountName", json!(NAMESPACE)),
        ("automountServiceAccountToken", json!(false)),
        ("nodeSelector", json!({MARK: "true"})),
        ("tolerations", json!([{"operator": "Exists"}])),
    ] {
        made["spec"][field] = value;
    }
    made
}

fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str()
}

async fn bound(suite: &Suite, name: &str) -> String {
    let pod = suite.wait(POD, name, "bound", |pod| node_of(pod).is_some()).await;
    let node = node_of(&pod).unwrap_or_default().to_owned();
    assert!(NODES.contains(&node.as_str()), "{name} is on {node}, which is not the suite's");
    node
}

/// Deletes pods as a kubelet does that has ended them.
async fn end(suite: &Suite, names: &[String]) {
    for name in names {
        let now = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
        suite.api(POD).delete(name, &now).await.expect("deleted");
        suite.wait(POD, name, "gone", Value::is_null).await;
    }
}

/// Runs all cases.
pub(crate) async fn run(suite: &Suite) {
    let schedulers = Schedulers::new(suite).await;
    let mut leader = schedulers.start().await;
    until_it_leads(&mut leader).await;
    schedules_and_explains(suite, &leader).await;
    refuses_and_explains(suite, &leader).await;
    for dialect in DIALECTS {
        if dialect == "native" && suite.is_real && !suite.serves(NATIVE).await {
            println!("*** NOT TRIED: the server does not serve {NATIVE}, so native gangs were skipped ***");
            continue;
        }
        gang_is_placed_as_a_whole(suite, &leader, dialect).await;
    }
    preempts(suite).await;
    goes_where_its_volume_is(suite).await;
    let last = hands_over(suite, &schedulers, leader).await;
    last.stop().await;
    schedulers.check_rights();
}

async fn schedules_and_explains(suite: &Suite, leader: &Instance) {
    suite.create(pod("plain", 100)).await;
    let node = bound(suite, "plain").await;
    let body = explained(leader, "plain", "bound", |body| body["placement"]["stage"] == "bound");
    assert!(body.to_string().contains(&node), "{body:#}");
    end(suite, &["plain".into()]).await;
}

async fn refuses_and_explains(suite: &Suite, leader: &Instance) {
    suite.create(pod("large", 64_000)).await;
    let is_told = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        let is_told = |one: &Value| {
            one["type"] == "PodScheduled"
                && one["reason"] == "Unschedulable"
                && one["message"].as_str().is_some_and(|text| text.contains("3 Insufficient cpu"))
        };
        conditions.is_some_and(|all| all.iter().any(is_told))
    };
    suite.wait(POD, "large", "a condition that says why", is_told).await;
    explained(leader, "large", "refused for its CPU", |body| body.to_string().contains("Insufficient cpu"));
    let pod = suite.read(POD, "large").await;
    assert_eq!(node_of(&pod), None);
    end(suite, &["large".into()]).await;
}

/// Four of five members wait; the fifth completes the gang, which is then bound as a whole.
async fn gang_is_placed_as_a_whole(suite: &Suite, leader: &Instance, dialect: &str) {
    if let Some(group) = pod_group(dialect, dialect, 5) {
        suite.create(group).await;
    }
    let names: Vec<String> = (0..5).map(|n| format!("{dialect}-{n}")).collect();
    for name in &names[..4] {
        suite.create(member(dialect, pod(name, 1_000), dialect, 5)).await;
    }
    for name in &names[..4] {
        explained(leader, name, "short of its quorum", |body| body.to_string().contains("4 of 5 are there"));
        let pod = suite.read(POD, name).await;
        assert_eq!(node_of(&pod), None, "{dialect}: {name} was placed before the quorum was there");
    }
    suite.create(member(dialect, pod(&names[4], 1_000), dialect, 5)).await;
    for name in &names {
        bound(suite, name).await;
    }
    end(suite, &names).await;
}

/// A pod of high priority takes the place of one of low priority on full nodes.
async fn preempts(suite: &Suite) {
    for (name, value) in [("pellucid-suite-low", 1), ("pellucid-suite-high", 1_000)] {
        suite.create(running::priority_class(name, value, "PreemptLowerPriority")).await;
    }
    let low: Vec<String> = NODES.iter().enumerate().map(|(n, _)| format!("low-{n}")).collect();
    for name in &low {
        suite.create(with(pod(name, 1_500), "priorityClassName", json!("pellucid-suite-low"))).await;
        bound(suite, name).await;
    }
    suite.create(with(pod("high", 1_500), "priorityClassName", json!("pellucid-suite-high"))).await;
    let nominated = |pod: &Value| pod["status"]["nominatedNodeName"].is_string();
    let pod = suite.wait(POD, "high", "nominated", nominated).await;
    let node = pod["status"]["nominatedNodeName"].as_str().unwrap_or_default().to_owned();
    let mut left = Vec::new();
    for name in low {
        let pod = suite.read(POD, &name).await;
        if node_of(&pod) != Some(&node) {
            assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{name} is no victim");
            left.push(name);
            continue;
        }
        let is_leaving = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
        suite.wait(POD, &name, "deleted for the other", is_leaving).await;
        end(suite, &[name]).await;
    }
    assert_eq!((bound(suite, "high").await, left.len()), (node, NODES.len() - 1));
    left.push("high".into());
    end(suite, &left).await;
}

/// The scheduler chooses a local volume for a claim, and its pod goes to the node of the volume.
async fn goes_where_its_volume_is(suite: &Suite) {
    let class = "pellucid-suite-local";
    suite
        .create(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
            "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
        }))
        .await;
    let hostname = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [NODES[1]]});
    suite
        .create(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pellucid-suite-disk"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/mnt/disk"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostname]}]}},
            },
        }))
        .await;
    suite.patch(VOLUME, "pellucid-suite-disk", &json!({"status": {"phase": "Available"}})).await;
    suite
        .create(json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }))
        .await;
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]);
    suite.create(with(pod("user", 100), "volumes", volumes)).await;
    let is_chosen = |volume: &Value| volume["spec"]["claimRef"]["name"] == "claim";
    suite.wait(VOLUME, "pellucid-suite-disk", "chosen for the claim", is_chosen).await;
    let is_bound = |claim: &Value| claim["status"]["phase"] == "Bound";
    if suite.within(CONTROLLER, CLAIM, "claim", is_bound).await.is_err() {
        let change = json!({
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "pellucid-suite-disk"},
        });
        suite.patch(CLAIM, "claim", &change).await;
        for (kind, name) in [(CLAIM, "claim"), (VOLUME, "pellucid-suite-disk")] {
            suite.patch(kind, name, &json!({"status": {"phase": "Bound"}})).await;
        }
    }
    assert_eq!(bound(suite, "user").await, NODES[1]);
    end(suite, &["user".into()]).await;
}

/// Pods that arrive while the leader stops are bound by the other replica. Returns the new leader.
async fn hands_over(suite: &Suite, schedulers: &Schedulers, leader: Instance) -> Instance {
    let mut standby = schedulers.start().await;
    let names: Vec<String> = (0..HANDED_OVER).map(|n| format!("handed-{n}")).collect();
    for name in &names[..HANDED_OVER / 2] {
        suite.create(pod(name, 100)).await;
    }
    let stopping = tokio::spawn(leader.stop());
    for name in &names[HANDED_OVER / 2..] {
        suite.create(pod(name, 100)).await;
    }
    stopping.await.expect("stopped");
    until_it_leads(&mut standby).await;
    for name in &names {
        bound(suite, name).await;
    }
    end(suite, &names).await;
    standby
}
