//! Defaults that an API server sets for the kinds of storage.

use serde_json::{Value, json};

use crate::kinds::defaults::{fill, set};

/// Sets the defaults of a PersistentVolume: policy Retain, mode Filesystem.
pub(crate) fn volume(object: &mut Value) {
    let spec = json!({"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"});
    fill(object, json!({"spec": spec, "status": {"phase": "Pending"}}));
    if let Some(path) = object["spec"].get_mut("hostPath") {
        set(path, "type", "");
    }
}

/// Sets the defaults of a PersistentVolumeClaim: mode Filesystem.
pub(crate) fn claim(object: &mut Value) {
    fill(
        object,
        json!({"spec": {"resources": {}, "volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}),
    );
}

/// Sets the defaults of a StorageClass: policy Delete, immediate binding.
pub(crate) fn class(object: &mut Value) {
    fill(object, json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}));
}

/// Sets the defaults of a CSINode: an empty list of drivers.
pub(crate) fn csi_node(object: &mut Value) {
    fill(object, json!({"spec": {"drivers": []}}));
}

/// Sets the defaults of a CSIDriver: it attaches volumes and reports no capacity.
pub(crate) fn csi_driver(object: &mut Value) {
    let spec = json!({
        "attachRequired": true, "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
        "podInfoOnMount": false, "storageCapacity": false, "requiresRepublish": false, "seLinuxMount": false
    });
    fill(object, json!({"spec": spec}));
}

/// Sets the defaults of a VolumeAttachment: not attached.
pub(crate) fn attachment(object: &mut Value) {
    fill(object, json!({"spec": {}, "status": {"attached": false}}));
}
