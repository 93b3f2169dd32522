//! What Koordinator's plugins read, added to a random cluster: quotas, cards, CPUs and NUMA nodes.

use serde_json::{Value, json};

use crate::objects::{Objects, text};
use crate::random::Rng;

const QUOTAS: [&str; 3] = ["org", "team-a", "team-b"];
const QUOTA: &str = "quota.scheduling.koordinator.sh";
const CARD_MEMORY: u64 = 16;

/// Adds quotas, a Device for each node with GPUs and a topology for some others, and has pods ask for them.
pub(super) fn add(rng: &mut Rng, objects: &mut Objects) {
    add_quotas(rng, objects);
    let nodes: Vec<String> = objects.nodes.keys().cloned().collect();
    for node in nodes {
        let json = objects.node(&node).clone();
        if let Ok(cards) = text(&json["status"]["allocatable"]["nvidia.com/gpu"]).parse() {
            add_device(rng, objects, &node, cards);
        }
        if rng.chance(50)
            && let Ok(cores @ 2..) = text(&json["status"]["allocatable"]["cpu"]).parse()
        {
            add_topology(rng, objects, &node, cores);
        }
    }
    let pods: Vec<String> = objects.pods.keys().cloned().collect();
    for pod in pods {
        objects.change_pod(&pod, |json| ask(rng, json));
    }
}

fn add_quotas(rng: &mut Rng, objects: &mut Objects) {
    for name in QUOTAS {
        let is_parent = name == "org";
        let mut labels = json!({format!("{QUOTA}/is-parent"): is_parent.to_string()});
        let (min, max) = if is_parent {
            (json!({"cpu": 8, "memory": "32Gi"}), json!({"cpu": rng.between(6, 16), "memory": "64Gi"}))
        } else {
            labels[format!("{QUOTA}/parent")] = "org".into();
            let min = rng.between(0, 3);
            (json!({"cpu": min}), json!({"cpu": min + rng.between(1, 8)}))
        };
        objects.put(json!({
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}"), "labels": labels},
            "spec": {"min": min, "max": max},
        }));
    }
}

/// Makes a card of a node.
pub(crate) fn card(node: &str, minor: u64, healthy: bool) -> Value {
    json!({
        "type": "gpu", "minor": minor, "id": format!("{node}-{minor}"), "health": healthy,
        "resources": {
            "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100",
            "koordinator.sh/gpu-memory": format!("{CARD_MEMORY}Gi"),
        },
    })
}

fn add_device(rng: &mut Rng, objects: &mut Objects, node: &str, cards: u64) {
    let cards_of = (0..cards).map(|minor| card(node, minor, !rng.chance(8))).collect::<Vec<_>>();
    let healthy = cards_of.iter().filter(|card| card["health"] == true).count() as u64;
    objects.put(json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": node, "uid": format!("device-{node}")}, "spec": {"devices": cards_of},
    }));
    objects.change_node(node, |json| {
        let amounts = [
            ("gpu-core", (healthy * 100).to_string()),
            ("gpu-memory-ratio", (healthy * 100).to_string()),
            ("gpu-memory", format!("{}Gi", healthy * CARD_MEMORY)),
        ];
        for (name, amount) in amounts {
            json["status"]["allocatable"][format!("koordinator.sh/{name}")] = amount.into();
        }
    });
}

/// Two NUMA nodes where there are four cores, and a policy on some nodes.
fn add_topology(rng: &mut Rng, objects: &mut Objects, node: &str, cpus: u64) {
    let numa = if cpus >= 4 { 2 } else { 1 };
    let memory = text(&objects.node(node)["status"]["allocatable"]["memory"]).to_owned();
    let gibibytes: u64 = memory.trim_end_matches("Gi").parse().expect("gibibytes");
    let zone = (cpus / numa, format!("{}Gi", gibibytes / numa));
    objects.put(topology(node, cpus, &vec![zone; numa as usize]));
    if rng.chance(40) {
        let policy = rng.pick(&["SingleNUMANode", "SingleNUMANode", "Restricted", "BestEffort"]);
        objects.change_node(node, |json| {
            json["metadata"]["labels"]["node.koordinator.sh/numa-topology-policy"] = policy.into();
        });
    }
}

/// Makes the report of a node's CPUs, two threads a core, and of its NUMA nodes with what each has of CPU and memory.
pub(crate) fn topology(node: &str, cpus: u64, zones: &[(u64, String)]) -> Value {
    let (cores, numa) = (cpus / 2, zones.len() as u64);
    let cpu = |id: u64| {
        let core = id % cores;
        json!({"id": id, "core": core, "socket": 0, "node": core * numa / cores})
    };
    let detail = json!({"detail": (0..cores * 2).map(cpu).collect::<Value>()});
    let zone = |(n, (cpus, memory)): (usize, &(u64, String))| {
        let of = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        json!({"name": format!("node-{n}"), "type": "Node", "resources": [
            of("cpu", &cpus.to_string()), of("memory", memory),
        ]})
    };
    json!({
        "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": {"name": node, "uid": format!("topology-{node}"), "annotations": {
            "node.koordinator.sh/cpu-topology": detail.to_string(),
            "kubelet.koordinator.sh/cpu-manager-policy": json!({"policy": "static"}).to_string(),
        }},
        "topologyPolicies": ["None"],
        "zones": zones.iter().enumerate().map(zone).collect::<Vec<_>>(),
    })
}

fn ask(rng: &mut Rng, pod: &mut Value) {
    if rng.chance(50) {
        let quota = rng.pick(&QUOTAS[1..]);
        pod["metadata"]["labels"][format!("{QUOTA}/name")] = quota.into();
    }
    if pod["spec"]["nodeName"].is_string() {
        return;
    }
    let requests = &mut pod["spec"]["containers"][0]["resources"]["requests"];
    match rng.below(12) {
        0 => requests["koordinator.sh/gpu"] = rng.pick(&["20", "50", "100", "200"]).into(),
        1 => {
            requests["koordinator.sh/gpu-core"] = rng.pick(&["30", "50", "100"]).into();
            requests["koordinator.sh/gpu-memory-ratio"] = rng.pick(&["30", "50", "100"]).into();
        }
        2 | 3 => {
            requests["cpu"] = rng.pick(&["1", "2", "2", "4"]).into();
            pod["spec"]["priority"] = 9500.into();
            pod["metadata"]["labels"]["koordinator.sh/qosClass"] = rng.pick(&["LSR", "LSR", "LSE"]).into();
            if rng.chance(50) {
                let policy = rng.pick(&["FullPCPUs", "SpreadByPCPUs"]);
                pod["metadata"]["annotations"]["scheduling.koordinator.sh/resource-spec"] =
                    json!({"preferredCPUBindPolicy": policy}).to_string().into();
            }
        }
        _ => {}
    }
    let resources = &mut pod["spec"]["containers"][0]["resources"];
    resources["limits"] = resources["requests"].clone();
}
