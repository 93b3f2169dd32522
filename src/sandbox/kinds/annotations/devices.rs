//! The devices of a node, in short: `8 GPUs x 80Gi, 2 per switch, 4 per NUMA, 4 RDMA`. RDMA adapters lie on the switches in
//! turn.

use std::collections::BTreeSet;

use pellucid_model::quantity;
use serde_json::{Value, json};

use crate::errors::FieldError;

/// Annotation of a node with its devices.
const DEVICES: &str = "sandbox.pellucid.dev/devices";
/// Annotation of a node with the devices that are not healthy: `gpu-3,rdma-0`.
const UNHEALTHY: &str = "sandbox.pellucid.dev/unhealthy-devices";
/// Most devices of a type.
const MAX: u64 = 64;
const FORM: &str =
    "must be like 8 GPUs x 80Gi, 2 per switch, 4 per NUMA, 4 RDMA; all but the first part may be left out";

/// The devices of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Devices {
    gpus: u64,
    /// Memory of a GPU, as a quantity.
    memory: String,
    /// GPUs of a PCIe switch.
    per_switch: u64,
    /// GPUs of a NUMA node.
    per_numa: u64,
    rdma: u64,
    /// Type and minor.
    unhealthy: BTreeSet<(String, u64)>,
}

/// Returns the error for annotations that cannot be read.
pub(crate) fn invalid(node: &Value) -> Option<FieldError> {
    let of = |key: &str, why: Result<(), String>| {
        let value = &node["metadata"]["annotations"][key];
        why.err().map(|why| FieldError::invalid(format!("metadata.annotations[{key}]"), value, &why))
    };
    let text = |key: &str| node["metadata"]["annotations"][key].as_str();
    let devices = text(DEVICES).map_or(Ok(()), |text| Devices::parse(text).map(drop));
    let unhealthy = text(UNHEALTHY).map_or(Ok(()), |text| unhealthy(text).map(drop));
    of(DEVICES, devices).or_else(|| of(UNHEALTHY, unhealthy))
}

/// Returns the devices of a node, if its annotation names some.
pub(crate) fn of(node: &Value) -> Option<Devices> {
    let annotations = &node["metadata"]["annotations"];
    let mut made = Devices::parse(annotations[DEVICES].as_str()?).ok()?;
    made.unhealthy = unhealthy(annotations[UNHEALTHY].as_str().unwrap_or_default()).ok()?;
    Some(made)
}

/// Describes the devices of a node that offers GPUs and does not say which.
pub(crate) fn describe(node: &mut Value, form: &str) {
    let offers = |list: &str| node["status"][list].get("nvidia.com/gpu").is_some();
    if node["kind"] == "Node" && node["metadata"]["annotations"].get(DEVICES).is_none() {
        if offers("allocatable") || offers("capacity") {
            node["metadata"]["annotations"][DEVICES] = json!(form);
        }
        return;
    }
    for item in node["items"].as_array_mut().into_iter().flatten() {
        describe(item, form);
    }
}

/// Parses a list of devices: `gpu-3,rdma-0`.
fn unhealthy(text: &str) -> Result<BTreeSet<(String, u64)>, String> {
    let one = |part: &str| {
        let (kind, minor) = part.rsplit_once('-')?;
        Some((kind.to_owned(), minor.parse().ok()?)).filter(|(kind, _)| matches!(&**kind, "gpu" | "rdma"))
    };
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| one(part).ok_or_else(|| format!("{part:?} must be like gpu-3 or rdma-0"))).collect()
}

impl Devices {
    /// Parses the short form. Fails with what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let (count, memory) = parts.next().and_then(|first| first.split_once(['x', '×'])).ok_or(FORM)?;
        let count = count.trim().trim_end_matches(['s', 'S']).trim_end_matches("GPU").trim_end();
        let number = |text: &str, least: u64| {
            let n = text.trim().parse().ok().filter(|n| (least..=MAX).contains(n));
            n.ok_or_else(|| format!("{text:?} is no number from {least} to {MAX}; {FORM}"))
        };
        let memory = memory.trim().to_owned();
        if quantity::units(&memory).is_ok_and(|bytes| bytes <= 0) || quantity::units(&memory).is_err() {
            return Err(format!("{memory:?} is no amount of memory; {FORM}"));
        }
        let gpus = number(count, 1)?;
        let mut made = Self { gpus, memory, per_switch: 2, per_numa: 4, rdma: 0, unhealthy: BTreeSet::new() };
        for part in parts {
            let (digits, what) = part.split_once(' ').ok_or(FORM)?;
            match what.trim() {
                "per switch" => made.per_switch = number(digits, 1)?,
                "per NUMA" | "per numa" => made.per_numa = number(digits, 1)?,
                "RDMA" | "rdma" => made.rdma = number(digits, 0)?,
                _ => return Err(format!("{part:?} is not known; {FORM}")),
            }
        }
        if !made.per_numa.is_multiple_of(made.per_switch) {
            let (numa, switch) = (made.per_numa, made.per_switch);
            return Err(format!("{numa} per NUMA node cannot be split into switches of {switch}; {FORM}"));
        }
        Ok(made)
    }

    /// Returns `spec.devices` of the node's Device.
    pub(crate) fn list(&self, node: &str) -> Value {
        let switches = self.gpus.div_ceil(self.per_switch);
        let place = |switch: u64, slot: u64| {
            let numa = switch * self.per_switch / self.per_numa;
            json!({
                "socketID": numa, "nodeID": numa, "pcieID": format!("pci-{switch}"),
                "busID": format!("0000:{:02x}:{slot:02x}.0", 0x10 + switch),
            })
        };
        let device = |kind: &str, minor: u64, id: String, resources: Value, topology: Value| {
            json!({
                "type": kind, "minor": minor, "id": id,
                "health": !self.unhealthy.contains(&(kind.to_owned(), minor)),
                "resources": resources, "topology": topology,
            })
        };
        let gpu = |minor: u64| {
            let resources = json!({
                "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": self.memory,
                "koordinator.sh/gpu-memory-ratio": "100",
            });
            let topology = place(minor / self.per_switch, minor % self.per_switch);
            device("gpu", minor, format!("GPU-{node}-{minor}"), resources, topology)
        };
        let rdma = |minor: u64| {
            let topology = place(minor % switches, self.per_switch + minor / switches);
            let id = format!("mlx5_{minor}");
            device("rdma", minor, id, json!({"koordinator.sh/rdma": "100"}), topology)
        };
        (0..self.gpus).map(gpu).chain((0..self.rdma).map(rdma)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_is_read() {
        let full = Devices::parse("8 GPUs x 80Gi, 2 per switch, 4 per NUMA, 4 RDMA").expect("devices");
        assert_eq!((full.gpus, full.rdma, &*full.memory), (8, 4, "80Gi"));
        assert_eq!(Devices::parse("8x80Gi"), Ok(Devices { rdma: 0, ..full }));
        assert_eq!(Devices::parse("1 GPU x 16Gi").map(|of| of.gpus), Ok(1));
        for bad in
            ["", "8", "8 GPUs", "0x80Gi", "8x", "8x-1", "8x80Gi, 3 per switch", "8x80Gi, 2 fans", "99x1Gi"]
        {
            assert!(Devices::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn devices_lie_on_switches_and_numa_nodes() {
        let text = "4 GPUs x 16Gi, 1 per switch, 2 per NUMA, 2 RDMA";
        let node = json!({"metadata": {"annotations": {DEVICES: text, UNHEALTHY: "gpu-3, rdma-1"}}});
        let list = of(&node).expect("devices").list("n1");
        let at = |n: usize| {
            let topology = &list[n]["topology"];
            (topology["nodeID"].as_u64(), topology["pcieID"].as_str(), list[n]["health"].as_bool())
        };
        assert_eq!(at(1), (Some(0), Some("pci-1"), Some(true)));
        assert_eq!(at(3), (Some(1), Some("pci-3"), Some(false)));
        assert_eq!(at(5), (Some(0), Some("pci-1"), Some(false)));
        assert_eq!((&list[5]["type"], &list[5]["minor"]), (&json!("rdma"), &json!(1)));
        let wrong = json!({"metadata": {"annotations": {UNHEALTHY: "fan-1"}}});
        assert!(invalid(&wrong).is_some() && invalid(&node).is_none());
    }

    #[test]
    fn nodes_that_offer_gpus_are_described() {
        let node = |amounts: Value| json!({"kind": "Node", "metadata": {}, "status": {"capacity": amounts}});
        let mut list = json!({"items": [node(json!({"nvidia.com/gpu": "2"})), node(json!({"cpu": "2"}))]});
        describe(&mut list, "2x16Gi");
        assert_eq!(list["items"][0]["metadata"]["annotations"][DEVICES], "2x16Gi");
        assert_eq!(list["items"][1]["metadata"], json!({}));
    }
}
