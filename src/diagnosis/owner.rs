//! Who makes a pod: its controller, or the one above it.

use pellucid_api::rest::explain::OwnerOf;
use pellucid_cluster::Cluster;
use pellucid_model::{Name, ObjectKind, Pod};

/// Returns the controller to change for a change of a pod: of a ReplicaSet that a Deployment controls, the Deployment. Of one
/// that is not known here, the name tells: a Deployment ends it with the hash that its pods have as a label.
pub(crate) fn owner(cluster: &Cluster, pod: &Pod) -> Option<OwnerOf> {
    let own = pod.controller.as_ref()?;
    let key = (pod.key.namespace.clone(), Name::new(&own.name));
    let known =
        if &*own.kind == "ReplicaSet" { cluster.objects().get(ObjectKind::ReplicaSet, &key) } else { None };
    if &*own.kind == "ReplicaSet" && known.is_none() {
        let hash = pod.labels.get(&"pod-template-hash".into());
        let name = hash.and_then(|hash| own.name.strip_suffix(&**hash)?.strip_suffix('-'));
        if let Some(name) = name {
            return Some(OwnerOf { kind: "Deployment".into(), name: name.to_owned() });
        }
    }
    let above = known.and_then(|object| object.controller()?.controller.as_ref());
    let owner = above.unwrap_or(own);
    Some(OwnerOf { kind: owner.kind.to_string(), name: owner.name.to_string() })
}
