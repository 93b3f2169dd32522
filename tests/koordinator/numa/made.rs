//! Small clusters of which Koordinator's rules were read in its source, in the form of the recorded cases.

use serde_json::{Value, json};

use super::case::Case;
use super::compare::Compared;
use super::model::Rule;

const NODE: &str = "node.koordinator.sh/";

/// Makes a node with this NUMA policy, and its NodeResourceTopology: NUMA nodes of 2 cores with 2 threads.
fn machine(name: &str, n: usize, policy: &str) -> [Value; 2] {
    let cpus = n * 4;
    let cpu = |id: usize| json!({"id": id, "core": id / 2, "socket": 0, "node": id / 4});
    let detail = json!({"detail": (0..cpus).map(cpu).collect::<Value>()});
    let zone = |n: usize| {
        let amounts = [("cpu", "4"), ("memory", "8Gi")];
        let amounts = amounts.map(|(name, of)| json!({"name": name, "capacity": of, "allocatable": of}));
        json!({"name": format!("node-{n}"), "type": "Node", "resources": amounts})
    };
    let mut labels = json!({});
    labels[format!("{NODE}numa-topology-policy")] = json!(policy);
    let amounts = json!({
        "cpu": cpus.to_string(), "memory": format!("{}Gi", n * 8), "pods": "110",
        "koordinator.sh/gpu-core": "400", "koordinator.sh/gpu-memory-ratio": "400", "koordinator.sh/rdma": "200",
    });
    let node = json!({
        "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    });
    let report = json!({
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, "annotations": {"node.koordinator.sh/cpu-topology": detail.to_string()}},
        "topologyPolicies": ["None"], "zones": (0..n).map(zone).collect::<Value>(),
    });
    [node, report]
}

/// Makes a Device: cards of a type, each with its NUMA node.
fn devices(name: &str, kind: &str, nodes: &[u32]) -> Value {
    let amounts = match kind {
        "gpu" => json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi",
            "koordinator.sh/gpu-memory-ratio": "100"}),
        _ => json!({"koordinator.sh/rdma": "100"}),
    };
    let card = |(minor, node): (usize, &u32)| {
        json!({"type": kind, "minor": minor, "health": true, "resources": amounts,
            "topology": {"socketID": 0, "nodeID": node, "pcieID": format!("p{node}"), "busID": ""}})
    };
    let all: Vec<Value> = nodes.iter().enumerate().map(card).collect();
    json!({"kind": "Device", "metadata": {"name": name}, "spec": {"devices": all}})
}

fn pod(name: &str, requests: &Value) -> Value {
    json!({
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "labels": {}, "annotations": {}},
        "spec": {
            "schedulerName": "koord-scheduler",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        },
    })
}

/// Makes a pod that has these amounts of NUMA nodes, and these devices.
fn bound(name: &str, requests: &Value, zones: &Value, devices: &Value) -> Value {
    let mut made = pod(name, requests);
    made["spec"]["nodeName"] = json!("n");
    let status = json!({"numaNodeResources": zones});
    made["metadata"]["annotations"] = json!({
        "scheduling.koordinator.sh/resource-status": status.to_string(),
        "scheduling.koordinator.sh/device-allocated": devices.to_string(),
    });
    made
}

fn zone(node: u32, cpu: &str) -> Value {
    json!({"node": node, "resources": {"cpu": cpu}})
}

fn placed(zones: &[Value], devices: &Value) -> Value {
    json!({"node": "n", "resource-status": {"numaNodeResources": zones}, "device-allocated": devices})
}

/// Lets a pod arrive, and expects this of it. Returns the rules behind what ours does otherwise.
fn decide(objects: &[Value], pod: &Value, result: &Value) -> Vec<Rule> {
    let step = json!({"op": "pod", "pod": pod, "result": result});
    let case = json!({"id": "made", "objects": objects, "steps": [step], "result": {}});
    let mut out = Compared::default();
    Case::play(&case, &mut out);
    assert!(out.differences.is_empty(), "{:?}", out.differences);
    out.rules.into_keys().collect()
}

/// The adapters are the same to the pod, and NUMA node 1 has more CPU.
#[test]
fn where_cards_do_not_tell_numa_nodes_apart_cpu_and_memory_do() {
    let mut objects = machine("n", 2, "Restricted").to_vec();
    objects.push(devices("n", "rdma", &[0, 1]));
    objects.push(bound("p0", &json!({"cpu": "3"}), &json!([zone(0, "3")]), &json!({})));
    let asked = pod("p", &json!({"cpu": "1", "koordinator.sh/rdma": "50"}));
    let given = json!({"rdma": [{"minor": 1, "resources": {"koordinator.sh/rdma": "50"}}]});
    assert_eq!(decide(&objects, &asked, &placed(&[zone(1, "1")], &given)), []);
}

/// GPU 2 is in use, and GPU 3 beside it, so a GPU is looked for on NUMA node 1 first.
#[test]
fn the_gpus_that_a_pod_would_get_anywhere_decide_on_its_numa_nodes() {
    let mut objects = machine("n", 2, "Restricted").to_vec();
    objects.push(devices("n", "gpu", &[0, 0, 1, 1]));
    let whole = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi",
        "koordinator.sh/gpu-memory-ratio": "100"});
    let used = json!({"gpu": [{"minor": 2, "resources": whole}]});
    let requests =
        json!({"cpu": "3", "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"});
    objects.push(bound("p0", &requests, &json!([zone(1, "2")]), &used));
    let half = json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50", "cpu": "2"});
    let amounts = json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi",
        "koordinator.sh/gpu-memory-ratio": "50"});
    let given = json!({"gpu": [{"minor": 3, "resources": amounts}]});
    assert_eq!(decide(&objects, &pod("p", &half), &placed(&[zone(1, "2")], &given)), []);
}

/// NUMA nodes 0 and 3 are used least, 1 and 2 are a lower number in binary, and 1 and 3 are used less than these.
#[test]
fn a_lower_number_takes_the_place_of_a_greater_score_and_then_loses_to_another() {
    let memory = |node: u32, of: &str| json!({"node": node, "resources": {"memory": of}});
    let mut objects = machine("n", 4, "BestEffort").to_vec();
    let zones = json!([memory(1, "2Gi"), memory(2, "4Gi")]);
    objects.push(bound("p0", &json!({"memory": "6Gi"}), &zones, &json!({})));
    let asked = pod("p", &json!({"cpu": "7", "memory": "6Gi"}));
    let half = |node: u32| json!({"node": node, "resources": {"cpu": "3500m", "memory": "3Gi"}});
    assert_eq!(decide(&objects, &asked, &placed(&[half(1), half(3)], &json!(null))), []);
}

/// The GPUs are on two NUMA nodes, of which the node reports one.
#[test]
fn cards_on_numa_nodes_that_are_not_reported_do_not_agree_with_cpus() {
    let mut objects = machine("n", 1, "Restricted").to_vec();
    objects.push(devices("n", "gpu", &[0, 1]));
    let two = json!({"cpu": "1", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"});
    let said = "0/1 nodes are available: 1 Unaligned NUMA Hint cause cpu prefer [1] among [1].";
    assert_eq!(decide(&objects, &pod("p", &two), &json!({"message": said})), []);
}

/// Theirs refuses every pod with CPU there, ours those with CPUs of their own.
#[test]
fn a_pod_in_the_shared_pool_needs_no_topology_of_an_amplified_node() {
    let [mut node, mut report] = machine("n", 2, "");
    node["metadata"]["annotations"][format!("{NODE}resource-amplification-ratio")] = json!(r#"{"cpu": 1.5}"#);
    report["metadata"]["annotations"] = json!({});
    let objects = [node, report];
    let said = json!({"message": "0/1 nodes are available: 1 node(s) invalid CPU Topology."});
    assert_eq!(decide(&objects, &pod("p", &json!({"cpu": "1"})), &said), [Rule::Amplified]);
    let mut pinned = pod("p", &json!({"cpu": "1"}));
    pinned["metadata"]["labels"] = json!({"koordinator.sh/qosClass": "LSR"});
    assert_eq!(decide(&objects, &pinned, &said), []);
}

/// Theirs looks for CPUs of their own for all pods there, also for one that requests none.
#[test]
fn a_pod_without_cpu_needs_no_topology_of_a_node_that_forces_a_bind_policy() {
    let [mut node, mut report] = machine("n", 2, "Restricted");
    node["metadata"]["labels"][format!("{NODE}cpu-bind-policy")] = json!("FullPCPUsOnly");
    report["metadata"]["annotations"] = json!({});
    let objects = [node, report];
    let said = json!({"message": "0/1 nodes are available: 1 node(s) Insufficient NUMA Node resources."});
    assert_eq!(decide(&objects, &pod("p", &json!({"memory": "1Gi"})), &said), [Rule::Trims]);
}

/// Of NUMA node 0 two halves of cores are left, of which the node gives none, and of NUMA node 1 one CPU.
#[test]
fn cpus_that_a_forced_bind_policy_leaves_unused_count_for_the_score_of_a_pod_without_cpu() {
    let [mut node, report] = machine("n", 2, "Restricted");
    node["metadata"]["labels"][format!("{NODE}cpu-bind-policy")] = json!("FullPCPUsOnly");
    let mut halves = bound("p0", &json!({"cpu": "2"}), &json!([]), &json!({}));
    let status = json!({"cpuset": "0,2", "numaNodeResources": [zone(0, "2")]});
    halves["metadata"]["annotations"]["scheduling.koordinator.sh/resource-status"] =
        json!(status.to_string());
    let shared = bound("p1", &json!({"cpu": "3"}), &json!([zone(1, "3")]), &json!({}));
    let memory = json!({"node": 1, "resources": {"memory": "1Gi"}});
    let asked = pod("p", &json!({"memory": "1Gi"}));
    assert_eq!(decide(&[node, report, halves, shared], &asked, &placed(&[memory], &json!(null))), []);
}

/// A class that is not there has its own value: such pods get no CPUs of their own, except of prod.
#[test]
fn priority_classes_decide_who_gets_cpus() {
    let objects = machine("n", 2, "");
    for (class, cpuset) in
        [("", "0"), ("koord-prod", "0"), ("koord-mid", ""), ("koord-batch", ""), ("koord-free", "")]
    {
        let mut asked = pod("p", &json!({"cpu": "1"}));
        asked["metadata"]["labels"] = json!({"koordinator.sh/qosClass": "LSR"});
        asked["spec"]["priorityClassName"] = json!(class);
        let result = match cpuset {
            "" => json!({"node": "n"}),
            cpuset => json!({"node": "n", "resource-status": {"cpuset": cpuset}}),
        };
        assert_eq!(decide(&objects, &asked, &result), [], "{class}");
    }
}
