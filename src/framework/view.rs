//! What a plugin sees of the cluster.
//!
//! The state with whatever deltas are in force. Deltas (nominees, removed victims, reserved siblings) are
//! carried out on the state itself within an overlay and undone afterwards, so the columns a plugin walks
//! through are always the truth and no loop asks for exceptions.

use pellucid_cluster::{Cluster, Columns, DerivedState};
use pellucid_model::selector::Labels;
use pellucid_model::taint::Taint;
use pellucid_model::{Name, NodeIdx};

/// A read-only view of the state. Cheap to copy.
#[derive(Clone, Copy)]
pub struct View<'a> {
    cluster: &'a Cluster,
}

impl<'a> View<'a> {
    /// Makes a view of a state.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self { cluster }
    }

    /// Returns the whole state, for endpoints and explanations.
    pub fn cluster(self) -> &'a Cluster {
        self.cluster
    }

    /// Returns the nodes there are, ascending.
    pub fn nodes(self) -> &'a [NodeIdx] {
        self.cluster.present()
    }

    /// Returns the amounts columns.
    pub fn columns(self) -> &'a Columns {
        self.cluster.columns()
    }

    /// Returns the name of a node.
    pub fn name(self, node: NodeIdx) -> &'a Name {
        &self.cluster.slot(node).name
    }

    /// Returns the labels of a present node.
    pub fn labels(self, node: NodeIdx) -> Option<&'a Labels> {
        self.cluster.node(node).map(|n| &n.labels)
    }

    /// Returns the taints of a node, none for a slot without an object.
    pub fn taints(self, node: NodeIdx) -> &'a [Taint] {
        self.cluster.node(node).map_or(&[], |n| &n.taints)
    }

    /// Returns a plugin's derived state.
    pub fn state<S: DerivedState>(self) -> Option<&'a S> {
        self.cluster.derived()
    }
}
