//! Columns and cells of `kubectl get` for the kinds of storage.

use serde_json::{Value, json};

use super::{admission, class_of};
use crate::kinds::printers::{AGE, NAME, Printer, created, name, text};

const UNSET: &str = "<unset>";
const ATTRIBUTES: (&str, &str, i64, &str) =
    ("VolumeAttributesClass", "string", 0, "Class of changeable attributes.");
const MODE: (&str, &str, i64, &str) = ("VolumeMode", "string", 1, "File system or block device.");

pub(crate) const VOLUMES: Printer = Printer {
    columns: &[
        NAME,
        ("Capacity", "string", 0, "Size of the volume."),
        ("Access Modes", "string", 0, "How it can be mounted."),
        ("Reclaim Policy", "string", 0, "What becomes of it without its claim."),
        ("Status", "string", 0, "Phase of the volume."),
        ("Claim", "string", 0, "The claim that it is bound to."),
        ("StorageClass", "string", 0, "Class of the volume."),
        ATTRIBUTES,
        ("Reason", "string", 0, "Why it is in this phase."),
        AGE,
        MODE,
    ],
    cells: |o, now| {
        let spec = &o["spec"];
        let claim = match (spec["claimRef"]["namespace"].as_str(), spec["claimRef"]["name"].as_str()) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}"),
            _ => String::new(),
        };
        vec![
            name(o),
            text(&spec["capacity"]["storage"], ""),
            modes(&spec["accessModes"]),
            text(&spec["persistentVolumeReclaimPolicy"], ""),
            phase(o),
            claim.into(),
            class_of(o).unwrap_or_default().into(),
            text(&spec["volumeAttributesClassName"], UNSET),
            text(&o["status"]["reason"], ""),
            created(o, now),
            text(&spec["volumeMode"], UNSET),
        ]
    },
};

pub(crate) const CLAIMS: Printer = Printer {
    columns: &[
        NAME,
        ("Status", "string", 0, "Phase of the claim."),
        ("Volume", "string", 0, "The volume that it is bound to."),
        ("Capacity", "string", 0, "Size of that volume."),
        ("Access Modes", "string", 0, "How that volume can be mounted."),
        ("StorageClass", "string", 0, "Class of the claim."),
        ATTRIBUTES,
        AGE,
        MODE,
    ],
    cells: |o, now| {
        let spec = &o["spec"];
        let is_bound = spec["volumeName"].as_str().is_some_and(|volume| !volume.is_empty());
        let shown = |value: Value| if is_bound { value } else { "".into() };
        vec![
            name(o),
            phase(o),
            text(&spec["volumeName"], ""),
            shown(text(&o["status"]["capacity"]["storage"], "")),
            shown(modes(&o["status"]["accessModes"])),
            class_of(o).unwrap_or_default().into(),
            text(&spec["volumeAttributesClassName"], UNSET),
            created(o, now),
            text(&spec["volumeMode"], UNSET),
        ]
    },
};

pub(crate) const CLASSES: Printer = Printer {
    columns: &[
        NAME,
        ("Provisioner", "string", 0, "Who makes volumes."),
        ("ReclaimPolicy", "string", 0, "What becomes of them without their claims."),
        ("VolumeBindingMode", "string", 0, "When claims are bound."),
        ("AllowVolumeExpansion", "boolean", 0, "Whether volumes can grow."),
        AGE,
    ],
    cells: |o, now| {
        let mut shown = o["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if admission::is_default(o) {
            shown.push_str(" (default)");
        }
        vec![
            shown.into(),
            text(&o["provisioner"], ""),
            text(&o["reclaimPolicy"], ""),
            text(&o["volumeBindingMode"], ""),
            (o["allowVolumeExpansion"] == true).into(),
            created(o, now),
        ]
    },
};

pub(crate) const CSI_NODES: Printer = Printer {
    columns: &[NAME, ("Drivers", "integer", 0, "Drivers on the node."), AGE],
    cells: |o, now| {
        let drivers = o["spec"]["drivers"].as_array().map_or(0, Vec::len);
        vec![name(o), drivers.into(), created(o, now)]
    },
};

pub(crate) const CSI_DRIVERS: Printer = Printer {
    columns: &[
        NAME,
        ("AttachRequired", "boolean", 0, "Whether volumes are attached to nodes."),
        ("PodInfoOnMount", "boolean", 0, "Whether the driver wants to know the pod."),
        ("StorageCapacity", "boolean", 0, "Whether the driver tells its capacity."),
        ("TokenRequests", "string", 0, "Tokens that the driver wants."),
        ("RequiresRepublish", "boolean", 0, "Whether volumes are published again and again."),
        ("Modes", "string", 0, "Lifecycles that the driver knows."),
        AGE,
    ],
    cells: |o, now| {
        let spec = &o["spec"];
        let is = |key: &str| Value::from(spec[key] == true);
        let tokens = spec["tokenRequests"].as_array().map_or(&[][..], Vec::as_slice);
        let tokens: Vec<&str> = tokens.iter().filter_map(|token| token["audience"].as_str()).collect();
        let tokens = if tokens.is_empty() { UNSET.to_owned() } else { tokens.join(",") };
        vec![
            name(o),
            is("attachRequired"),
            is("podInfoOnMount"),
            is("storageCapacity"),
            tokens.into(),
            is("requiresRepublish"),
            words(&spec["volumeLifecycleModes"]).join(",").into(),
            created(o, now),
        ]
    },
};

pub(crate) const CAPACITIES: Printer = Printer {
    columns: &[
        NAME,
        ("StorageClassName", "string", 0, "The class that it is about."),
        ("Capacity", "string", 0, "What is left."),
    ],
    cells: |o, _| vec![name(o), text(&o["storageClassName"], ""), text(&o["capacity"], UNSET)],
};

pub(crate) const ATTACHMENTS: Printer = Printer {
    columns: &[
        NAME,
        ("Attacher", "string", 0, "Who attaches."),
        ("PV", "string", 0, "The volume."),
        ("Node", "string", 0, "The node."),
        ("Attached", "boolean", 0, "Whether it is attached."),
        AGE,
    ],
    cells: |o, now| {
        vec![
            name(o),
            text(&o["spec"]["attacher"], ""),
            text(&o["spec"]["source"]["persistentVolumeName"], ""),
            text(&o["spec"]["nodeName"], ""),
            json!(o["status"]["attached"] == true),
            created(o, now),
        ]
    },
};

fn phase(object: &Value) -> Value {
    match object["metadata"]["deletionTimestamp"].is_string() {
        true => "Terminating".into(),
        false => text(&object["status"]["phase"], ""),
    }
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Formats access modes as kubectl does: `RWO,ROX`.
fn modes(list: &Value) -> Value {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = words(list);
    let short = SHORT.iter().filter(|(mode, _)| has.contains(mode)).map(|(_, short)| *short);
    short.collect::<Vec<_>>().join(",").into()
}
