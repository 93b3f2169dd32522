//! State that plugins derive from nodes and pods and that must be undone together with them.
//!
//! It changes only through these hooks, which come in inverse pairs, so an overlay undoes it by calling
//! the inverse in reverse order. Not for caches of one cycle: those are `framework::CycleValue`.

use std::any::Any;

use crate::model::{Node, NodeIdx, Pod};

/// A plugin's share of the state. One per plugin type, whatever the number of profiles.
pub trait DerivedState: Any + Send + Sync {
    /// Returns a copy that shares what did not change, for a published root.
    fn fork(&self) -> Box<dyn DerivedState>;

    /// A pod takes room on a node.
    fn pod_added(&mut self, node: NodeIdx, pod: &Pod) {
        let _ = (node, pod);
    }

    /// The inverse of [`pod_added`](Self::pod_added).
    fn pod_removed(&mut self, node: NodeIdx, pod: &Pod) {
        let _ = (node, pod);
    }

    /// A node object appeared (`old` is `None`), changed, or went (`new` is `None`).
    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) {
        let _ = (node, old, new);
    }

    /// For the typed access of [`View::state`](crate::framework::View::state).
    fn as_any(&self) -> &dyn Any;
}
