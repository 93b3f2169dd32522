//! The view of the cluster that a plugin sees.
//!
//! A view shows the state with all assumed changes (nominated pods, removed victims, reserved gang members). These are
//! made on the state itself within an overlay and undone afterwards, so the columns that a plugin walks through are
//! always right and no loop handles exceptions.

use pellucid_cluster::{Cluster, Columns, DerivedState};
use pellucid_model::selector::Labels;
use pellucid_model::taint::Taint;
use pellucid_model::{Name, NodeIdx, Pod};

/// A read-only view of the state. Cheap to copy.
#[derive(Clone, Copy)]
pub struct View<'a> {
    cluster: &'a Cluster,
    pod: Option<&'a Pod>,
}

impl<'a> View<'a> {
    /// Makes a view of a state.
    #[inline]
    pub fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, pod: None }
    }

    /// Returns the view of an attempt at a pod.
    #[inline]
    pub fn for_pod(self, pod: &'a Pod) -> Self {
        Self { pod: Some(pod), ..self }
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
        &self.cluster.slot(node).name
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
