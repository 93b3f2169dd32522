//! Queueing hints: events that could make room for a pod that was refused for its volumes.

use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::View;
use pellucid_framework::plugin::{Hint, Hints};
use pellucid_model::storage::{CsiStorageCapacity, PersistentVolume};
use pellucid_model::{Object, Pod};

use super::super::claims;
use super::VolumeBinding;

impl Hints for VolumeBinding {
    fn events(&self) -> EventKinds {
        EventKinds::union([
            EventKinds::NODE_ADD,
            EventKinds::CLASS_ADD,
            EventKinds::CLASS_UPDATE,
            EventKinds::CLAIM_ADD,
            EventKinds::CLAIM_UPDATE,
            EventKinds::VOLUME_ADD,
            EventKinds::VOLUME_UPDATE,
            EventKinds::NODE_LABEL,
            EventKinds::CSI_NODE_ADD,
            EventKinds::CSI_NODE_UPDATE,
            EventKinds::CSI_DRIVER_UPDATE,
            EventKinds::CSI_DRIVER_DELETE,
            EventKinds::CAPACITY_ADD,
            EventKinds::CAPACITY_UPDATE,
            EventKinds::POD_DELETE,
        ])
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let opens = match event {
            ClusterEvent::NodeAdded(_) => true,
            ClusterEvent::NodeUpdated { change, .. } => change.any(NodeChange::LABELS),
            // A pod that is released before it was bound held volumes that are now free. kube-scheduler has no such
            // event: there, the next flush of the queue retries the waiting pods.
            ClusterEvent::PodReleased { pod: gone, .. } => {
                gone.node_name.is_none() && !gone.spec.volumes.claims.is_empty()
            }
            ClusterEvent::ObjectChanged { old, new } => opens(view, pod, old.as_deref(), new.as_deref()),
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn opens(view: View<'_>, pod: &Pod, old: Option<&Object>, new: Option<&Object>) -> bool {
    match (old, new) {
        (None, Some(Object::StorageClass(_) | Object::CsiNode(_) | Object::CsiStorageCapacity(_))) => true,
        (Some(Object::StorageClass(old)), Some(Object::StorageClass(new))) => {
            old.allowed_topologies != new.allowed_topologies
        }
        (_, Some(Object::PersistentVolumeClaim(claim))) => {
            claims::mounts(pod, claim, pod.spec.volumes.claims.iter())
        }
        (_, Some(Object::PersistentVolume(volume))) => concerns(view, pod, volume),
        (Some(Object::CsiNode(old)), Some(Object::CsiNode(new))) => old.migrated != new.migrated,
        (Some(Object::CsiDriver(old)), new) => {
            let tracks = matches!(new, Some(Object::CsiDriver(new)) if new.tracks_capacity);
            old.tracks_capacity && !tracks
        }
        (Some(Object::CsiStorageCapacity(old)), Some(Object::CsiStorageCapacity(new))) => grows(old, new),
        _ => false,
    }
}

/// Returns whether larger volumes can be provisioned than before.
fn grows(old: &CsiStorageCapacity, new: &CsiStorageCapacity) -> bool {
    new.largest.is_some_and(|now| old.largest.is_none_or(|before| now > before))
}

/// Returns whether a volume could serve one of the pod's claims: it has the claim's class, or one names the other.
fn concerns(view: View<'_>, pod: &Pod, volume: &PersistentVolume) -> bool {
    let mut claims = pod.spec.volumes.claims.iter().filter_map(|m| claims::find(view, &pod.spec, m));
    claims.any(|claim| {
        claim.class.as_ref() == Some(&volume.class)
            || claim.volume == volume.name
            || volume.claim.as_ref().is_some_and(|c| c.namespace == claim.namespace && c.name == claim.name)
    })
}
