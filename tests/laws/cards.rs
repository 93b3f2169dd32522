//! Devices of the random histories of `lives`: what nodes have, what pods request, and that no card is given twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

/// What pods request of devices, by the number of the pod.
pub(crate) const WANTED: [(&str, &str); 6] = [
    ("koordinator.sh/gpu", "50"),
    ("nvidia.com/gpu", "1"),
    ("koordinator.sh/gpu", "30"),
    ("koordinator.sh/gpu-memory", "4Gi"),
    ("koordinator.sh/gpu", "200"),
    ("koordinator.sh/rdma", "40"),
];

/// Makes a Device with GPUs of 8 GiB on two PCIe switches, and an RDMA adapter. The GPU with a certain number is not
/// healthy.
pub(crate) fn device(cards: usize, sick: usize) -> Value {
    let place =
        |at: usize| json!({"socketID": 0, "nodeID": at / 2, "pcieID": format!("p{}", at / 2), "busID": ""});
    let gpu = |at: usize| {
        json!({
            "type": "gpu", "minor": at, "id": format!("GPU-{at}"), "health": at != sick, "topology": place(at),
            "resources": {"koordinator.sh/gpu-core": 100, "koordinator.sh/gpu-memory": "8Gi",
                "koordinator.sh/gpu-memory-ratio": 100},
        })
    };
    let rdma = json!({"type": "rdma", "minor": 0, "id": "a", "health": true, "topology": place(0),
        "resources": {"koordinator.sh/rdma": 100}});
    let devices: Vec<Value> = (0..cards).map(gpu).chain([rdma]).collect();
    json!({"spec": {"devices": devices}})
}

/// Checks that the pods of the API server have no more of a card than there is, and that a whole card is nobody else's.
pub(crate) fn check<'a>(all: impl Iterator<Item = &'a Value>) {
    let mut taken: BTreeMap<(String, String, u64), (i64, usize, bool)> = BTreeMap::new();
    for pod in all {
        let annotation = pod["metadata"]["annotations"][ALLOCATED].as_str();
        let (Some(text), Some(node)) = (annotation, pod["spec"]["nodeName"].as_str()) else { continue };
        let allocated: Value = serde_json::from_str(text).expect("it is JSON");
        for (kind, cards) in allocated.as_object().expect("types") {
            for card in cards.as_array().expect("cards") {
                let amount = |resource: &str| {
                    let text = card["resources"][format!("koordinator.sh/{resource}")].as_str();
                    text.map_or(0, |text| text.parse().expect("a number"))
                };
                let percent = amount("gpu-memory-ratio").max(amount("gpu-core")).max(amount("rdma"));
                let minor = card["minor"].as_u64().expect("a minor");
                let of = taken.entry((node.to_owned(), kind.clone(), minor)).or_default();
                *of = (of.0 + percent, of.1 + 1, of.2 || percent >= 100);
            }
        }
    }
    for (card, (percent, pods, is_whole)) in taken {
        assert!(percent <= 100, "{card:?} has {percent} %");
        assert!(!is_whole || pods == 1, "{card:?} is given as a whole and to {pods} pods");
    }
}
