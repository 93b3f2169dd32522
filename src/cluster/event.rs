//! What an input changed in the state, for the queue's wake-up hints and the scheduling cycle.

use std::sync::Arc;

use pellucid_model::{CustomObject, Name, NodeIdx, Object, ObjectKind, Pod, PodId};

/// What changed about a node, as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeChange(pub u8);

impl NodeChange {
    /// `status.allocatable`.
    pub const ALLOCATABLE: Self = Self(1);
    /// `metadata.labels`.
    pub const LABELS: Self = Self(2);
    /// `spec.taints` or `spec.unschedulable`.
    pub const TAINTS: Self = Self(4);
    /// `status.images`.
    pub const IMAGES: Self = Self(8);
    /// `status.declaredFeatures`.
    pub const DECLARED_FEATURES: Self = Self(16);
    /// Annotations that a plugin declares.
    pub const ANNOTATIONS: Self = Self(32);

    /// Returns whether the sets have a bit in common.
    #[inline]
    pub fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A set of event kinds: what a plugin registers for, and what an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventKinds(pub u64);

/// Declares the kinds, each with kube-scheduler's name.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal;)*) => {
        impl EventKinds {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            /// Returns kube-scheduler's names of the kinds in the set.
            #[inline]
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                [$((Self::$name, $text)),*].into_iter().filter(move |(k, _)| self.any(*k)).map(|(_, n)| n)
            }
        }
    };
}

kinds! {
    /// A node was added.
    NODE_ADD = 0, "Node/Add";
    /// A node's allocatable amounts changed.
    NODE_ALLOCATABLE = 1, "Node/UpdateNodeAllocatable";
    /// A node's labels changed.
    NODE_LABEL = 2, "Node/UpdateNodeLabel";
    /// A node's taints or `spec.unschedulable` changed.
    NODE_TAINT = 3, "Node/UpdateNodeTaint";
    /// A node's declared features changed.
    NODE_DECLARED_FEATURES = 4, "Node/UpdateNodeDeclaredFeature";
    /// A node was deleted.
    NODE_DELETE = 5, "Node/Delete";
    /// A pod was confirmed on a node.
    POD_ADD = 6, "Pod/Add";
    /// A pod left its node, or a nomination ended.
    POD_DELETE = 7, "Pod/Delete";
    /// The requests of a pod on a node shrank.
    POD_SCALE_DOWN = 8, "Pod/UpdatePodScaleDown";
    /// The labels of a pod on a node changed, or its deletion began.
    POD_LABEL = 9, "Pod/UpdatePodLabel";
    /// The pending pod itself changed.
    POD_SELF = 10, "Pod/Update";
    /// A Namespace was added, changed or deleted.
    NAMESPACE = 11, "Namespace/Add,Update,Delete";
    /// A Service, ReplicationController, ReplicaSet or StatefulSet changed; default spread constraints take their
    /// selectors from these. kube-scheduler has no such event.
    WORKLOAD = 12, "Workload/Add,Update,Delete";
    /// A PersistentVolume was added.
    VOLUME_ADD = 13, "PersistentVolume/Add";
    /// A PersistentVolume changed.
    VOLUME_UPDATE = 14, "PersistentVolume/Update";
    /// A PersistentVolumeClaim was added.
    CLAIM_ADD = 15, "PersistentVolumeClaim/Add";
    /// A PersistentVolumeClaim changed.
    CLAIM_UPDATE = 16, "PersistentVolumeClaim/Update";
    /// A PersistentVolumeClaim was deleted.
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
    /// A CSIDriver was deleted.
    CSI_DRIVER_DELETE = 24, "CSIDriver/Delete";
    /// A CSIStorageCapacity was added.
    CAPACITY_ADD = 25, "CSIStorageCapacity/Add";
    /// A CSIStorageCapacity changed.
    CAPACITY_UPDATE = 26, "CSIStorageCapacity/Update";
    /// A VolumeAttachment was deleted.
    ATTACHMENT_DELETE = 27, "VolumeAttachment/Delete";
    /// A PodDisruptionBudget was added, changed or deleted.
    BUDGET = 28, "PodDisruptionBudget/Add,Update,Delete";
    /// A PersistentVolume was deleted.
    VOLUME_DELETE = 29, "PersistentVolume/Delete";
    /// A change that no plugin waits for.
    OTHER = 30, "Other";
    /// A PodGroup was added, changed or deleted.
    POD_GROUP = 31, "PodGroup/Add,Update,Delete";
    /// An annotation of a node changed that a plugin declares.
    NODE_ANNOTATION = 32, "Node/UpdateNodeAnnotation";
    /// An object of a plugin's kind was added, changed or deleted.
    CUSTOM_OBJECT = 33, "Custom/Add,Update,Delete";
    /// A deadline in a plugin's state has passed.
    PLUGIN_STATE = 34, "PluginState/Update";
}

impl EventKinds {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Returns whether the sets have a kind in common.
    #[inline]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union of both sets.
    #[inline]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the union of all sets.
    #[inline]
    pub fn union(sets: impl IntoIterator<Item = Self>) -> Self {
        sets.into_iter().fold(Self::NONE, Self::with)
    }

    fn of_node(change: NodeChange) -> Self {
        let kinds = [
            (NodeChange::ALLOCATABLE, Self::NODE_ALLOCATABLE),
            (NodeChange::LABELS, Self::NODE_LABEL),
            (NodeChange::TAINTS, Self::NODE_TAINT),
            (NodeChange::DECLARED_FEATURES, Self::NODE_DECLARED_FEATURES),
            (NodeChange::ANNOTATIONS, Self::NODE_ANNOTATION),
        ];
        Self::union(kinds.into_iter().filter(|(bit, _)| change.any(*bit)).map(|(_, kind)| kind))
    }

    /// Returns the kinds of adding, changing and deleting an object.
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

/// One change of the state.
#[derive(Clone, Debug)]
pub enum ClusterEvent {
    /// A node was added.
    NodeAdded(NodeIdx),
    /// A node changed.
    NodeUpdated {
        /// Slot of the node.
        node: NodeIdx,
        /// What changed; never empty.
        change: NodeChange,
        /// The node before the change.
        old: Arc<pellucid_model::Node>,
    },
    /// A node with this name was deleted.
    NodeRemoved(NodeIdx, Name),
    /// A pod is confirmed on a node.
    PodBound {
        /// Id of the pod.
        id: PodId,
        /// The node it is bound to.
        node: NodeIdx,
    },
    /// A pod no longer uses a node: it was deleted, ended or moved, or its placement was given up.
    PodReleased {
        /// The pod as it was.
        pod: Arc<Pod>,
        /// The node it was on.
        node: NodeIdx,
    },
    /// A pod on a node requests less than before.
    PodShrunk {
        /// The pod before the change.
        pod: Arc<Pod>,
        /// The node it is on.
        node: NodeIdx,
    },
    /// A pod on a node changed in what other pods see of it: its labels, or its deletion began.
    PodChanged {
        /// Id of the pod.
        id: PodId,
        /// The pod before the change.
        old: Arc<Pod>,
        /// The node it is on.
        node: NodeIdx,
    },
    /// A pod is no longer nominated to a node: pods of the same or lower priority may use the room again.
    NominationEnded {
        /// The pod that was nominated.
        pod: Arc<Pod>,
        /// Name of the node, which may be deleted.
        node: Name,
    },
    /// An object of another kind was added (`old` is `None`), changed, or deleted (`new` is `None`).
    ObjectChanged {
        /// The object before the change.
        old: Option<Arc<Object>>,
        /// The object after the change.
        new: Option<Arc<Object>>,
    },
    /// An object of a plugin's kind was added (`old` is `None`), changed, or deleted (`new` is `None`).
    CustomChanged {
        /// The object before the change.
        old: Option<Arc<CustomObject>>,
        /// The object after the change.
        new: Option<Arc<CustomObject>>,
    },
    /// A deadline in a plugin's state has passed, which touched these nodes.
    PluginStateChanged {
        /// The nodes, ascending.
        nodes: Arc<[NodeIdx]>,
    },
    /// A pod for this scheduler waits to be placed.
    PendingAdded(PodId),
    /// A pending pod changed.
    PendingUpdated {
        /// Id of the pod.
        id: PodId,
        /// The pod before the change.
        old: Arc<Pod>,
    },
    /// This scheduler no longer places a pending or assumed pod: the pod was deleted, ended, is terminating, or was
    /// placed by another scheduler.
    PendingRemoved {
        /// Id of the pod; its slot may be free by now.
        id: PodId,
        /// The pod as it was.
        pod: Arc<Pod>,
    },
    /// A pod left the state; its id may belong to another pod by now.
    PodForgotten {
        /// The id it had.
        id: PodId,
        /// The pod as it was.
        pod: Arc<Pod>,
    },
}

impl ClusterEvent {
    /// Returns the kinds of this event, [`EventKinds::OTHER`] when no plugin can register for it.
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
            Self::CustomChanged { .. } => EventKinds::CUSTOM_OBJECT,
            Self::PluginStateChanged { .. } => EventKinds::PLUGIN_STATE,
            Self::ObjectChanged { old: None, new: None }
            | Self::PendingAdded(_)
            | Self::PendingRemoved { .. }
            | Self::PodForgotten { .. } => EventKinds::OTHER,
        }
    }
}
