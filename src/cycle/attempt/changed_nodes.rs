//! The nodes that changed since results were made, each once and ascending.

use pellucid_cluster::changes::Changed;
use pellucid_model::NodeIdx;

/// Up to this many nodes are sorted by comparing them. More are taken from a walk over the bits of all slots.
const FEW: usize = 16;

/// Nodes whose pods changed, and nodes whose object did.
#[derive(Default)]
pub(crate) struct ChangedNodes {
    /// Nodes whose pods changed, ascending; meaningless if there are many.
    usage: Vec<NodeIdx>,
    /// The same nodes, one bit each, if there are many.
    bits: Vec<u64>,
    /// Whether the pods of more nodes than [`FEW`] changed.
    is_many: bool,
    /// Nodes whose object changed, ascending.
    objects: Vec<NodeIdx>,
}

impl ChangedNodes {
    /// Takes the place of what was collected before.
    pub(crate) fn collect(&mut self, changed: impl Iterator<Item = (NodeIdx, Changed)>, n_slots: usize) {
        let Self { usage, bits, objects, is_many } = self;
        usage.clear();
        objects.clear();
        if *is_many {
            bits.clear();
        }
        bits.resize(n_slots.div_ceil(64), 0);
        let bits = bits.as_mut_slice();
        changed.for_each(|(node, what)| {
            if what == Changed::Object {
                objects.push(node);
                return;
            }
            if usage.len() <= FEW && !has_bit(bits, node) {
                usage.push(node);
            }
            set_bit(bits, node);
        });
        self.is_many = self.usage.len() > FEW;
        if !self.is_many {
            self.usage.sort_unstable();
            self.usage.iter().for_each(|node| self.bits[node.index() / 64] = 0);
        }
        self.objects.sort_unstable();
        self.objects.dedup();
    }

    /// Names the nodes whose pods changed, ascending.
    pub(crate) fn for_each_usage(&self, mut each: impl FnMut(NodeIdx)) {
        if !self.is_many {
            return self.usage.iter().copied().for_each(each);
        }
        for (i, word) in self.bits.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                each(NodeIdx((i * 64) as u32 + left.trailing_zeros()));
                left &= left - 1;
            }
        }
    }

    /// Returns whether a node has changed.
    pub(crate) fn has(&self, node: NodeIdx) -> bool {
        let is_in_usage = match self.is_many {
            true => has_bit(&self.bits, node),
            false => self.usage.binary_search(&node).is_ok(),
        };
        is_in_usage || self.objects.binary_search(&node).is_ok()
    }

    /// Returns the nodes whose object changed, ascending.
    pub(crate) fn objects(&self) -> &[NodeIdx] {
        &self.objects
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.usage.is_empty()
    }
}

fn has_bit(bits: &[u64], node: NodeIdx) -> bool {
    bits[node.index() / 64] >> (node.index() % 64) & 1 == 1
}

fn set_bit(bits: &mut [u64], node: NodeIdx) {
    bits[node.index() / 64] |= 1 << (node.index() % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_named_once_and_in_order() {
        let mut changed = ChangedNodes::default();
        for n in [3, 40, FEW as u32, FEW as u32 + 1, 0, 70] {
            let nodes: Vec<NodeIdx> = (0..n).rev().map(|i| NodeIdx(i * 13 % 300)).collect();
            let log = nodes.iter().chain(&nodes).map(|node| (*node, Changed::Usage));
            changed.collect(log.chain([(NodeIdx(7), Changed::Object), (NodeIdx(7), Changed::Object)]), 300);
            let mut want = nodes.clone();
            want.sort_unstable();
            want.dedup();
            let mut named = Vec::new();
            changed.for_each_usage(|node| named.push(node));
            assert_eq!(named, want);
            assert_eq!(changed.objects(), [NodeIdx(7)]);
            assert!(
                (0..300).map(NodeIdx).all(|node| changed.has(node) == (node.0 == 7 || want.contains(&node)))
            );
        }
        changed.collect([].into_iter(), 300);
        assert!(changed.is_empty());
    }
}
