//! What an input changed, for the queue's wake-up hints and for the engine.

use std::sync::Arc;

use crate::model::{NodeIdx, Pod, PodId};

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
        old: Arc<crate::model::Node>,
    },
    /// A node is gone.
    NodeRemoved(NodeIdx),
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
    PodForgotten(PodId),
}
