//! Validation of the kinds of storage, as an API server does it.

use serde_json::Value;

use crate::errors::FieldError;
use crate::fields::{copy, list, text};
use crate::kinds::validate::{
    IMMUTABLE, NOT_NEGATIVE, among, among_if_set, immutable, is_quantity, required_text,
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Fields of a volume's spec that are not its source.
const NOT_A_SOURCE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Checks a PersistentVolume.
pub(crate) fn volume(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = access_modes(spec);
    let capacity = &spec["capacity"];
    if capacity.as_object().is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::required("spec.capacity", ""));
    } else if capacity["storage"].is_null() || capacity.as_object().is_some_and(|all| all.len() > 1) {
        errors.push(FieldError::unsupported("spec.capacity", capacity, &["storage"]));
    } else {
        errors.extend(positive(&capacity["storage"], "spec.capacity[storage]"));
    }
    let (policy, policies) = (&spec["persistentVolumeReclaimPolicy"], ["Delete", "Recycle", "Retain"]);
    errors.extend(among_if_set(policy, "spec.persistentVolumeReclaimPolicy", &policies));
    errors.extend(among_if_set(&spec["volumeMode"], "spec.volumeMode", &VOLUME_MODES));
    match sources(spec).as_slice() {
        [] => errors.push(FieldError::required("spec", "must specify a volume type")),
        [("local", _)] if spec["nodeAffinity"]["required"].is_null() => {
            let why = "Local volume requires node affinity";
            errors.push(FieldError::required("spec.nodeAffinity", why));
        }
        [_] => {}
        [_, others @ ..] => errors.extend(others.iter().map(|(key, _)| {
            FieldError::forbidden(format!("spec.{key}"), "may not specify more than 1 volume type")
        })),
    }
    let Some(old) = old.map(|old| &old["spec"]) else { return errors };
    if sources(old) != sources(spec) {
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", why));
    }
    errors.extend(immutable(spec, Some(old), &["volumeMode"], "spec."));
    if !old["nodeAffinity"].is_null() {
        errors.extend(immutable(spec, Some(old), &["nodeAffinity"], "spec."));
    }
    errors
}

fn sources(spec: &Value) -> Vec<(&str, &Value)> {
    let fields = spec.as_object().into_iter().flatten();
    let fields = fields.filter(|(key, value)| !value.is_null() && !NOT_A_SOURCE.contains(&key.as_str()));
    fields.map(|(key, value)| (key.as_str(), value)).collect()
}

/// Checks a PersistentVolumeClaim and, on an update, that only mutable fields change.
pub(crate) fn claim(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = access_modes(spec);
    errors.extend(among_if_set(&spec["volumeMode"], "spec.volumeMode", &VOLUME_MODES));
    match &spec["resources"]["requests"]["storage"] {
        Value::Null => errors.push(FieldError::required("spec.resources[storage]", "")),
        amount => errors.extend(positive(amount, "spec.resources[storage]")),
    }
    let Some(old) = old else { return errors };
    if !same_claim(spec, &old["spec"], &object["status"]) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                   bound claims";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

/// Returns whether two specs of a claim are equal, apart from the fields that may change.
fn same_claim(new: &Value, old: &Value, status: &Value) -> bool {
    let is_bound = status["phase"] == "Bound";
    let mut old = old.clone();
    if is_bound {
        copy(new, &mut old, "resources");
        copy(new, &mut old, "volumeAttributesClassName");
    }
    // The binder sets the volume once; a claim without a class may get one later.
    if text(&old["volumeName"]).is_empty() {
        old["volumeName"] = new["volumeName"].clone();
    }
    if old["storageClassName"].is_null() {
        old["storageClassName"] = new["storageClassName"].clone();
    }
    let shown = |spec: &Value| {
        let fields = spec.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Vec<_>>()
    };
    shown(new) == shown(&old)
}

fn access_modes(spec: &Value) -> Vec<FieldError> {
    let modes = list(&spec["accessModes"]);
    if modes.is_empty() {
        return vec![FieldError::required("spec.accessModes", "at least 1 access mode is required")];
    }
    let unknown = modes.iter().filter_map(|mode| among(mode, "spec.accessModes", &MODES));
    let mut errors: Vec<FieldError> = unknown.collect();
    if modes.len() > 1 && modes.iter().any(|mode| mode == "ReadWriteOncePod") {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden("spec.accessModes", why));
    }
    errors
}

fn positive(amount: &Value, field: &str) -> Option<FieldError> {
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let is_zero = text.chars().filter(char::is_ascii_digit).all(|digit| digit == '0');
    if text.starts_with('-') || is_zero || !is_quantity(&text) {
        return Some(FieldError::invalid(field, amount, "must be greater than zero"));
    }
    None
}

/// Checks a StorageClass.
pub(crate) fn class(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> =
        required_text(&object["provisioner"], "provisioner").into_iter().collect();
    for (key, known) in [
        ("reclaimPolicy", ["Delete", "Retain"]),
        ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
    ] {
        errors.extend(among(&object[key], key, &known));
    }
    let Some(old) = old else { return errors };
    for key in ["parameters", "provisioner", "reclaimPolicy"] {
        if object[key] != old[key] {
            errors.push(FieldError::forbidden(key, &format!("updates to {key} are forbidden.")));
        }
    }
    errors.extend(immutable(object, Some(old), &["volumeBindingMode"], ""));
    errors
}

/// Checks a CSINode: each driver is listed once, with the node's id.
pub(crate) fn csi_node(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let drivers = list(&object["spec"]["drivers"]);
    for (index, driver) in drivers.iter().enumerate() {
        let here = format!("spec.drivers[{index}]");
        for key in ["name", "nodeID"] {
            errors.extend(required_text(&driver[key], format!("{here}.{key}")));
        }
        if drivers.iter().take(index).any(|other| other["name"] == driver["name"]) {
            errors.push(FieldError::duplicate(format!("{here}.name"), &driver["name"]));
        }
        let count = &driver["allocatable"]["count"];
        if count.as_i64().is_some_and(|count| count < 0) {
            errors.push(FieldError::invalid(format!("{here}.allocatable.count"), count, NOT_NEGATIVE));
        }
    }
    errors
}

/// Checks a CSIStorageCapacity.
pub(crate) fn capacity(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let class = required_text(&object["storageClassName"], "storageClassName");
    let mut errors: Vec<FieldError> = class.into_iter().collect();
    if object["capacity"].as_str().is_some_and(|text| text.starts_with('-') || !is_quantity(text)) {
        errors.push(FieldError::invalid("capacity", &object["capacity"], NOT_NEGATIVE));
    }
    errors.extend(immutable(object, old, &["nodeTopology", "storageClassName"], ""));
    errors
}

/// Checks a VolumeAttachment.
pub(crate) fn attachment(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Vec::new();
    for key in ["attacher", "nodeName"] {
        errors.extend(required_text(&spec[key], format!("spec.{key}")));
    }
    let source = &spec["source"];
    if source["persistentVolumeName"].is_null() && source["inlineVolumeSpec"].is_null() {
        let why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        errors.push(FieldError::required("spec.source", why));
    }
    if old.is_some_and(|old| old["spec"] != *spec) {
        errors.push(FieldError::invalid("spec", spec, IMMUTABLE));
    }
    errors
}
