//! What is decided and said by cards: who must go is judged card by card, the preemptor gets the card that they leave, and
//! cards that a node lacks do not hide what else it lacks.

use pellucid::model::PodKey;
use serde_json::{Value, json};

use crate::common::reads::{ask, list};
use crate::reservation_cluster::Case;
use crate::reservation_rules::{node, pod};
use crate::reservation_shares::{cards, gpu_cluster, with_cards};

fn of_priority(name: &str, hundredths: i64, priority: i32) -> Value {
    let mut made = with_cards(pod(name, "none", "1"), hundredths);
    made["spec"]["priority"] = json!(priority);
    made
}

/// Returns the cards that a pod has.
fn minors(case: &Case, name: &str) -> Vec<i64> {
    let pod = &case.pods[&PodKey::new("default", name)];
    cards(pod).into_iter().map(|(minor, _)| minor).collect()
}

#[test]
fn the_pods_of_one_card_go_and_the_preemptor_gets_it() {
    let mut case = gpu_cluster(2, json!([]));
    for (name, hundredths, priority) in [("a", 60, 6), ("b", 60, 5), ("c", 40, 6)] {
        case.create_pod(&of_priority(name, hundredths, priority));
        case.settle();
    }
    let names = ["a", "b", "c"];
    let before = names.map(|name| minors(&case, name));
    assert_ne!(before[0], before[1], "60 and 60 are more than a card");
    assert!(before[..2].contains(&before[2]), "each of both has 40 left");
    case.create_pod(&of_priority("whole", 100, 10));
    for _ in 0..4 {
        case.settle();
        case.core.wait(std::time::Duration::from_secs(60));
    }
    case.settle();
    let own = minors(&case, "whole");
    assert_eq!(own.len(), 1, "it has a card");
    let on_it = names.into_iter().zip(&before).filter(|(_, card)| **card == own);
    let mut evicted = case.evicted.clone();
    evicted.sort();
    assert_eq!(evicted, on_it.map(|(name, _)| PodKey::new("default", name)).collect::<Vec<_>>());
}

/// Who adds the cards must not be refused for something that was known before.
#[test]
fn too_few_cards_do_not_hide_that_the_numa_nodes_are_too_small() {
    let mut demanding = node("n", "8");
    demanding["metadata"]["labels"] = json!({"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"});
    demanding["status"]["allocatable"]["koordinator.sh/gpu-core"] = json!("1000");
    demanding["status"]["allocatable"]["koordinator.sh/gpu-memory-ratio"] = json!("1000");
    let zone = |n: usize| {
        let of = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
        json!({"name": format!("node-{n}"), "type": "Node", "resources": [of("cpu", "4"), of("memory", "32Gi")]})
    };
    let topology = json!({
        "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": {"name": "n"}, "topologyPolicies": ["None"], "zones": [zone(0), zone(1)],
    });
    let card = json!({"type": "gpu", "minor": 0, "id": "n-0", "health": true, "resources": {
        "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi",
    }});
    let device = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": "n"}, "spec": {"devices": [card]},
    });
    let objects = json!({"nodes": [demanding], "others": [topology, device]});
    let mut case =
        Case::with(&json!({"id": "both", "objects": objects}), &["DeviceShare", "NodeNUMAResource"]);
    let mut large = with_cards(pod("large", "none", "6"), 200);
    for field in ["requests", "limits"] {
        large["spec"]["containers"][0]["resources"][field]["cpu"] = json!("6");
    }
    case.create_pod(&large);
    case.settle();
    let body = ask(&mut case.core, "/apis/v1/explain/pods/default/large/nearest?k=1");
    let failed = list(&body["nodes"][0], "/failed");
    let plugins: Vec<&Value> = failed.iter().map(|failed| &failed["plugin"]).collect();
    assert_eq!(plugins, ["DeviceShare", "NodeNUMAResource"], "{body:#}");
}
