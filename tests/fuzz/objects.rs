//! Objects as an API server may hand them out. What can be read goes into a scheduler, which goes on placing what it can.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::ObjectKind;
use serde_json::{Value, json};

use crate::common::made;
use crate::fuzz::fuzz;
use crate::fuzz::mutate::tree;

fn decoder() -> Decoder {
    Decoder::of(&pellucid::plugins::registry())
}

/// Returns the recorded nodes and pods of kube-scheduler's cases.
fn recorded(field: &str) -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/oracle/schedule.jsonl");
    let text = std::fs::read_to_string(file).expect("the recorded cases");
    let cases = text.lines().take(60).map(|line| serde_json::from_str::<Value>(line).expect("a case"));
    let of = |mut case: Value| case[field].as_array_mut().map(std::mem::take).unwrap_or_default();
    let all: Vec<Value> = cases.flat_map(of).collect();
    assert!(!all.is_empty(), "the cases have no {field}");
    all
}

/// Returns a good object of each kind beside nodes and pods, with what readers look at.
fn others() -> Vec<(ObjectKind, Value)> {
    let meta = json!({"name": "o", "namespace": "ns", "uid": "u", "resourceVersion": "3", "labels": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z"});
    let spec = json!({
        "minMember": 2, "scheduleTimeoutSeconds": 5, "minResources": {"cpu": "1"}, "priorityClassName": "high",
        "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]},
        "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "volumeName": "pv",
        "claimRef": {"namespace": "ns", "name": "c", "uid": "u"}, "csi": {"driver": "d", "volumeHandle": "h"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Gt", "values": ["3"]}]}]}},
        "drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["z"], "allocatable": {"count": 3}}],
        "resources": {"requests": {"storage": "1Gi"}}, "minAvailable": "50%", "maxUnavailable": 1, "attacher": "d",
        "source": {"persistentVolumeName": "pv"}, "nodeName": "n", "weight": 3, "capability": {"cpu": "4"},
        "schedulingPolicy": {"gang": {"minCount": 2}}, "podGroupTemplates": [{"name": "t"}]
    });
    let status = json!({"phase": "Bound", "disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"},
        "scheduled": 1, "attached": true, "conditions": [{"type": "T", "status": "True"}]});
    ObjectKind::ALL
        .into_iter()
        .map(|kind| {
            let object = json!({"metadata": meta, "spec": spec, "status": status, "provisioner": "d",
                "volumeBindingMode": "WaitForFirstConsumer", "capacity": "5Gi", "nodeTopology": {"matchLabels": {"z": "1"}},
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "z", "values": ["a"]}]}]});
            (kind, object)
        })
        .collect()
}

#[test]
fn nodes_and_pods() {
    let decoder = decoder();
    let (nodes, pods) = (recorded("nodes"), recorded("pods"));
    fuzz("nodes", |seed| tree(seed, &nodes), |value| decoder.node(value).is_ok());
    fuzz("pods", |seed| tree(seed, &pods), |value| decoder.pod(value).is_ok());
}

#[test]
fn other_kinds() {
    let (decoder, all) = (decoder(), others());
    let make = |seed: u64| {
        let (kind, good) = &all[(seed % all.len() as u64) as usize];
        (*kind, tree(seed, std::slice::from_ref(good)))
    };
    fuzz("other kinds", make, |(kind, value)| decoder.object(*kind, value).is_ok());
}

/// The scheduler takes whatever could be read, in groups, and then still places a plain pod on a plain node.
#[test]
fn a_scheduler_goes_on_whatever_it_reads() {
    let (decoder, nodes, pods, others) = (decoder(), recorded("nodes"), recorded("pods"), others());
    const GROUP: u64 = 25;
    let make = |seed: u64| {
        let seeds = (0..GROUP).map(|n| seed * GROUP + n);
        let mut inputs = Vec::new();
        for seed in seeds {
            inputs.extend(
                decoder.node(&tree(seed, &nodes)).ok().map(|node| Input::NodeApplied(Arc::new(node))),
            );
            inputs.extend(decoder.pod(&tree(seed, &pods)).ok().map(|pod| Input::PodApplied(Arc::new(pod))));
            let (kind, good) = &others[(seed % others.len() as u64) as usize];
            let object = decoder.object(*kind, &tree(seed, std::slice::from_ref(good)));
            inputs.extend(object.ok().map(|object| Input::ObjectApplied(Arc::new(object))));
        }
        inputs
    };
    let groups = (crate::fuzz::inputs() as u64).div_ceil(GROUP);
    for seed in 0..groups {
        let mut core = made::core();
        for input in make(seed) {
            core.apply(input);
        }
        core.run();
        core.see_node(&made::node("plain-node", 4_000));
        core.run();
        core.wait(made::SECOND * 600);
        core.run();
        let pod = made::pod("plain", 100);
        core.attempt(&pod);
        assert!(core.node_of(&pod).is_some(), "group {seed}: the plain pod has no place");
    }
}
