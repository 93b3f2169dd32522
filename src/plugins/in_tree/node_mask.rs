//! A set of nodes as bits. Writing copies the bits if a published snapshot still shares them: 8 bytes per 64 nodes, so
//! 632 bytes at 5,000 nodes.

use std::sync::Arc;

use pellucid_model::NodeIdx;

/// A copy-on-write set of node slots.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeMask {
    words: Arc<Vec<u64>>,
    len: usize,
}

impl NodeMask {
    /// Adds (`member`) or removes a node.
    pub(super) fn set(&mut self, node: NodeIdx, member: bool) {
        if self.contains(node) == member {
            return;
        }
        let words = Arc::make_mut(&mut self.words);
        let (word, bit) = (node.index() / 64, 1u64 << (node.index() % 64));
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] ^= bit;
        if member {
            self.len += 1;
        } else {
            self.len -= 1;
        }
    }

    /// Returns whether a node is in the set.
    #[inline]
    pub(super) fn contains(&self, node: NodeIdx) -> bool {
        let word = self.words.get(node.index() / 64).copied().unwrap_or(0);
        word >> (node.index() % 64) & 1 != 0
    }

    /// Returns the number of nodes in the set.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the nodes in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = NodeIdx> {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| NodeIdx((i * 64 + bit) as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_and_go_and_a_copy_keeps_what_it_saw() {
        let mut mask = NodeMask::default();
        for n in [3, 64, 200] {
            mask.set(NodeIdx(n), true);
            mask.set(NodeIdx(n), true);
        }
        let seen = mask.clone();
        mask.set(NodeIdx(64), false);
        assert_eq!(mask.iter().map(|n| n.0).collect::<Vec<_>>(), [3, 200]);
        assert_eq!((mask.len(), seen.len()), (2, 3));
        assert!(seen.contains(NodeIdx(64)) && !mask.contains(NodeIdx(64)) && !mask.contains(NodeIdx(9999)));
    }
}
