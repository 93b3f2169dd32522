//! The nodes of the soak test, and their changes: resource names that come and go, taints and labels that flip.

use serde_json::{Value, json};

use super::rng::Rng;

/// The node of plain pods: its name, and the value of its label `own`.
pub(crate) const PLAIN: &str = "plain";
/// Value of the label `own` of the nodes for fitting gangs.
pub(crate) const GANGS: &str = "gangs";
/// Number of nodes for fitting gangs.
pub(crate) const GANG_NODES: usize = 4;
/// Number of nodes for all other pods.
pub(crate) const COMMON: usize = 48;
/// Maximum number of nodes that come and go.
pub(crate) const PASSING: usize = 8;
/// Cores per node.
pub(crate) const CORES: usize = 16;

/// Returns the initial objects of the cluster.
pub(crate) fn at_the_start() -> Vec<Value> {
    let mut objects: Vec<Value> = [("low", -10), ("middle", 100), ("high", 100_000)]
        .map(|(name, value)| {
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name}, "value": value})
        })
        .into();
    let mut plain = owned(PLAIN, PLAIN, 1_000);
    for amounts in ["capacity", "allocatable"] {
        plain["status"][amounts]["pods"] = "10000".into();
    }
    objects.push(plain);
    objects.extend((0..GANG_NODES).map(|n| owned(&format!("gangs-{n}"), GANGS, CORES)));
    objects.extend((0..COMMON).map(common));
    objects
}

fn node(name: &str, cores: usize, labels: Value) -> Value {
    let amounts = json!({
        "cpu": cores.to_string(), "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi", "example.com/gpu": "8"
    });
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// Returns a node that accepts only pods that tolerate its owner taint.
fn owned(name: &str, owner: &str, cores: usize) -> Value {
    let mut made = node(name, cores, json!({"kubernetes.io/hostname": name, "own": owner}));
    made["spec"]["taints"] = json!([{"key": "own", "value": owner, "effect": "NoSchedule"}]);
    made
}

/// Returns the name of a common node.
pub(crate) fn common_name(n: usize) -> String {
    format!("node-{n:02}")
}

fn common(n: usize) -> Value {
    let name = common_name(n);
    let zone = format!("zone-{}", n % 3);
    node(&name, CORES, json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}))
}

/// Returns a temporary node with made-up resources, labels and taints.
pub(crate) fn passing(rng: &mut Rng, number: usize) -> Value {
    // Some names have nearly the maximum length.
    let name = match rng.below(4) {
        0 => format!("passing-{number}.{}", ["x".repeat(63), "y".repeat(63), "z".repeat(63)].join(".")),
        _ => format!("passing-{number}"),
    };
    let zone = format!("zone-{}", rng.below(40));
    let mut made =
        node(&name, CORES, json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}));
    for _ in 0..rng.below(20) {
        let resource = unheard_of(rng);
        let amount = rng.pick(&["0", "1", "9223372036854775807", "1e18", "7Ei", "1m"]).copied();
        made["status"]["allocatable"][&resource] = amount.into();
        made["status"]["capacity"][&resource] = amount.into();
    }
    for n in 0..rng.below(50) {
        made["metadata"]["labels"][format!("passing.example/{n}-{}", rng.below(1_000))] =
            "x".repeat(63).into();
    }
    let taint = |rng: &mut Rng| {
        let effect = rng.pick(&["NoSchedule", "PreferNoSchedule", "NoExecute"]).copied();
        json!({"key": format!("taint.example/{}", rng.below(1_000)), "effect": effect})
    };
    made["spec"]["taints"] = (0..rng.below(10)).map(|_| taint(rng)).collect();
    made["spec"]["unschedulable"] = rng.chance(20).into();
    made
}

/// Returns a made-up resource name.
pub(crate) fn unheard_of(rng: &mut Rng) -> String {
    format!("r{}.example/card-{}", rng.below(100_000), rng.below(100_000))
}

/// Returns a random change of a common node, as a merge patch. Half of the changes restore the original state.
pub(crate) fn change(rng: &mut Rng, n: usize) -> Value {
    let key = format!("flips.example/{}", rng.below(8));
    let back = rng.chance(50);
    match rng.below(7) {
        0 if back => json!({"spec": {"taints": null}}),
        0 => json!({"spec": {"taints": [{"key": key, "value": "x", "effect": "NoSchedule"}]}}),
        1 => json!({"spec": {"unschedulable": !back}}),
        2 if back => json!({"metadata": {"labels": {key: null}}}),
        2 => json!({"metadata": {"labels": {key: format!("v{}", rng.below(1_000))}}}),
        3 => {
            json!({"metadata": {"labels": {"topology.kubernetes.io/zone": format!("zone-{}", if back { n % 3 } else { 99 })}}})
        }
        4 => {
            let cores = if back { CORES } else { rng.below(2 * CORES) };
            json!({"status": {"allocatable": {"cpu": cores.to_string()}}})
        }
        5 => {
            // A later change of this kind may remove resources of earlier ones.
            let resource = format!("flips.example/card-{}", rng.below(4));
            let amount = if back { Value::Null } else { rng.below(100).to_string().into() };
            json!({"status": {"allocatable": {resource: amount}}})
        }
        _ => {
            let odd = "\u{202e}ti si siht\u{202c}\u{7}\u{0}\u{1b}[31m\r\n\t\u{feff}\u{2028}"
                .repeat(1 + rng.below(50));
            json!({"metadata": {"annotations": {"odd.example/note": if back { Value::Null } else { odd.into() }}}})
        }
    }
}
