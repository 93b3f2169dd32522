//! The set of nodes that filters narrow, one after the other.

use pellucid_model::NodeIdx;
use pellucid_model::cause::{Cause, CauseId, Causes};

/// The nodes that no plugin has refused for the pod so far, ascending.
pub struct Nodes<'a> {
    nodes: &'a mut Vec<NodeIdx>,
    causes: &'a mut Causes,
    mask: &'a mut [CauseId],
}

impl<'a> Nodes<'a> {
    /// Makes a set. `mask` has one entry per node slot and receives the cause of each refused node.
    #[inline]
    pub fn new(nodes: &'a mut Vec<NodeIdx>, causes: &'a mut Causes, mask: &'a mut [CauseId]) -> Self {
        Self { nodes, causes, mask }
    }

    /// Returns the id of a cause, for use in [`refuse`](Self::refuse).
    #[inline]
    pub fn cause(&mut self, cause: Cause) -> CauseId {
        self.causes.id(cause)
    }

    /// Returns the nodes in the set.
    #[inline]
    pub fn members(&self) -> &[NodeIdx] {
        self.nodes
    }

    /// Calls `cause_of` for every node and removes those with a cause other than [`CauseId::FEASIBLE`].
    pub fn refuse(&mut self, mut cause_of: impl FnMut(NodeIdx) -> CauseId) {
        let mask = &mut *self.mask;
        self.nodes.retain(|node| {
            let cause = cause_of(*node);
            mask[node.index()] = cause;
            cause.is_feasible()
        });
    }

    /// Like [`refuse`](Self::refuse), with access to the table for causes that are known only per node.
    pub fn refuse_with(&mut self, mut cause_of: impl FnMut(&mut Causes, NodeIdx) -> CauseId) {
        let (mask, causes) = (&mut *self.mask, &mut *self.causes);
        self.nodes.retain(|node| {
            let cause = cause_of(causes, *node);
            mask[node.index()] = cause;
            cause.is_feasible()
        });
    }
}
