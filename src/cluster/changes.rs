//! The log of changed nodes, from which caches of rows per node catch up.

use std::collections::VecDeque;

use pellucid_model::NodeIdx;

/// What of a node changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The pods on it.
    Usage,
    /// The node object.
    Object,
}

/// A ring of changes. A reader that fell behind its start must look at everything anew.
#[derive(Debug, Default)]
pub struct ChangeLog {
    ring: VecDeque<(NodeIdx, Changed)>,
    start: u64,
    /// Counts changes that touch every row: nodes that come or go, images.
    epoch: u64,
    paused: bool,
}

/// How many changes are kept. Catching up with more costs as much as starting over at 5,000 nodes.
const KEPT: usize = 4096;

impl ChangeLog {
    /// Records a change.
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

    /// Records nothing until [`resume`](Self::resume): what follows is going to be undone. Returns how it
    /// was, because questions nest.
    pub(super) fn pause(&mut self) -> bool {
        std::mem::replace(&mut self.paused, true)
    }

    /// Ends a pause.
    pub(super) fn resume(&mut self, was_paused: bool) {
        self.paused = was_paused;
    }

    /// Records a change that touches every row.
    pub fn push_all(&mut self) {
        self.epoch += 1;
    }

    /// Returns how many changes there have been: as long as it stands, nothing changed.
    pub fn count(&self) -> u64 {
        let (at, epoch) = self.head();
        at + epoch
    }

    /// Returns the position after the newest change, and the epoch.
    pub fn head(&self) -> (u64, u64) {
        (self.start + self.ring.len() as u64, self.epoch)
    }

    /// Iterates over the changes since a position; `None` when some of them are forgotten.
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
