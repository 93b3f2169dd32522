//! Counts per node, in pages of 64 nodes. A page is allocated when it is first written.
//!
//! A class of pods that runs on one node costs one page; a class that runs everywhere is walked as an array.

use std::sync::Arc;

use pellucid_model::NodeIdx;
use pellucid_model::pages::PAGE;

/// A count per node, 0 by default. Clones share the pages that do not change.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeCounts {
    pages: Vec<Option<Arc<[u32; PAGE]>>>,
    total: usize,
}

impl NodeCounts {
    /// Increments the count of a node.
    pub(crate) fn add(&mut self, node: NodeIdx) {
        let page = node.index() / PAGE;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Arc::new([0; PAGE]));
        Arc::make_mut(page)[node.index() % PAGE] += 1;
        self.total += 1;
    }

    /// Decrements the count of a node unless it is 0.
    pub(crate) fn remove(&mut self, node: NodeIdx) {
        let Some(Some(page)) = self.pages.get_mut(node.index() / PAGE) else { return };
        let count = &mut Arc::make_mut(page)[node.index() % PAGE];
        if *count > 0 {
            *count -= 1;
            self.total -= 1;
        }
    }

    /// Returns the sum over all nodes.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Calls `with` for every node with a count above 0, in ascending order.
    #[inline]
    pub(crate) fn for_each(&self, mut with: impl FnMut(NodeIdx, u32)) {
        for (at, page) in self.pages.iter().enumerate() {
            let Some(page) = page else { continue };
            for (i, count) in page.iter().enumerate().filter(|(_, count)| **count > 0) {
                with(NodeIdx((at * PAGE + i) as u32), *count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_and_go_and_a_copy_keeps_what_it_saw() {
        let mut counts = NodeCounts::default();
        for n in [3, 200, 3] {
            counts.add(NodeIdx(n));
        }
        let seen = counts.clone();
        counts.remove(NodeIdx(200));
        counts.remove(NodeIdx(200));
        counts.remove(NodeIdx(9999));
        let list = |counts: &NodeCounts| {
            let mut all = Vec::new();
            counts.for_each(|node, count| all.push((node.0, count)));
            all
        };
        assert_eq!((list(&counts), counts.total()), (vec![(3, 2)], 2));
        assert_eq!((list(&seen), seen.total()), (vec![(3, 2), (200, 1)], 3));
    }
}
