//! Owners that want CPUs or one NUMA node, where their reservation has not what they want: they go beside it, or elsewhere.

use serde_json::{Value, json};

use crate::reservation_cluster::Case;
use crate::reservation_rules::{is_on, is_refused, node, pod, reservation, status, try_pod};
use crate::reservation_shares::{cpus, of, pinned};

/// Returns a node of two NUMA nodes with four CPUs each, and its topology.
fn machine(name: &str, policy: &str) -> (Value, Value) {
    let mut machine = node(name, "8");
    machine["metadata"]["labels"] = json!({"node.koordinator.sh/numa-topology-policy": policy});
    let detail: Vec<Value> =
        (0..8).map(|cpu| json!({"id": cpu, "core": cpu / 2, "socket": 0, "node": cpu / 4})).collect();
    let zone = |numa: usize| {
        let of = |resource: &str, amount: &str| json!({"name": resource, "capacity": amount, "allocatable": amount, "available": amount});
        json!({"name": format!("node-{numa}"), "type": "Node", "resources": [of("cpu", "4"), of("memory", "32Gi")]})
    };
    let topology = json!({
        "kind": "NodeResourceTopology",
        "metadata": {
            "name": name, "uid": format!("t-{name}"),
            "annotations": {
                "node.koordinator.sh/cpu-topology": json!({"detail": detail}).to_string(),
                "kubelet.koordinator.sh/cpu-manager-policy": r#"{"policy": "none"}"#,
            },
        },
        "topologyPolicies": ["None"],
        "zones": [zone(0), zone(1)],
    });
    (machine, topology)
}

fn cluster(machines: Vec<(Value, Value)>, reservations: Value) -> Case {
    let (nodes, others): (Vec<Value>, Vec<Value>) = machines.into_iter().unzip();
    let objects = json!({"nodes": nodes, "others": others, "reservations": reservations});
    Case::with(&json!({"id": "aligned", "objects": objects}), &["NodeNUMAResource"])
}

/// Returns a reservation of three CPUs, none of which is assigned to it.
fn without_cpus(name: &str) -> Value {
    reservation(name, "3", &json!({"allocatePolicy": "Restricted"}))
}

#[test]
fn an_owner_for_which_its_reservation_has_no_cpus_gets_them_on_the_other_numa_node() {
    let mut case = cluster(vec![machine("n", "SingleNUMANode")], json!([without_cpus("r")]));
    let held = case.reservations["r"]["metadata"]["annotations"].to_string();
    assert!(held.contains(r#"\"node\":0"#), "{held}");
    assert_eq!(try_pod(&mut case, &pinned(pod("p", "web", "2"), "2")), is_on("n"));
    assert_eq!(cpus(of(&case, "p")), "4-5");
    assert!(status(&case, "r")["currentOwners"].is_null(), "{}", status(&case, "r"));
}

#[test]
fn an_owner_that_needs_a_reservation_goes_where_one_has_cpus_for_it() {
    for other in ["a", "z"] {
        let labelled = |name: &str| {
            let (mut machine, topology) = machine(name, "SingleNUMANode");
            machine["metadata"]["labels"]["kubernetes.io/hostname"] = json!(name);
            (machine, topology)
        };
        let on = |mut of: Value, node: &str| {
            of["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
            of
        };
        let own = pinned(reservation("s", "3", &json!({"allocatePolicy": "Restricted"})), "3");
        let reservations = json!([on(without_cpus("r"), other), on(own, "m")]);
        let mut case = cluster(vec![labelled(other), labelled("m")], reservations);
        assert_eq!(cpus(&case.reservations["s"]), "0-2");
        let wanting = |name: &str| {
            let mut made = pinned(pod(name, "web", "2"), "2");
            made["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-affinity"] = json!("{}");
            made
        };
        assert_eq!(try_pod(&mut case, &wanting("p")), is_on("m"), "beside {other}");
        // The other one has none.
        assert_eq!(try_pod(&mut case, &wanting("q")), is_refused("NotEnoughCpus"));
    }
}
