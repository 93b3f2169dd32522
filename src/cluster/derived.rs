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
    fn pod_added(&mut self, _node: NodeIdx, _pod: &Pod) {}

    /// Inverse of [`pod_added`](Self::pod_added).
    fn pod_removed(&mut self, _node: NodeIdx, _pod: &Pod) {}

    /// Handles a node object that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    fn node_changed(&mut self, _node: NodeIdx, _old: Option<&Node>, _new: Option<&Node>) {}

    /// Handles an object of another kind that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    fn object_changed(&mut self, _old: Option<&Object>, _new: Option<&Object>) {}

    /// Handles a plugin's Reserve that holds something for a placed pod. Every derived state is called; it ignores the
    /// holds of plugins that it does not know.
    fn reserved(&mut self, _pod: PodId, _reservation: &Hold) {}

    /// Inverse of [`reserved`](Self::reserved).
    fn unreserved(&mut self, _pod: PodId, _reservation: &Hold) {}

    /// Returns `self` for the typed access of `View::state`.
    fn as_any(&self) -> &dyn Any;
}
