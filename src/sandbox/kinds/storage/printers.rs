//! Columns and cells of `kubectl get` for the kinds of storage.

use serde_json::Value;

use super::{admission, class_of};
use crate::fields::{self, list};
use crate::kinds::printers::{AGE, Column, NAME, count, flag, own, text, text_or};

const UNSET: &str = "<unset>";
const ATTRIBUTES: Column = text_or(
    "VolumeAttributesClass",
    "/spec/volumeAttributesClassName",
    UNSET,
    "Class of changeable attributes.",
);
const MODE: Column = text_or("VolumeMode", "/spec/volumeMode", UNSET, "File system or block device.").wide();

pub(crate) const VOLUMES: &[Column] = &[
    NAME,
    text("Capacity", "/spec/capacity/storage", "Size of the volume."),
    own("Access Modes", "How it can be mounted.", |o, _| modes(&o["spec"]["accessModes"])),
    text("Reclaim Policy", "/spec/persistentVolumeReclaimPolicy", "What becomes of it without its claim."),
    own("Status", "Phase of the volume.", |o, _| phase(o)),
    own("Claim", "The claim that it is bound to.", |o, _| {
        let claim = &o["spec"]["claimRef"];
        match (claim["namespace"].as_str(), claim["name"].as_str()) {
            (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
            _ => "".into(),
        }
    }),
    own("StorageClass", "Class of the volume.", |o, _| class_of(o).unwrap_or_default().into()),
    ATTRIBUTES,
    text("Reason", "/status/reason", "Why it is in this phase."),
    AGE,
    MODE,
];

pub(crate) const CLAIMS: &[Column] = &[
    NAME,
    own("Status", "Phase of the claim.", |o, _| phase(o)),
    text("Volume", "/spec/volumeName", "The volume that it is bound to."),
    own("Capacity", "Size of that volume.", |o, _| {
        if is_bound(o) { fields::text(&o["status"]["capacity"]["storage"]).into() } else { "".into() }
    }),
    own("Access Modes", "How that volume can be mounted.", |o, _| {
        if is_bound(o) { modes(&o["status"]["accessModes"]) } else { "".into() }
    }),
    own("StorageClass", "Class of the claim.", |o, _| class_of(o).unwrap_or_default().into()),
    ATTRIBUTES,
    AGE,
    MODE,
];

pub(crate) const CLASSES: &[Column] = &[
    own("Name", "Name of the object.", |o, _| {
        let mark = if admission::is_default(o) { " (default)" } else { "" };
        format!("{}{mark}", fields::text(&o["metadata"]["name"])).into()
    }),
    text("Provisioner", "/provisioner", "Who makes volumes."),
    text("ReclaimPolicy", "/reclaimPolicy", "What becomes of them without their claims."),
    text("VolumeBindingMode", "/volumeBindingMode", "When claims are bound."),
    flag("AllowVolumeExpansion", "/allowVolumeExpansion", "Whether volumes can grow."),
    AGE,
];

pub(crate) const CSI_NODES: &[Column] =
    &[NAME, count("Drivers", "/spec/drivers", "Drivers on the node."), AGE];

pub(crate) const CSI_DRIVERS: &[Column] = &[
    NAME,
    flag("AttachRequired", "/spec/attachRequired", "Whether volumes are attached to nodes."),
    flag("PodInfoOnMount", "/spec/podInfoOnMount", "Whether the driver wants to know the pod."),
    flag("StorageCapacity", "/spec/storageCapacity", "Whether the driver tells its capacity."),
    own("TokenRequests", "Tokens that the driver wants.", |o, _| {
        let tokens = list(&o["spec"]["tokenRequests"]).iter();
        let tokens: Vec<&str> = tokens.filter_map(|token| token["audience"].as_str()).collect();
        if tokens.is_empty() { UNSET.into() } else { tokens.join(",").into() }
    }),
    flag("RequiresRepublish", "/spec/requiresRepublish", "Whether volumes are published again and again."),
    own("Modes", "Lifecycles that the driver knows.", |o, _| {
        words(&o["spec"]["volumeLifecycleModes"]).join(",").into()
    }),
    AGE,
];

pub(crate) const CAPACITIES: &[Column] = &[
    NAME,
    text("StorageClassName", "/storageClassName", "The class that it is about."),
    text_or("Capacity", "/capacity", UNSET, "What is left."),
];

pub(crate) const ATTACHMENTS: &[Column] = &[
    NAME,
    text("Attacher", "/spec/attacher", "Who attaches."),
    text("PV", "/spec/source/persistentVolumeName", "The volume."),
    text("Node", "/spec/nodeName", "The node."),
    flag("Attached", "/status/attached", "Whether it is attached."),
    AGE,
];

fn is_bound(claim: &Value) -> bool {
    !fields::text(&claim["spec"]["volumeName"]).is_empty()
}

fn phase(object: &Value) -> Value {
    match object["metadata"]["deletionTimestamp"].is_string() {
        true => "Terminating".into(),
        false => fields::text(&object["status"]["phase"]).into(),
    }
}

fn words(items: &Value) -> Vec<&str> {
    list(items).iter().filter_map(Value::as_str).collect()
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
