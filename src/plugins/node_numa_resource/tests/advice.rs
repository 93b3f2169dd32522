//! What people are told of pods and NUMA nodes: how many nodes would do, and what would help.

use pellucid_framework::advice::{Change, Proposal};

use super::*;

/// Two nodes of 2 NUMA nodes with 4 CPUs; on `a` a pod has half of each NUMA node.
fn halved(plugin: &Arc<dyn Plugin>, labels: &[(&str, &str)]) -> TestCluster {
    let mut cluster = cluster(plugin, labels);
    bind(plugin, &mut cluster, "x", pinned(2, FULL), Some(0b01));
    bind(plugin, &mut cluster, "y", pinned(2, FULL), Some(0b10));
    cluster
}

fn proposals(plugin: &Arc<dyn Plugin>, cluster: &TestCluster, spec: &PodSpec) -> Vec<String> {
    let advice = plugin.advice().expect("it gives advice");
    let text = |proposal: Proposal| match proposal.change {
        Change::Request(amounts) => format!("request {amounts:?}"),
        Change::Annotation { key, value } => format!("{}: {key}={value}", proposal.text),
        Change::Move(moves) => moves.into_iter().map(|one| one.text).collect::<Vec<_>>().join(", "),
        _ => proposal.text,
    };
    let nodes = [cluster.idx("a")];
    advice.proposals_on(cluster.view(), spec, &nodes).into_iter().map(text).collect()
}

#[test]
fn another_policy_a_smaller_request_or_a_move_would_do() {
    let plugin = plugin(json!({}));
    let mut cluster = halved(&plugin, &[(keys::NUMA_TOPOLOGY_POLICY, "SingleNUMANode")]);
    let asked = pinned(4, FULL);
    assert_eq!(
        proposals(&plugin, &cluster, &asked),
        [
            "give node a NUMA policy Restricted instead of SingleNUMANode".to_owned(),
            "request [(\"cpu\", 2000)]".to_owned(),
        ]
    );
    // With another node that takes what the pods of the first have.
    cluster.apply(labelled("b", &[]));
    report(&mut cluster, "b", &topology(&[]));
    let moves = proposals(&plugin, &cluster, &asked);
    assert_eq!(
        moves[..2],
        [
            "move pod d/x from CPUs 0,4 of a to b".to_owned(),
            "move pod d/y from CPUs 2,6 of a to b".to_owned()
        ]
    );
    let own = single(pinned(4, FULL));
    let texts = proposals(&plugin, &cluster, &own);
    // The node demands the policy itself, so another one of the pod's would not do.
    assert!(!texts.iter().any(|text| text.starts_with("ask for NUMA policy")), "{texts:?}");
}

#[test]
fn the_policy_of_the_pod_gives_way_where_the_node_has_none() {
    let plugin = plugin(json!({}));
    let cluster = halved(&plugin, &[]);
    let texts = proposals(&plugin, &cluster, &single(pinned(4, FULL)));
    // Under Restricted it would take NUMA nodes of pods that have one each.
    let want = "ask for NUMA policy BestEffort instead of SingleNUMANode: \
                scheduling.koordinator.sh/numa-topology-spec={\"numaTopologyPolicy\":\"BestEffort\"}";
    assert_eq!(texts[0], want, "{texts:?}");
}

#[test]
fn a_required_bind_policy_is_preferred_instead() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "web-3", pinned(1, SPREAD), None);
    bind(&plugin, &mut cluster, "web-4", pinned(1, SPREAD), None);
    let asked = pinned(6, FULL);
    let texts = proposals(&plugin, &cluster, &asked);
    let want = "prefer FullPCPUs instead of requiring it (preferredCPUBindPolicy in its resource-spec): \
                scheduling.koordinator.sh/resource-spec={\"preferredCPUBindPolicy\":\"FullPCPUs\"}";
    assert_eq!(texts, [want, "request [(\"cpu\", 4000)]"]);
}

#[test]
fn a_sentence_counts_nodes_and_names_the_nearest() {
    let plugin = plugin(json!({}));
    let mut cluster = halved(&plugin, &[(keys::NUMA_TOPOLOGY_POLICY, "SingleNUMANode")]);
    let advice = plugin.advice().expect("it gives advice");
    let said = |cluster: &TestCluster, spec: &PodSpec| advice.sentence(cluster.view(), spec, Now::default());
    let asked = pinned(4, FULL);
    assert_eq!(
        said(&cluster, &asked).as_deref(),
        Some(
            "none of 1 nodes with known CPUs gives the pod its CPUs and NUMA nodes; on a, the nearest of the others, under \
             SingleNUMANode the pod asks for 4 cpu and 1Gi memory; NUMA 0: 2 of 4 cpu, too little alone, 3Gi of 4Gi memory, \
             1 of 2 cores free in whole; NUMA 1: 2 of 4 cpu, too little alone, 3Gi of 4Gi memory, 1 of 2 cores free in \
             whole"
        )
    );
    cluster.apply(labelled("b", &[]));
    report(&mut cluster, "b", &topology(&[]));
    let text = said(&cluster, &asked).expect("node a refuses it");
    assert!(text.starts_with("1 of 2 nodes with known CPUs gives the pod its CPUs"), "{text}");
    assert_eq!(said(&cluster, &spec(1000, 1, &[])), None, "every node takes it");
}
