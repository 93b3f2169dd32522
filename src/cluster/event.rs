//! What an input changed, for the queue's wake-up hints and for the engine.

use std::sync::Arc;

use pellucid_model::{Name, NodeIdx, Object, ObjectKind, Pod, PodId};

/// What changed about a node, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeChange(pub u8);

impl NodeChange {
    /// Allocatable amounts.
    pub const ALLOCATABLE: Self = Self(1);
    /// Labels.
    pub const LABELS: Self = Self(2);
    /// Taints, or `spec.unschedulable`.
    pub const TAINTS: Self = Self(4);
    /// Images.
    pub const IMAGES: Self = Self(8);
    /// `status.declaredFeatures`.
    pub const DECLARED_FEATURES: Self = Self(16);

    /// Whether any of the bits of `other` is set.
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets the bits of `other` when `condition` holds.
    pub fn set_if(&mut self, other: Self, condition: bool) {
        if condition {
            self.0 |= other.0;
        }
    }
}

/// A set of kinds of events, as plugins register for them and as an event has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventKinds(pub u64);

/// Declares the kinds: constant, kube-scheduler's name.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl EventKinds {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            /// Returns kube-scheduler's names of the kinds in the set.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                [$((Self::$name, $text)),*].into_iter().filter(move |(k, _)| self.any(*k)).map(|(_, n)| n)
            }
        }
    };
}

kinds! {
    /// A node appeared.
    NODE_ADD = 0, "Node/Add";
    /// A node offers other amounts.
    NODE_ALLOCATABLE = 1, "Node/UpdateNodeAllocatable";
    /// A node has other labels.
    NODE_LABEL = 2, "Node/UpdateNodeLabel";
    /// A node has other taints, or became schedulable.
    NODE_TAINT = 3, "Node/UpdateNodeTaint";
    /// A node declares other features.
    NODE_DECLARED_FEATURES = 4, "Node/UpdateNodeDeclaredFeature";
    /// A node is gone.
    NODE_DELETE = 5, "Node/Delete";
    /// A pod was confirmed on a node.
    POD_ADD = 6, "Pod/Add";
    /// A pod left its node, or a nomination ended.
    POD_DELETE = 7, "Pod/Delete";
    /// A pod on a node requests less.
    POD_SCALE_DOWN = 8, "Pod/UpdatePodScaleDown";
    /// A pod on a node changed: labels, or it is being deleted.
    POD_LABEL = 9, "Pod/UpdatePodLabel";
    /// The waiting pod itself changed.
    POD_SELF = 10, "Pod/Update";
    /// A Namespace was added, changed, or is gone.
    NAMESPACE = 11, "Namespace/Add,Update,Delete";
    /// A Service, ReplicationController, ReplicaSet or StatefulSet changed: what default spread constraints select
    /// by. kube-scheduler has no such event.
    WORKLOAD = 12, "Workload/Add,Update,Delete";
    /// A PersistentVolume was added.
    VOLUME_ADD = 13, "PersistentVolume/Add";
    /// A PersistentVolume changed.
    VOLUME_UPDATE = 14, "PersistentVolume/Update";
    /// A PersistentVolumeClaim was added.
    CLAIM_ADD = 15, "PersistentVolumeClaim/Add";
    /// A PersistentVolumeClaim changed.
    CLAIM_UPDATE = 16, "PersistentVolumeClaim/Update";
    /// A PersistentVolumeClaim is gone.
    CLAIM_DELETE = 17, "PersistentVolumeClaim/Delete";
    /// A StorageClass was added.
    CLASS_ADD = 18, "StorageClass/Add";
    /// A StorageClass changed.
    CLASS_UPDATE = 19, "StorageClass/Update";
    /// A CSINode was added.
    CSI_NODE_ADD = 20, "CSINode/Add";
    /// A CSINode changed.
    CSI_NODE_UPDATE = 21, "CSINode/Update";
    /// A CSIDriver was added.
    CSI_DRIVER_ADD = 22, "CSIDriver/Add";
    /// A CSIDriver changed.
    CSI_DRIVER_UPDATE = 23, "CSIDriver/Update";
    /// A CSIDriver is gone.
    CSI_DRIVER_DELETE = 24, "CSIDriver/Delete";
    /// A CSIStorageCapacity was added.
    CAPACITY_ADD = 25, "CSIStorageCapacity/Add";
    /// A CSIStorageCapacity changed.
    CAPACITY_UPDATE = 26, "CSIStorageCapacity/Update";
    /// A VolumeAttachment is gone.
    ATTACHMENT_DELETE = 27, "VolumeAttachment/Delete";
    /// A PodDisruptionBudget changed.
    BUDGET = 28, "PodDisruptionBudget/Add,Update,Delete";
    /// A PersistentVolume is gone.
    VOLUME_DELETE = 29, "PersistentVolume/Delete";
    /// Something that no plugin waits for.
    OTHER = 30, "Other";
    /// A PodGroup was added, changed, or is gone.
    POD_GROUP = 31, "PodGroup/Add,Update,Delete";
}

impl EventKinds {
    /// No kind.
    pub const NONE: Self = Self(0);

    /// Whether the sets have a kind in common.
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn of_node(change: NodeChange) -> Self {
        [
            (NodeChange::ALLOCATABLE, Self::NODE_ALLOCATABLE),
            (NodeChange::LABELS, Self::NODE_LABEL),
            (NodeChange::TAINTS, Self::NODE_TAINT),
            (NodeChange::DECLARED_FEATURES, Self::NODE_DECLARED_FEATURES),
        ]
        .into_iter()
        .filter(|(bit, _)| change.any(*bit))
        .fold(Self::NONE, |all, (_, kind)| all.with(kind))
    }

    /// The kinds of a change of an object: added, changed, gone.
    fn of_object(kind: ObjectKind) -> [Self; 3] {
        match kind {
            ObjectKind::Namespace => [Self::NAMESPACE; 3],
            ObjectKind::Service
            | ObjectKind::ReplicationController
            | ObjectKind::ReplicaSet
            | ObjectKind::StatefulSet => [Self::WORKLOAD; 3],
            ObjectKind::PodDisruptionBudget => [Self::BUDGET; 3],
            ObjectKind::PersistentVolume => [Self::VOLUME_ADD, Self::VOLUME_UPDATE, Self::VOLUME_DELETE],
            ObjectKind::PersistentVolumeClaim => [Self::CLAIM_ADD, Self::CLAIM_UPDATE, Self::CLAIM_DELETE],
            ObjectKind::StorageClass => [Self::CLASS_ADD, Self::CLASS_UPDATE, Self::OTHER],
            ObjectKind::CsiNode => [Self::CSI_NODE_ADD, Self::CSI_NODE_UPDATE, Self::OTHER],
            ObjectKind::CsiDriver => [Self::CSI_DRIVER_ADD, Self::CSI_DRIVER_UPDATE, Self::CSI_DRIVER_DELETE],
            ObjectKind::CsiStorageCapacity => [Self::CAPACITY_ADD, Self::CAPACITY_UPDATE, Self::OTHER],
            ObjectKind::VolumeAttachment => [Self::OTHER, Self::OTHER, Self::ATTACHMENT_DELETE],
            ObjectKind::PodGroupX
            | ObjectKind::PodGroupSigs
            | ObjectKind::PodGroupIncubator
            | ObjectKind::PodGroupSigsDev
            | ObjectKind::PodGroupNative => [Self::POD_GROUP; 3],
            ObjectKind::QueueIncubator | ObjectKind::QueueSigsDev | ObjectKind::WorkloadNative => {
                [Self::OTHER; 3]
            }
        }
    }
}

/// One change of the cluster.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// A node appeared.
    NodeAdded(NodeIdx),
    /// A node changed.
    NodeUpdated {
        /// Which.
        node: NodeIdx,
        /// What about it.
        change: NodeChange,
        /// What it was before.
        old: Arc<pellucid_model::Node>,
    },
    /// A node is gone; it had this name.
    NodeRemoved(NodeIdx, Name),
    /// A pod is confirmed on a node.
    PodBound {
        /// The pod.
        id: PodId,
        /// The node.
        node: NodeIdx,
    },
    /// A pod no longer takes room on a node: deleted, ended, moved, or its placement was given up.
    PodReleased {
        /// The pod as it was.
        pod: Arc<Pod>,
        /// Its node.
        node: NodeIdx,
    },
    /// A pod on a node requests less than before.
    PodShrunk {
        /// The pod as it was.
        pod: Arc<Pod>,
        /// Its node.
        node: NodeIdx,
    },
    /// A pod on a node changed in what other pods see of it: labels, or it is being deleted.
    PodChanged {
        /// Which.
        id: PodId,
        /// What it was before.
        old: Arc<Pod>,
        /// Its node.
        node: NodeIdx,
    },
    /// A pod is no longer nominated to a node: room that was kept for it is free for others of no higher
    /// priority.
    NominationEnded {
        /// The pod.
        pod: Arc<Pod>,
        /// The node; it may be gone.
        node: Name,
    },
    /// An object of another kind was added (`old` is `None`), changed, or is gone (`new` is `None`).
    ObjectChanged {
        /// What it was.
        old: Option<Arc<Object>>,
        /// What it is.
        new: Option<Arc<Object>>,
    },
    /// A pod of ours waits to be placed.
    PendingAdded(PodId),
    /// A waiting pod changed.
    PendingUpdated {
        /// Which.
        id: PodId,
        /// What it was before.
        old: Arc<Pod>,
    },
    /// A waiting or reserved pod is no longer ours to place: gone, ended, deleting, or placed by others.
    PendingRemoved {
        /// Which; the slot may be empty by now.
        id: PodId,
        /// The pod as it was.
        pod: Arc<Pod>,
    },
    /// A pod is no longer in the state; its number may have been given to another one by now.
    PodForgotten {
        /// The number it had.
        id: PodId,
        /// The pod as it was.
        pod: Arc<Pod>,
    },
}

impl ClusterEvent {
    /// Returns what plugins register for, [`EventKinds::OTHER`] when nobody could.
    pub fn kinds(&self) -> EventKinds {
        match self {
            Self::NodeAdded(_) => EventKinds::NODE_ADD,
            Self::NodeUpdated { change, .. } => EventKinds::of_node(*change),
            Self::NodeRemoved(..) => EventKinds::NODE_DELETE,
            Self::PodBound { .. } => EventKinds::POD_ADD,
            Self::PodReleased { .. } | Self::NominationEnded { .. } => EventKinds::POD_DELETE,
            Self::PodShrunk { .. } => EventKinds::POD_SCALE_DOWN,
            Self::PodChanged { .. } => EventKinds::POD_LABEL,
            Self::PendingUpdated { .. } => EventKinds::POD_SELF,
            Self::ObjectChanged { old: None, new: Some(new) } => EventKinds::of_object(new.kind())[0],
            Self::ObjectChanged { new: Some(new), .. } => EventKinds::of_object(new.kind())[1],
            Self::ObjectChanged { old: Some(old), new: None } => EventKinds::of_object(old.kind())[2],
            Self::ObjectChanged { old: None, new: None }
            | Self::PendingAdded(_)
            | Self::PendingRemoved { .. }
            | Self::PodForgotten { .. } => EventKinds::OTHER,
        }
    }
}
