//! State that plugins derive from nodes and pods and that must be undone together with them.
//!
//! It changes only through these hooks, which come in inverse pairs, so an overlay undoes it by calling
//! the inverse in reverse order. Not for caches of one cycle: those are `framework::CycleValue`.

use std::any::Any;

use pellucid_model::{Node, NodeIdx, Object, Pod, PodId};

use crate::stage::Hold;

/// A plugin's share of the state. One per plugin type, whatever the number of profiles.
pub trait DerivedState: Any + Send + Sync {
    /// Returns a copy that shares what did not change, for a published snapshot.
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

    /// An object of another kind was added (`old` is `None`), changed, or is gone (`new` is `None`).
    fn object_changed(&mut self, old: Option<&Object>, new: Option<&Object>) {
        let _ = (old, new);
    }

    /// A plugin's Reserve holds something for a placed pod. Every derived state is told; one that does not
    /// know the plugin looks away.
    fn reserved(&mut self, pod: PodId, reservation: &Hold) {
        let _ = (pod, reservation);
    }

    /// The inverse of [`reserved`](Self::reserved).
    fn unreserved(&mut self, pod: PodId, reservation: &Hold) {
        let _ = (pod, reservation);
    }

    /// For the typed access of [`View::state`](pellucid_framework::View::state).
    fn as_any(&self) -> &dyn Any;
}
