//! What an API server fills in for the kinds of storage.

use serde_json::{Value, json};

use crate::kinds::defaults::set;

/// Volumes are kept when their claim goes, and are file systems.
pub(super) fn volume(object: &mut Value) {
    set(object, "spec", json!({}));
    set(object, "status", json!({}));
    let spec = &mut object["spec"];
    set(spec, "persistentVolumeReclaimPolicy", "Retain");
    set(spec, "volumeMode", "Filesystem");
    if let Some(path) = spec.get_mut("hostPath") {
        set(path, "type", "");
    }
    set(&mut object["status"], "phase", "Pending");
}

/// Claims ask for file systems.
pub(in super::super) fn claim(object: &mut Value) {
    set(object, "spec", json!({}));
    set(object, "status", json!({}));
    set(&mut object["spec"], "resources", json!({}));
    set(&mut object["spec"], "volumeMode", "Filesystem");
    set(&mut object["status"], "phase", "Pending");
}

/// Classes bind at once and delete what they made.
pub(super) fn class(object: &mut Value) {
    set(object, "reclaimPolicy", "Delete");
    set(object, "volumeBindingMode", "Immediate");
}

/// CSINodes have a list of drivers.
pub(super) fn csi_node(object: &mut Value) {
    set(object, "spec", json!({}));
    set(&mut object["spec"], "drivers", json!([]));
}

/// Drivers attach, and tell no capacity.
pub(super) fn csi_driver(object: &mut Value) {
    set(object, "spec", json!({}));
    let spec = &mut object["spec"];
    set(spec, "attachRequired", true);
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set(spec, key, false);
    }
}

/// Attachments begin unattached.
pub(super) fn attachment(object: &mut Value) {
    set(object, "spec", json!({}));
    set(object, "status", json!({}));
    set(&mut object["status"], "attached", false);
}
