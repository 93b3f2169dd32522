//! The kinds of storage: volumes, claims, classes, and what drivers report about nodes.
//!
//! The files hold the rows of the catalogue with their defaults, rules and columns, like the files of the same names
//! for the other kinds. Binding and provisioning are controllers (`controllers/volumes.rs`).

mod admission;
mod defaults;
mod printers;
mod rows;
mod validate;

pub(crate) use admission::admit;
pub(crate) use defaults::claim as claim_defaults;
pub(crate) use rows::ROWS;

pub(crate) const VOLUMES: &str = "persistentvolumes";
pub(crate) const CLAIMS: &str = "persistentvolumeclaims";
pub(crate) const CLASSES: &str = "storageclasses.storage.k8s.io";
pub(crate) const CSI_NODES: &str = "csinodes.storage.k8s.io";

/// Annotation of a claim whose binding is complete.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Annotation of a volume or claim that a controller or scheduler bound, not the user.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Annotation of a claim: the node that a scheduler chose for its first pod.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Annotation of a claim: the driver that provisions its volume.
pub(crate) const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The older name of [`STORAGE_PROVISIONER`]; a real server sets both.
pub(crate) const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Annotation of a volume: the driver that provisioned it.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The provisioner of classes whose volumes are created by hand.
pub(crate) const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// Annotation with the class, from before the field existed.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Returns the class name of a volume or claim, or `None` if it has none.
pub(crate) fn class_of(object: &serde_json::Value) -> Option<&str> {
    let annotated = object["metadata"]["annotations"][BETA_CLASS].as_str();
    annotated.or_else(|| object["spec"]["storageClassName"].as_str())
}
