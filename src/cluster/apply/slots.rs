//! Node slots: given out by name, and freed when neither an object nor pods need them.

use std::sync::Arc;

use pellucid_model::{Name, NodeIdx, stable_hash};

use crate::state::{Cluster, NodeSlot};

impl Cluster {
    /// Returns the slot of a node name. A name that has none gets one.
    pub(crate) fn slot_of(&mut self, name: &Name) -> NodeIdx {
        if let Some(known) = self.find_node(name) {
            return known;
        }
        let node = self.free_nodes.pop().unwrap_or(NodeIdx(self.nodes.len() as u32));
        let tie = stable_hash::seeded(self.seed, name);
        let ties = Arc::make_mut(&mut self.ties);
        ties.resize(ties.len().max(node.index() + 1), 0);
        ties[node.index()] = tie;
        self.nodes.set(node.index(), NodeSlot { tie, ..NodeSlot::default() });
        self.node_names.set(node.index(), name.clone());
        self.columns.grow(self.nodes.len());
        self.node_index.insert(name.clone(), node);
        node
    }

    /// Frees the slot of a node that has neither an object nor pods. Does nothing within an overlay, because the
    /// undo log may still name the slot.
    pub(crate) fn free_ghost(&mut self, node: NodeIdx) {
        let slot = &self.nodes[node.index()];
        let is_named = !self.node_name(node).is_empty();
        if slot.node.is_none() && slot.pods.is_empty() && is_named && !self.undo.is_open() {
            self.node_index.remove(&std::mem::take(&mut self.node_names[node.index()]));
            self.nodes[node.index()] = NodeSlot::default();
            self.free_nodes.push(node);
        }
    }
}
