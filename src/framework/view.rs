//! The view of the cluster that a plugin sees, and the set of nodes that filters narrow.
//!
//! A view shows the state with all assumed changes (nominated pods, removed victims, reserved gang members). These are
//! made on the state itself within an overlay and undone afterwards, so the columns that a plugin walks through are
//! always right and no loop handles exceptions.

use pellucid_cluster::{Cluster, Columns, DerivedState};
use pellucid_model::cause::{Cause, CauseId, Causes};
use pellucid_model::selector::Labels;
use pellucid_model::taint::Taint;
use pellucid_model::{Name, NodeIdx, Pod, PodId};

/// A read-only view of the state. Cheap to copy.
#[derive(Clone, Copy)]
pub struct View<'a> {
    cluster: &'a Cluster,
    pod: Option<&'a Pod>,
    absent: &'a [PodId],
}

impl<'a> View<'a> {
    /// Makes a view of a state.
    #[inline]
    pub fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, pod: None, absent: &[] }
    }

    /// Returns the view of an attempt at a pod.
    #[inline]
    pub fn for_pod(self, pod: &'a Pod) -> Self {
        Self { pod: Some(pod), ..self }
    }

    /// Returns the view of a trial in which some pods are off their node for the pod of the attempt.
    #[inline]
    pub fn without(self, absent: &'a [PodId]) -> Self {
        Self { absent, ..self }
    }

    /// Returns the pods that are off the node in question because a plugin says that its pod does not see them
    /// ([`NodeOverrides`](super::NodeOverrides)); none for other nodes. Only plugins that read
    /// [`Reads::Everything`](super::plugin::Reads::Everything) may look at them.
    #[inline]
    pub fn absent(self) -> &'a [PodId] {
        self.absent
    }

    /// Returns the pod that the plugin is asked about, for what its spec does not say: its own labels, its name, its
    /// owner. `None` in questions about a spec alone. Only plugins that read
    /// [`Reads::Everything`](super::plugin::Reads::Everything) may look at it: what the others say is kept for all pods
    /// with an equal spec.
    #[inline]
    pub fn pod(self) -> Option<&'a Pod> {
        self.pod
    }

    /// Returns the whole state, for endpoints and explanations.
    #[inline]
    pub fn cluster(self) -> &'a Cluster {
        self.cluster
    }

    /// Returns the nodes that exist, ascending.
    #[inline]
    pub fn nodes(self) -> &'a [NodeIdx] {
        self.cluster.present()
    }

    /// Returns the resource columns of all nodes.
    #[inline]
    pub fn columns(self) -> &'a Columns {
        self.cluster.columns()
    }

    /// Returns the name of a node.
    #[inline]
    pub fn name(self, node: NodeIdx) -> &'a Name {
        self.cluster.node_name(node)
    }

    /// Returns a node's labels, or `None` when the slot has no node object.
    #[inline]
    pub fn labels(self, node: NodeIdx) -> Option<&'a Labels> {
        self.cluster.node(node).map(|n| &n.labels)
    }

    /// Returns a node's taints, or none when the slot has no node object.
    #[inline]
    pub fn taints(self, node: NodeIdx) -> &'a [Taint] {
        self.cluster.node(node).map_or(&[], |n| &n.taints)
    }

    /// Returns the derived state of type `S`, or `None` when no plugin registered it.
    pub fn state<S: DerivedState>(self) -> Option<&'a S> {
        self.cluster.derived()
    }
}

/// The nodes that no plugin has refused for the pod so far, ascending in an attempt; a question may ask in any order. The mask
/// of each is [`CauseId::FEASIBLE`].
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
    pub fn refuse_with(&mut self, cause_of: impl FnMut(&mut Causes, NodeIdx) -> CauseId) {
        self.refuse_from(0, cause_of);
    }

    /// Does the same for the members from an index on. The others are accepted.
    pub fn refuse_from(&mut self, first: usize, mut cause_of: impl FnMut(&mut Causes, NodeIdx) -> CauseId) {
        let (mask, causes) = (&mut *self.mask, &mut *self.causes);
        let is_refused = |node: &mut NodeIdx| {
            let cause = cause_of(causes, *node);
            mask[node.index()] = cause;
            !cause.is_feasible()
        };
        self.nodes.extract_if(first.., is_refused).for_each(drop);
    }
}
