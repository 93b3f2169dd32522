//! Defaults that an API server sets for the kinds of storage.

use serde_json::{Value, json};

use crate::kinds::defaults::set;

/// Sets the defaults of a PersistentVolume: policy Retain, mode Filesystem.
pub(crate) fn volume(object: &mut Value) {
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

/// Sets the defaults of a PersistentVolumeClaim: mode Filesystem.
pub(crate) fn claim(object: &mut Value) {
    set(object, "spec", json!({}));
    set(object, "status", json!({}));
    set(&mut object["spec"], "resources", json!({}));
    set(&mut object["spec"], "volumeMode", "Filesystem");
    set(&mut object["status"], "phase", "Pending");
}

/// Sets the defaults of a StorageClass: policy Delete, immediate binding.
pub(crate) fn class(object: &mut Value) {
    set(object, "reclaimPolicy", "Delete");
    set(object, "volumeBindingMode", "Immediate");
}

/// Sets the defaults of a CSINode: an empty list of drivers.
pub(crate) fn csi_node(object: &mut Value) {
    set(object, "spec", json!({}));
    set(&mut object["spec"], "drivers", json!([]));
}

/// Sets the defaults of a CSIDriver: it attaches volumes and reports no capacity.
pub(crate) fn csi_driver(object: &mut Value) {
    set(object, "spec", json!({}));
    let spec = &mut object["spec"];
    set(spec, "attachRequired", true);
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for key in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        set(spec, key, false);
    }
}

/// Sets the defaults of a VolumeAttachment: not attached.
pub(crate) fn attachment(object: &mut Value) {
    set(object, "spec", json!({}));
    set(object, "status", json!({}));
    set(&mut object["status"], "attached", false);
}
