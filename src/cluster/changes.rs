//! The log of changed nodes, which caches of per-node results read to catch up.

use std::collections::VecDeque;

use pellucid_model::NodeIdx;

use crate::derived::Touched;

/// What changed about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The pods on it.
    Usage,
    /// The node object.
    Object,
}

/// A ring buffer of node changes. A reader that fell behind its start must recompute everything.
#[derive(Debug, Default)]
pub struct ChangeLog {
    ring: VecDeque<(NodeIdx, Changed)>,
    start: u64,
    /// Counts changes that affect every node's results: nodes that come or go, images.
    epoch: u64,
    paused: bool,
}

/// Capacity of the log. At 5,000 nodes, catching up with more changes costs as much as starting over.
const KEPT: usize = 4096;

impl ChangeLog {
    /// Records a change of one node.
    pub fn push(&mut self, node: NodeIdx, changed: Changed) {
        if self.paused {
            return;
        }
        self.ring.push_back((node, changed));
        if self.ring.len() > KEPT {
            self.ring.pop_front();
            self.start += 1;
        }
    }

    /// Stops recording until [`resume`](Self::resume), for changes that are going to be undone. Returns whether the
    /// log was paused already, because trials nest.
    pub(super) fn pause(&mut self) -> bool {
        std::mem::replace(&mut self.paused, true)
    }

    /// Ends a pause; `was_paused` is what [`pause`](Self::pause) returned.
    pub(super) fn resume(&mut self, was_paused: bool) {
        self.paused = was_paused;
    }

    /// Records a change that affects the results of every node.
    #[inline]
    pub fn push_all(&mut self) {
        self.epoch += 1;
    }

    /// Records the nodes that a change of a plugin's state touched.
    pub(crate) fn push_touched(&mut self, touched: &Touched) {
        match touched {
            Touched::Nothing | Touched::Attempts => {}
            Touched::Nodes(nodes) => nodes.iter().for_each(|node| self.push(*node, Changed::Usage)),
            Touched::All if self.paused => {}
            Touched::All => self.push_all(),
        }
    }

    /// Returns the number of changes so far; while it is the same, nothing changed.
    #[inline]
    pub fn count(&self) -> u64 {
        let (at, epoch) = self.head();
        at + epoch
    }

    /// Returns the position after the newest change, and the epoch, to pass to [`since`](Self::since).
    #[inline]
    pub fn head(&self) -> (u64, u64) {
        (self.start + self.ring.len() as u64, self.epoch)
    }

    /// Iterates over the changes since a position; `None` when some of them are no longer in the log.
    #[inline]
    pub fn since(&self, position: (u64, u64)) -> Option<impl Iterator<Item = (NodeIdx, Changed)>> {
        let (at, epoch) = position;
        if epoch != self.epoch || at < self.start {
            return None;
        }
        Some(self.ring.range((at - self.start) as usize..).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_what_is_new_or_is_told_to_start_over() {
        let mut log = ChangeLog::default();
        let start = log.head();
        log.push(NodeIdx(1), Changed::Usage);
        log.push(NodeIdx(2), Changed::Object);
        let seen: Vec<_> = log.since(start).into_iter().flatten().collect();
        assert_eq!(seen, [(NodeIdx(1), Changed::Usage), (NodeIdx(2), Changed::Object)]);
        let now = log.head();
        assert_eq!(log.since(now).into_iter().flatten().count(), 0);
        log.push_all();
        assert!(log.since(now).is_none());
        for _ in 0..=KEPT {
            log.push(NodeIdx(3), Changed::Usage);
        }
        assert!(log.since((0, 1)).is_none());
    }
}
