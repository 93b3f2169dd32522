//! Volumes, claims, and what says where they can be used; here the fields that several of these kinds share.

pub(crate) mod csi_driver;
pub(crate) mod csi_node;
pub(crate) mod csi_storage_capacity;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod storage_class;
pub(crate) mod volume_attachment;

use pellucid_model::storage::AccessModes;
use pellucid_model::{Name, quantity};

use crate::decode::fields::name;
use crate::decode::lenient::{Fault, KnownAnnotations, Lenient, List, QuantityText};
use crate::decode::wire::{Meta, wire_types};

wire_types! {
    /// `status` of a PersistentVolume or PersistentVolumeClaim.
    struct PhaseStatus {
        phase: Lenient<Name>,
    }
    /// A resource list; only `storage` is read.
    struct Storage {
        storage: Lenient<QuantityText>,
    }
}

/// Returns the known annotations of an object.
pub(crate) fn known(meta: &Meta) -> Result<&KnownAnnotations, Fault> {
    static NONE: KnownAnnotations = KnownAnnotations::NONE;
    Ok(meta.annotations.read("annotations")?.unwrap_or(&NONE))
}

/// Returns the class from the older annotation, which takes precedence over the field.
pub(crate) fn class_mark(known: &KnownAnnotations) -> Result<Option<Name>, Fault> {
    Ok(known.class.read("annotations.volume.beta.kubernetes.io/storage-class")?.cloned())
}

/// Reads a quantity in bytes, rounded up; `None` when absent.
pub(crate) fn bytes(value: &Lenient<QuantityText>, field: &str) -> Result<Option<i64>, Fault> {
    let Some(QuantityText(text)) = value.read(field)? else { return Ok(None) };
    let parsed = quantity::units(text);
    parsed.map(Some).map_err(|e| Fault::new(field, text, format!("not a quantity: {}", e.problem)))
}

/// Reads `accessModes`.
pub(crate) fn access_modes(list: &List<Name>) -> Result<AccessModes, Fault> {
    let modes = list.each("accessModes", |mode| {
        Ok(match mode.as_str() {
            "ReadWriteOnce" => AccessModes::RWO,
            "ReadOnlyMany" => AccessModes::ROX,
            "ReadWriteMany" => AccessModes::RWX,
            "ReadWriteOncePod" => AccessModes::RWOP,
            other => return Err(Fault::new("", other, "unknown access mode")),
        })
    })?;
    Ok(modes.into_iter().fold(AccessModes::default(), AccessModes::with))
}

/// Reads `volumeMode`.
pub(crate) fn is_block(value: &Lenient<Name>) -> Result<bool, Fault> {
    match name(value, "volumeMode")?.as_str() {
        "" | "Filesystem" => Ok(false),
        "Block" => Ok(true),
        other => Err(Fault::new("volumeMode", other, "unknown volume mode")),
    }
}
