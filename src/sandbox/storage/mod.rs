//! The kinds of storage: volumes, claims, classes, and what drivers say of nodes.
//!
//! Rows of the catalogue with their defaults, rules and columns, as the files of the same names beside this
//! folder have them for the other kinds. Binding and provisioning are controllers (`controllers/volumes.rs`).

mod admission;
mod defaults;
mod printers;
mod rows;
mod validate;

pub(super) use admission::admit;
pub(super) use defaults::claim as claim_defaults;
pub(super) use rows::ROWS;

/// The table of PersistentVolumes.
pub(super) const VOLUMES: &str = "persistentvolumes";
/// The table of PersistentVolumeClaims.
pub(super) const CLAIMS: &str = "persistentvolumeclaims";
/// The table of StorageClasses.
pub(super) const CLASSES: &str = "storageclasses.storage.k8s.io";
/// The table of CSINodes.
pub(super) const CSI_NODES: &str = "csinodes.storage.k8s.io";

/// On a claim: its binding is complete.
pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a volume or claim: a controller or scheduler bound it, not the user.
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a claim: the node that a scheduler chose for the first pod.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: who is to provision a volume for it.
pub(super) const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The older name of [`STORAGE_PROVISIONER`]; a real server writes both.
pub(super) const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a volume: who provisioned it.
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The provisioner of classes whose volumes are made by hand.
pub(super) const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// The class of objects from before classes had a field.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Returns the name of the class of a volume or claim; `None` when a claim does not say.
pub(super) fn class_of(object: &serde_json::Value) -> Option<&str> {
    let annotated = object["metadata"]["annotations"][BETA_CLASS].as_str();
    annotated.or_else(|| object["spec"]["storageClassName"].as_str())
}
