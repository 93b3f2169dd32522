//! What people are told of pods and devices, on two nodes of shared cards.

use std::sync::Arc;

use pellucid_framework::Plugin;
use pellucid_framework::advice::{Advice, Change, Proposal};
use pellucid_model::{Now, PodSpec};
use serde_json::{Value, json};

use super::super::tests::{HINT, JOINT, bound, cluster, devices, gpu, plugin, rdma, report, spec};
use pellucid_plugin_helper::testing::TestCluster;

const CORE: &str = "koordinator.sh/gpu-core";
const RATIO: &str = "koordinator.sh/gpu-memory-ratio";

/// Returns the annotation of a pod with a part of a card.
fn has(minor: i64, percent: i64) -> String {
    let (core, ratio) = (percent.to_string(), percent.to_string());
    json!({"gpu": [{"minor": minor, "resources": {CORE: core, RATIO: ratio}}]}).to_string()
}

/// Returns node a with two cards and node b with one; half of each card is used.
fn halves() -> (Arc<dyn Plugin>, TestCluster) {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 0)]), "1");
    report(&mut cluster, "b", &devices(&[gpu(0, 0)]), "1");
    bound(&mut cluster, "p", "a", &has(0, 50));
    bound(&mut cluster, "q", "a", &has(1, 60));
    bound(&mut cluster, "r", "b", &has(0, 50));
    (plugin, cluster)
}

fn advice(plugin: &Arc<dyn Plugin>) -> &dyn Advice {
    plugin.advice().expect("it gives advice")
}

fn proposals(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: &PodSpec) -> Vec<Proposal> {
    let nodes = ["a", "b"].map(|name| cluster.idx(name));
    advice(plugin).proposals_on(cluster.view(), spec, &nodes)
}

#[test]
fn a_sentence_counts_nodes_and_fragments() {
    let (plugin, cluster) = halves();
    let sentence = |spec: &PodSpec| advice(&plugin).sentence(cluster.view(), spec, Now::default());
    let whole = spec(&[("nvidia.com/gpu", 1)], &[]);
    assert_eq!(
        sentence(&whole).as_deref(),
        Some(
            "1 gpu device with gpu-core 100 and gpu-memory-ratio 100 free: none of 2 nodes has it; half a card is free on 2 \
             nodes, a whole one on none: 1.4 of 1.4 free cards are fragments"
        )
    );
    let share = spec(&[(CORE, 55), (RATIO, 55)], &[]);
    let said = sentence(&share).expect("no card has as much");
    assert!(said.ends_with("none of 2 nodes has it; 1.4 of 1.4 free cards are fragments"), "{said}");
    assert_eq!(sentence(&spec(&[(CORE, 50), (RATIO, 50)], &[])), None, "every node takes it");
    assert_eq!(sentence(&spec(&[], &[])), None);
}

#[test]
fn a_pod_moves_from_its_card_to_another_half() {
    let (plugin, cluster) = halves();
    let proposals = proposals(&plugin, &cluster, &spec(&[("nvidia.com/gpu", 1)], &[]));
    let moved = |proposal: &Proposal| match &proposal.change {
        Change::Move(moves) => Some(moves.iter().map(|one| one.text.clone()).collect::<Vec<_>>()),
        _ => None,
    };
    // 50 is free on card 0 of a and on b; the pod with 60 finds no other card, though it requests 50 only.
    let texts: Vec<Vec<String>> = proposals.iter().filter_map(moved).collect();
    assert!(texts.contains(&vec!["move pod d/p from gpu 0 of a to b".to_owned()]), "{texts:?}");
    assert!(texts.contains(&vec!["move pod d/r from gpu 0 of b to a".to_owned()]), "{texts:?}");
    assert!(texts.iter().all(|moves| moves.len() == 1), "{texts:?}");
}

#[test]
fn what_is_asked_for_instead_is_what_a_card_has_left() {
    let (plugin, cluster) = halves();
    let requests = |spec: &PodSpec| {
        let request = |proposal: Proposal| match proposal.change {
            Change::Request(amounts) => {
                Some(amounts.into_iter().map(|(name, n)| (name.to_string(), n)).collect::<Vec<_>>())
            }
            _ => None,
        };
        proposals(&plugin, &cluster, spec).into_iter().filter_map(request).collect::<Vec<_>>()
    };
    let of = |name: &str, n| (name.to_owned(), n);
    assert_eq!(requests(&spec(&[("koordinator.sh/gpu", 80)], &[])), [vec![of("koordinator.sh/gpu", 50)]]);
    assert_eq!(requests(&spec(&[(CORE, 80), (RATIO, 20)], &[])), [vec![of(CORE, 50), of(RATIO, 20)]]);
    let whole = spec(&[("nvidia.com/gpu", 1)], &[]);
    assert_eq!(requests(&whole), [] as [Vec<(String, i64)>; 0]);
    let shares = proposals(&plugin, &cluster, &whole).into_iter().filter_map(|of| match of.change {
        Change::Exchange(other) => {
            Some((other.resource.to_string(), other.amount, other.instead_of.to_string(), of.text))
        }
        _ => None,
    });
    let text = "take 50 % of a card (koordinator.sh/gpu 50) instead of a whole one (nvidia.com/gpu 1)";
    assert_eq!(
        shares.collect::<Vec<_>>(),
        [("koordinator.sh/gpu".to_owned(), 50, "nvidia.com/gpu".to_owned(), text.to_owned())]
    );
    let two = proposals(&plugin, &cluster, &spec(&[("nvidia.com/gpu", 2)], &[]));
    assert!(two.iter().all(|of| !matches!(of.change, Change::Exchange(_))), "{two:?}");
}

#[test]
fn fewer_cards_and_looser_hints_are_proposed_where_they_do() {
    let plugin = plugin(Value::Null);
    let mut cluster = cluster(&plugin);
    report(&mut cluster, "a", &devices(&[gpu(0, 0), gpu(1, 1), rdma(0, 2, 0)]), "1");
    let of = |cluster: &TestCluster, spec: &PodSpec| {
        let one = |proposal: Proposal| match proposal.change {
            Change::Request(amounts) => format!("{amounts:?}"),
            Change::Annotation { key, value } => format!("{key}={value}"),
            _ => String::new(),
        };
        proposals(&plugin, cluster, spec).into_iter().map(one).collect::<Vec<_>>()
    };
    let three = spec(&[("nvidia.com/gpu", 3)], &[]);
    assert_eq!(of(&cluster, &three), ["[(\"nvidia.com/gpu\", 2)]"]);
    let scoped = r#"{"gpu":{"requiredTopologyScope":"PCIe"}}"#;
    let scoped = spec(&[("nvidia.com/gpu", 2)], &[(HINT, scoped)]);
    assert_eq!(
        of(&cluster, &scoped),
        ["[(\"nvidia.com/gpu\", 1)]".to_owned(), format!("{HINT}={{\"gpu\":{{}}}}")]
    );
    let joint = r#"{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}"#;
    let joint = spec(&[("nvidia.com/gpu", 1), ("koordinator.sh/rdma", 100)], &[(JOINT, joint)]);
    assert_eq!(of(&cluster, &joint), [format!("{JOINT}={{\"deviceTypes\":[\"gpu\",\"rdma\"]}}")]);
}

#[test]
fn the_read_about_a_pod_says_what_each_node_lacks() {
    let (plugin, cluster) = halves();
    let pod = pellucid_plugin_helper::testing::pod_with(spec(&[(CORE, 55), (RATIO, 55)], &[]));
    let body = advice(&plugin).body(cluster.view(), &pod, Now::default());
    assert_eq!((&body["totalNodes"], &body["acceptingNodes"]), (&json!(2), &json!(0)));
    assert_eq!(body["code"], "InsufficientGpuDevices");
    let request = &body["requests"][0];
    assert_eq!(request["each"], json!({CORE: "55", RATIO: "55"}));
    let counts = ["nodesWithEnough", "nodesWithEnoughIfEmpty", "bestCount"].map(|name| request[name].clone());
    assert_eq!(counts, [json!(0), json!(2), json!(0)]);
    assert_eq!(body["nodes"][0]["requests"][0]["lacking"], json!({"gpu-core": 2}));
    assert_eq!(body["nodes"][0]["ifEmpty"], true);
}

#[test]
fn idle_devices_are_those_that_no_pending_pod_can_use() {
    let (plugin, cluster) = halves();
    let idle = |specs: &[&PodSpec]| {
        let all = advice(&plugin).idle_parts(cluster.view(), cluster.idx("a"), specs);
        all.into_iter().map(|idle| (idle.part, idle.amount, idle.blocked_by, idle.pods)).collect::<Vec<_>>()
    };
    let (whole, half) = (spec(&[("nvidia.com/gpu", 1)], &[]), spec(&[("koordinator.sh/gpu", 50)], &[]));
    let of = |part: &str, amount, pods| (part.to_owned(), amount, "gpu-core".to_owned(), pods);
    assert_eq!(idle(&[&whole, &whole]), [of("gpu 0", 50, 2), of("gpu 1", 40, 2)]);
    assert_eq!(idle(&[&whole, &half]), [of("gpu 1", 40, 2)]);
    assert_eq!(idle(&[&spec(&[], &[])]), []);
}

#[test]
fn gauges_add_up() {
    let (_, cluster) = halves();
    let read = |name: &str| {
        let family = super::gauges::ALL.iter().find(|family| family.name == name).expect("a family");
        (family.read)(cluster.view())
    };
    let sample = |labels: &[&str], n: f64| (labels.iter().map(|label| (*label).to_owned()).collect(), n);
    assert_eq!(read("pellucid_devices"), [sample(&["gpu", "shared"], 3.0)]);
    let amounts = read("pellucid_device_amount");
    for (state, n) in [("total", 300.0), ("allocated", 160.0), ("free", 140.0)] {
        assert!(amounts.contains(&sample(&["gpu", CORE, state], n)), "{amounts:?}");
    }
    let [(labels, parts)] = &read("pellucid_device_fragments")[..] else { panic!("one type") };
    assert_eq!(labels, &["gpu"]);
    assert!((parts - 1.4).abs() < 1e-9, "{parts}");
}
