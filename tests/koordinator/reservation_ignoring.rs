//! Pods that ignore reservations: they see nodes without any, and what is kept of these nodes between attempts decides as what is
//! worked out anew. And owners that go beside their reservation, which see what it holds.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid::model::PodKey;
use serde_json::{Value, json};

use crate::common::rng::Rng;
use crate::reservation_cluster::Case;
use crate::reservation_rules::{cluster, is_on, is_refused, node, pod, reservation, try_pod};
use crate::reservation_shares::{cards, gpu_cluster, with_cards};

fn ignoring(name: &str, cpu: &str) -> Value {
    let mut made = pod(name, "none", cpu);
    made["metadata"]["labels"]["scheduling.koordinator.sh/reservation-ignored"] = json!("true");
    made
}

#[test]
fn a_pod_that_ignores_reservations_has_their_room_and_takes_none() {
    let mut case = cluster(json!([node("n", "4")]), json!([reservation("r", "3", &json!({"ttl": "0s"}))]));
    assert_eq!(try_pod(&mut case, &pod("plain", "none", "2")), is_refused("InsufficientResource"));
    assert_eq!(try_pod(&mut case, &ignoring("first", "2")), is_on("n"));
    assert_eq!(case.reservations["r"]["status"]["currentOwners"], Value::Null);
    // Its own room is no other's: what is kept of the node follows it.
    assert_eq!(try_pod(&mut case, &ignoring("second", "2")), is_on("n"));
    assert_eq!(
        try_pod(&mut case, &ignoring("third", "2")).0,
        None,
        "the node is full without the reservation"
    );
    case.delete_pod(&PodKey::new("default", "first"));
    case.settle();
    case.core.wait(Duration::from_secs(600));
    case.settle();
    assert_eq!(case.pods[&PodKey::new("default", "third")]["spec"]["nodeName"], "n");
}

#[test]
fn a_pod_that_ignores_reservations_and_names_one_goes_to_its_node() {
    let on = |name: &str, node: &str| {
        let mut made = reservation(name, "2", &json!({"ttl": "0s"}));
        made["spec"]["template"]["spec"]["nodeName"] = json!(node);
        made
    };
    let held = json!([on("a", "n0"), on("b", "n1")]);
    let mut case = cluster(json!([node("n0", "4"), node("n1", "4"), node("n2", "4")]), held);
    let naming = |name: &str, affinity: &Value| {
        let mut made = ignoring(name, "1");
        let annotations = json!({"scheduling.koordinator.sh/reservation-affinity": affinity.to_string()});
        made["metadata"]["annotations"] = annotations;
        made
    };
    for i in 0..3 {
        assert_eq!(try_pod(&mut case, &naming(&format!("p{i}"), &json!({"name": "b"}))), is_on("n1"));
    }
    // Of one that is not there nothing is known, so any will do.
    let (on, _) = try_pod(&mut case, &naming("other", &json!({"name": "none"})));
    assert_eq!(on.as_deref(), Some("n0"), "the other one has more room");
    let mut elsewhere = naming("elsewhere", &json!({}));
    elsewhere["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}],
    });
    assert_eq!(try_pod(&mut case, &elsewhere), is_refused("NoReservationMatches"));
}

/// Returns the nodes of all pods.
fn places(case: &Case) -> BTreeMap<PodKey, Value> {
    case.pods.iter().map(|(key, pod)| (key.clone(), pod["spec"]["nodeName"].clone())).collect()
}

#[test]
fn what_is_kept_of_nodes_decides_as_what_is_worked_out_anew() {
    let mut placed = 0;
    for seed in 1..=40u64 {
        let mut random = Rng::new(seed);
        let nodes: Vec<Value> = (0..5).map(|i| node(&format!("n{i}"), &(4 + 2 * i).to_string())).collect();
        let mut cases = [cluster(json!(nodes), json!([])), cluster(json!(nodes), json!([]))];
        cases[1].core.switches.set_reuse(false);
        for step in 0..50 {
            let (what, cpu) = (random.below(10), ["1", "1", "2"][random.below(3)]);
            let pick = random.below(1000);
            for case in &mut cases {
                match what {
                    0 | 1 => {
                        let ttl = ["0s", "120s"][pick % 2];
                        let more = json!({"ttl": ttl, "allocateOnce": pick.is_multiple_of(3)});
                        let mut made = reservation(&format!("r{step}"), cpu, &more);
                        made["metadata"]["uid"] = json!(format!("r{step}-uid"));
                        made["metadata"]["creationTimestamp"] = json!(case.moment());
                        case.put_reservation(made);
                    }
                    2..=5 => drop(case.create_pod(&ignoring(&format!("p{step}"), cpu))),
                    6 => drop(case.create_pod(&pod(&format!("p{step}"), ["web", "db"][pick % 2], cpu))),
                    7 | 8 => {
                        let all: Vec<PodKey> = case.pods.keys().cloned().collect();
                        if let Some(key) = all.get(pick % all.len().max(1)) {
                            case.delete_pod(key);
                        }
                    }
                    _ => case.core.wait(Duration::from_secs(40)),
                }
                case.settle();
            }
            assert_eq!(places(&cases[0]), places(&cases[1]), "seed {seed}, step {step}");
        }
        placed += places(&cases[0]).values().filter(|node| node.is_string()).count();
    }
    assert!(placed > 200, "{placed} pods are placed in the end");
}

/// Returns a node `n` of two NUMA nodes with four CPUs each, whose policy is SingleNUMANode, and a small one without. A
/// Restricted reservation of 2 CPUs and a pod with 3 leave 2 and 1 of `n`.
fn aligned_cluster() -> Case {
    let detail: Vec<Value> =
        (0..8).map(|cpu| json!({"id": cpu, "core": cpu, "socket": 0, "node": cpu / 4})).collect();
    let zone = |id: usize| {
        let cpu = json!({"name": "cpu", "capacity": "4", "allocatable": "4", "available": "4"});
        json!({"name": format!("node-{id}"), "type": "Node", "resources": [cpu]})
    };
    let topology = json!({
        "kind": "NodeResourceTopology",
        "metadata": {
            "name": "n", "uid": "t",
            "annotations": {"node.koordinator.sh/cpu-topology": json!({"detail": detail}).to_string()},
        },
        "topologyPolicies": ["None"],
        "zones": [zone(0), zone(1)],
    });
    let mut aligned = node("n", "8");
    aligned["metadata"]["labels"] = json!({"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"});
    let more = json!({"allocatePolicy": "Restricted", "allocateOnce": false, "ttl": "0s"});
    let objects = json!({
        "nodes": [aligned, node("small", "3")], "others": [topology],
        "reservations": [reservation("r", "2", &more)],
    });
    let mut case = Case::with(&json!({"id": "aligned", "objects": objects}), &["NodeNUMAResource"]);
    assert_eq!(case.reservations["r"]["status"]["nodeName"], "n");
    assert_eq!(try_pod(&mut case, &pod("other", "db", "3")), is_on("n"));
    case
}

#[test]
fn an_owner_that_its_reservation_is_too_small_for_sees_what_it_holds_of_numa_nodes() {
    let mut case = aligned_cluster();
    // Without the reservation a NUMA node would have 4, and the better score.
    assert_eq!(try_pod(&mut case, &pod("owner", "web", "3")), is_on("small"));
    assert_eq!(try_pod(&mut case, &pod("next", "web", "3")), is_refused("NumaTopologyMismatch"));
    assert_eq!(try_pod(&mut case, &pod("fitting", "web", "2")), is_on("n"));
    assert_eq!(case.reservations["r"]["status"]["currentOwners"][0]["name"], "fitting");
}

#[test]
fn a_pod_that_ignores_reservations_has_what_they_hold_of_numa_nodes_and_cards() {
    let mut case = aligned_cluster();
    assert_eq!(try_pod(&mut case, &ignoring("first", "4")), is_on("n"));
    let more = json!({"allocateOnce": false, "ttl": "0s"});
    let held = with_cards(reservation("r", "4", &more), 100);
    let mut case = gpu_cluster(1, json!([held]));
    assert_eq!(cards(&case.reservations["r"]), [(0, "100".to_owned())]);
    let first = with_cards(ignoring("first", "1"), 100);
    assert_eq!(try_pod(&mut case, &first), is_on("n"));
    assert_eq!(cards(&case.pods[&PodKey::new("default", "first")]), [(0, "100".to_owned())]);
    let (on, _) = try_pod(&mut case, &with_cards(pod("owner", "web", "1"), 100));
    assert_eq!(on, None, "the card is in use");
    case.delete_pod(&PodKey::new("default", "first"));
    case.settle();
    case.core.wait(Duration::from_secs(600));
    case.settle();
    assert_eq!(case.pods[&PodKey::new("default", "owner")]["spec"]["nodeName"], "n");
}

#[test]
fn a_pod_that_ignores_reservations_takes_a_card_that_none_holds_first() {
    let more = json!({"allocateOnce": false, "ttl": "0s"});
    let held = with_cards(reservation("r", "4", &more), 100);
    let mut case = gpu_cluster(2, json!([held]));
    let [(reserved, _)] = cards(&case.reservations["r"])[..] else { panic!("one card") };
    assert_eq!(try_pod(&mut case, &with_cards(ignoring("first", "1"), 100)), is_on("n"));
    assert_eq!(cards(&case.pods[&PodKey::new("default", "first")])[0].0, 1 - reserved);
}
