//! Volumes end to end: pods wait for their claims, claims are bound where pods can run, and failures are retried.

mod announced;
mod failing;
mod local;
mod provisioned;
mod waiting;

use serde_json::{Value, json};

use crate::common::running::{Hand, Running, node, pod, start_with, with};

pub(crate) const CLAIM: &str = "v1/PersistentVolumeClaim";
pub(crate) const VOLUME: &str = "v1/PersistentVolume";
pub(crate) const STATE: &str = "/apis/v1/plugins/VolumeBinding/state";
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Starts node `a` in zone `za`, `b` in `zb`, `c` in `zc`, the classes, and more objects.
pub(crate) async fn three_nodes(more: Vec<Value>) -> Running {
    three_nodes_of_time(more, None).await
}

/// Does the same, optionally with the scheduler's clock advanced by the test.
pub(crate) async fn three_nodes_of_time(more: Vec<Value>, hand: Option<Hand>) -> Running {
    let wait = "WaitForFirstConsumer";
    let mut objects: Vec<Value> =
        ["a", "b", "c"].iter().map(|name| node(name, &format!("z{name}"), 8)).collect();
    objects.extend([
        class("local", "kubernetes.io/no-provisioner", wait),
        class("late", "disk.example", wait),
        class("now", "disk.example", "Immediate"),
    ]);
    objects.extend(more);
    start_with(objects, None, hand).await
}

pub(crate) fn class(name: &str, provisioner: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode
    })
}

/// Makes a volume on the disk of a node.
pub(crate) fn local_volume(name: &str, node: &str) -> Value {
    let requirement = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local", "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
        }
    })
}

pub(crate) fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}}}
    })
}

/// Makes a pod that mounts a claim.
pub(crate) fn user(name: &str, claim: &str) -> Value {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    with(pod(name, 100), "volumes", volumes)
}

/// Restricts a pod to a node.
pub(crate) fn only_on(pod: Value, node: &str) -> Value {
    with(pod, "nodeSelector", json!({"kubernetes.io/hostname": node}))
}

impl Running {
    /// Waits until a claim is bound; returns it.
    pub(crate) async fn bound_claim(&self, name: &str) -> Value {
        self.object(CLAIM, name, "bound", |claim| claim["status"]["phase"] == "Bound").await
    }

    /// Returns the explanation of a pod.
    pub(crate) fn explain(&self, pod: &str) -> Value {
        self.read(&format!("/apis/v1/explain/pods/default/{pod}"))
    }
}

/// Returns the holds of a state.
pub(crate) fn held(state: &Value) -> &[Value] {
    state["held"].as_array().expect("what is held")
}

/// Returns plugin and code of the first reason of each node group, sorted.
pub(crate) fn groups(explanation: &Value) -> Vec<(String, String)> {
    let groups = explanation["nodeGroups"].as_array().expect("node groups").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = groups.map(|g| (text(&g["plugin"]), text(&g["reasons"][0]["code"]))).collect();
    all.sort();
    all
}
