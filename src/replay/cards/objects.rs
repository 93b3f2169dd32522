//! Converts nodes and pods of a trace to API objects with cards: a Device beside each node that has GPUs, and requests in
//! percent of a card.

use serde_json::{Value, json};

use super::super::objects::{GPU_CORE, GPU_MODEL_LABEL, QOS_LABEL, to_node_json, to_pod_json};
use super::super::{TraceNode, TracePod};
use super::fragments::Typical;

/// GPU memory in percent of a card.
const GPU_RATIO: &str = "koordinator.sh/gpu-memory-ratio";
/// GPU memory.
const GPU_MEMORY: &str = "koordinator.sh/gpu-memory";
/// Memory of a card, in GiB. The trace does not say it; requests are in percent, so it decides nothing.
const CARD_GIB: u64 = 16;

/// Returns the node as an API object to create, with what its cards offer together.
pub fn to_card_node_json(node: &TraceNode) -> Value {
    let mut made = to_node_json(node);
    if node.gpus > 0 {
        for list in ["allocatable", "capacity"] {
            made["status"][list][GPU_RATIO] = (100 * node.gpus).to_string().into();
            made["status"][list][GPU_MEMORY] = format!("{}Gi", CARD_GIB * node.gpus).into();
        }
    }
    made
}

/// Returns the Device of the node, `None` without GPUs.
pub fn to_device_json(node: &TraceNode) -> Option<Value> {
    let card = |minor: u64| {
        json!({
            "type": "gpu",
            "minor": minor,
            "id": format!("{}-{minor}", node.name),
            "health": true,
            "resources": { GPU_CORE: "100", GPU_RATIO: "100", GPU_MEMORY: format!("{CARD_GIB}Gi") },
        })
    };
    (node.gpus > 0).then(|| {
        json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1",
            "kind": "Device",
            "metadata": { "name": node.name, "labels": { GPU_MODEL_LABEL: node.model } },
            "spec": { "devices": (0..node.gpus).map(card).collect::<Vec<_>>() },
        })
    })
}

/// Returns the pod as an API object to create. Its share of cards is requested of their computing power and of their
/// memory alike.
pub fn to_card_pod_json(pod: &TracePod, namespace: &str, scheduler_name: &str) -> Value {
    let mut made = to_pod_json(pod, namespace, scheduler_name);
    let resources = &mut made["spec"]["containers"][0]["resources"];
    if pod.gpus > 0 {
        for list in ["requests", "limits"] {
            resources[list][GPU_RATIO] = pod.gpu_core().to_string().into();
        }
    }
    made["metadata"]["labels"] = json!({ QOS_LABEL: pod.qos });
    made
}

/// Returns a typical pod as it stands in the arguments of DeviceShare.
pub fn typical_json(typical: &Typical) -> Value {
    let mut made = json!({ "weight": typical.count, "cpu": format!("{}m", typical.cpu_milli) });
    if typical.gpus > 0 {
        made["gpus"] = typical.gpus.into();
        made["percent"] = typical.gpu_milli.div_ceil(10).into();
    }
    if !typical.models.is_empty() {
        made["nodeLabel"] = json!({ "key": GPU_MODEL_LABEL, "values": typical.models });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::super::testing::{node, pod};
    use super::*;

    #[test]
    fn a_share_is_requested_of_power_and_memory() {
        let of = |gpus, milli| {
            to_card_pod_json(&pod("p", gpus, milli), "default", "s")["spec"]["containers"][0]["resources"]
                ["limits"]
                .clone()
        };
        assert_eq!(of(1, 460), json!({ GPU_CORE: "46", GPU_RATIO: "46" }));
        assert_eq!(of(8, 1000), json!({ GPU_CORE: "800", GPU_RATIO: "800" }));
        assert_eq!(of(0, 0), Value::Null);
    }

    #[test]
    fn a_node_offers_what_its_cards_have() {
        let node = node("a", 2);
        let device = to_device_json(&node).expect("it has GPUs");
        assert_eq!(device["spec"]["devices"].as_array().map(Vec::len), Some(2));
        assert_eq!(device["spec"]["devices"][1]["minor"], 1);
        let object = to_card_node_json(&node);
        let offered = &object["status"]["allocatable"];
        assert_eq!((&offered[GPU_CORE], &offered[GPU_RATIO]), (&json!("200"), &json!("200")));
        assert_eq!(offered[GPU_MEMORY], "32Gi");
        assert_eq!(to_device_json(&TraceNode { gpus: 0, ..node }), None);
    }
}
