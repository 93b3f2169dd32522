//! Nodes, and the pods that are there wherever a node is.

use serde_json::{Value, json};

use crate::common::cluster::SCHEDULER;
use crate::made::owned_by;
use crate::objects::Objects;
use crate::random::Rng;

/// Adds nodes `n1`, `n2`, ...
pub(super) fn add(rng: &mut Rng, objects: &mut Objects, n: usize) {
    for i in 1..=n {
        objects.put_node(node(rng, &format!("n{i}")));
    }
}

fn node(rng: &mut Rng, name: &str) -> Value {
    let mut labels = json!({"kubernetes.io/hostname": name});
    let mut label = |rng: &mut Rng, percent: usize, key: &str, values: &[&str]| {
        if rng.chance(percent) {
            labels[key] = rng.pick(values).into();
        }
    };
    label(rng, 90, "topology.kubernetes.io/zone", &["a", "b", "c"]);
    label(rng, 60, "rack", &["r1", "r2", "r3"]);
    label(rng, 60, "disktype", &["ssd", "hdd"]);
    label(rng, 50, "pool", &["web", "batch"]);
    label(rng, 40, "generation", &["3", "5", "8"]);
    let mut taints = Vec::new();
    let mut taint = |rng: &mut Rng, percent: usize, key: &str, value: &str, effect: &str| {
        if rng.chance(percent) {
            taints.push(json!({"key": key, "value": value, "effect": effect}));
        }
    };
    taint(rng, 12, "dedicated", "gpu", "NoSchedule");
    taint(rng, 8, "team", "blue", "NoSchedule");
    taint(rng, 5, "maintenance", "", "NoExecute");
    taint(rng, 8, "slow", "yes", "PreferNoSchedule");
    let is_closed = rng.chance(10);
    if is_closed {
        taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
    }
    let mut amounts = json!({
        "cpu": rng.pick(&["1", "2", "4", "4", "8"]),
        "memory": rng.pick(&["2Gi", "4Gi", "8Gi", "16Gi"]),
        "pods": rng.pick(&["110", "110", "110", "8", "5"]),
    });
    if rng.chance(25) {
        amounts["nvidia.com/gpu"] = rng.pick(&["1", "2", "4"]).into();
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": labels},
        "spec": {"taints": taints, "unschedulable": is_closed},
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]
        },
    })
}

/// Adds pods of a DaemonSet and static pods to some nodes.
pub(super) fn add_fixtures(rng: &mut Rng, objects: &mut Objects) {
    let has_daemon = rng.chance(40);
    let names: Vec<String> = objects.nodes.keys().cloned().collect();
    for node in names {
        if has_daemon && rng.chance(80) {
            objects.put_pod(fixture(rng, "agent", &node, owned_by("DaemonSet", "agent")));
        }
        if rng.chance(10) {
            let mut pod = fixture(rng, "static", &node, owned_by("Node", &node));
            pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "hash"});
            objects.put_pod(pod);
        }
    }
}

fn fixture(rng: &mut Rng, app: &str, node: &str, owners: Value) -> Value {
    let requests = json!({"cpu": rng.pick(&["50m", "100m", "500m"]), "memory": rng.pick(&["32Mi", "256Mi"])});
    let ports = if rng.chance(20) { json!([{"containerPort": 9000, "hostPort": 9000}]) } else { json!([]) };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{app}-{node}"), "namespace": "default", "labels": {"app": app},
            "ownerReferences": owners,
        },
        "spec": {
            "schedulerName": SCHEDULER, "nodeName": node, "priority": 2000, "preemptionPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}, "ports": ports}],
        },
        "status": {"phase": "Running"},
    })
}
