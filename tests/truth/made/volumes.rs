//! Volumes that are bound, wait for their first consumer, are for one pod alone, or are of a driver with a limit.

use serde_json::{Value, json};

use crate::objects::Objects;
use crate::random::Rng;

/// The driver of all volumes.
pub(crate) const DRIVER: &str = "disk.example.com";

/// Adds volumes and claims. Returns the claims' namespaces and names.
pub(super) fn add(rng: &mut Rng, objects: &mut Objects) -> Vec<(String, String)> {
    for (name, provisioner) in [("local", "kubernetes.io/no-provisioner"), ("fast", DRIVER)] {
        objects.put(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        }));
    }
    let nodes: Vec<String> = objects.nodes.keys().cloned().collect();
    for node in &nodes {
        if rng.chance(50) {
            let limit = json!({"name": DRIVER, "nodeID": node, "allocatable": {"count": rng.between(1, 2)}});
            objects.put(json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
                "spec": {"drivers": [limit]},
            }));
        }
    }
    let mut claims = Vec::new();
    for i in 0..rng.between(3, 7) {
        let name = format!("c{i}");
        match rng.below(4) {
            0 | 1 => add_bound(rng, objects, &name, &nodes),
            2 => objects.put(claim(&name, "local", "ReadWriteOnce")),
            _ => objects.put(claim(&name, "fast", "ReadWriteOnce")),
        }
        claims.push(("default".to_owned(), name));
    }
    for i in 0..rng.between(0, 3) {
        let mut free = volume(&format!("free{i}"), "local", "ReadWriteOnce");
        free["spec"]["nodeAffinity"] = only("kubernetes.io/hostname", &rng.pick(&nodes));
        free["status"] = json!({"phase": "Available"});
        objects.put(free);
    }
    if rng.chance(30) {
        claims.push(("default".into(), "missing".into()));
    }
    claims
}

fn only(key: &str, value: &str) -> Value {
    let here = json!([{"key": key, "operator": "In", "values": [value]}]);
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}})
}

fn add_bound(rng: &mut Rng, objects: &mut Objects, name: &str, nodes: &[String]) {
    let mode = if rng.chance(40) { "ReadWriteOncePod" } else { "ReadWriteOnce" };
    let mut claim = claim(name, "fast", mode);
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    claim["spec"]["volumeName"] = format!("v-{name}").into();
    claim["status"] = json!({"phase": "Bound"});
    let mut volume = volume(&format!("v-{name}"), "fast", mode);
    volume["spec"]["claimRef"] =
        json!({"namespace": "default", "name": name, "uid": claim["metadata"]["uid"].clone()});
    volume["status"] = json!({"phase": "Bound"});
    match rng.below(4) {
        0 => volume["spec"]["nodeAffinity"] = only("kubernetes.io/hostname", &rng.pick(nodes)),
        1 => volume["spec"]["nodeAffinity"] = only("topology.kubernetes.io/zone", rng.pick(&["a", "b"])),
        2 => volume["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": rng.pick(&["a", "c"])}),
        _ => {}
    }
    if rng.chance(60) {
        volume["spec"]["csi"] = json!({"driver": DRIVER, "volumeHandle": name});
    }
    objects.put(claim);
    objects.put(volume);
}

fn claim(name: &str, class: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-claim-{name}")},
        "spec": {
            "accessModes": [mode], "storageClassName": class, "volumeMode": "Filesystem",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Pending"},
    })
}

fn volume(name: &str, class: &str, mode: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": format!("uid-volume-{name}")},
        "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": [mode], "storageClassName": class,
            "volumeMode": "Filesystem",
        },
    })
}
