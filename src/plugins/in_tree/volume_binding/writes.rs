//! The writes that binding a volume needs. Each has the `resourceVersion` that the decision was based on, so it takes
//! effect at most once, and a conflict means that somebody else changed the object.

use std::sync::Arc;

use pellucid_model::Name;
use pellucid_model::effect::{ObjectPart, ObjectRef, ObjectWrite, Precondition};
use serde_json::{Value, json};

use super::assumed::{HeldBinding, HeldProvision};

/// The annotation that names the node for which a provisioner makes the claim's volume.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The annotation that says that a controller, not a person, set `claimRef`.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// Makes the write that sets `spec.claimRef` of a volume, so that the volume controller binds volume and claim.
pub(super) fn bind_volume(namespace: &Name, held: &HeldBinding) -> ObjectWrite {
    let patch = json!({
        "metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}},
        "spec": {"claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": namespace.as_str(),
            "name": held.claim.as_str(),
            "uid": &*held.claim_uid,
        }},
    });
    at_version("persistentvolumes", None, &held.volume, &held.volume_version, patch)
}

/// Makes the write that names the selected node on a claim, so that its provisioner creates a volume.
pub(super) fn select_node(namespace: &Name, held: &HeldProvision, node: &Name) -> ObjectWrite {
    let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node.as_str()}}});
    let namespace = Some(namespace.clone());
    at_version("persistentvolumeclaims", namespace, &held.claim, &held.claim_version, patch)
}

fn at_version(
    plural: &'static str,
    namespace: Option<Name>,
    name: &Name,
    version: &Arc<str>,
    patch: Value,
) -> ObjectWrite {
    ObjectWrite::Patch {
        object: ObjectRef { group: "", version: "v1", plural, namespace, name: name.clone() },
        part: ObjectPart::Main,
        precondition: Precondition::resource_version(version.clone()),
        patch: Arc::new(patch),
    }
}
