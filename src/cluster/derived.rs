//! State that plugins derive from nodes and pods, and that is undone together with them.
//!
//! It changes only through the hooks of [`DerivedState`], which come in inverse pairs: an overlay undoes it by calling
//! the inverse hooks in reverse order. Not for caches of one cycle; `framework::CycleValue` is.

use std::any::Any;

use pellucid_model::{Node, NodeIdx, Object, Pod, PodId};

use crate::stage::Hold;

/// One plugin's derived state. There is one per plugin type, however many profiles use it.
pub trait DerivedState: Any + Send + Sync {
    /// Returns a copy for a published snapshot, which shares what did not change.
    fn fork(&self) -> Box<dyn DerivedState>;

    /// Handles a pod that was placed on a node.
    fn pod_added(&mut self, node: NodeIdx, pod: &Pod) {
        let _ = (node, pod);
    }

    /// Inverse of [`pod_added`](Self::pod_added).
    fn pod_removed(&mut self, node: NodeIdx, pod: &Pod) {
        let _ = (node, pod);
    }

    /// Handles a node object that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) {
        let _ = (node, old, new);
    }

    /// Handles an object of another kind that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    fn object_changed(&mut self, old: Option<&Object>, new: Option<&Object>) {
        let _ = (old, new);
    }

    /// Handles a plugin's Reserve that holds something for a placed pod. Every derived state is called; it ignores the
    /// holds of plugins that it does not know.
    fn reserved(&mut self, pod: PodId, reservation: &Hold) {
        let _ = (pod, reservation);
    }

    /// Inverse of [`reserved`](Self::reserved).
    fn unreserved(&mut self, pod: PodId, reservation: &Hold) {
        let _ = (pod, reservation);
    }

    /// Returns `self` for the typed access of `View::state`.
    fn as_any(&self) -> &dyn Any;
}
