//! The CPUs of the nodes in the histories, as koordlet reports them.

use serde_json::{Value, json};

/// Makes the topology of a node with 2 NUMA nodes of one core with 2 threads, and a reserved CPU if it is one of them.
pub(crate) fn machine(reserved: usize) -> Value {
    let cpu = |id: u32| json!({"id": id, "core": id / 2, "socket": 0, "node": id / 2});
    let amount = |name: &str, of: &str| json!({"name": name, "allocatable": of});
    let zone = |n: u32| json!({"name": format!("node-{n}"), "type": "Node", "resources": [amount("cpu", "2"), amount("memory", "4Gi")]});
    json!({
        "metadata": {"annotations": {
            "node.koordinator.sh/cpu-topology": json!({"detail": (0..4).map(cpu).collect::<Value>()}).to_string(),
            "node.koordinator.sh/reservation": json!({"reservedCPUs": reserved.to_string()}).to_string(),
        }},
        "zones": [zone(0), zone(1)],
    })
}
