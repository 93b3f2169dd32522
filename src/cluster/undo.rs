//! The undo log: the inverse of every change since the outermost overlay began.

use pellucid_model::{NodeIdx, PodId};
use smallvec::SmallVec;

use crate::stage::{Hold, Stage};

/// How to take one change back.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    /// The pod was placed; before, it was in `stage`.
    Release { id: PodId, stage: Stage },
    /// The pod was released from `node`.
    Place { id: PodId, node: NodeIdx, stage: Stage },
    /// Something was reserved for the pod.
    Unreserve { id: PodId },
    /// Something was given up that was reserved for the pod.
    Reserve { id: PodId, what: Hold },
    /// The pod's stage was changed.
    Stage { id: PodId, stage: Stage },
}

/// A mark in the undo log. Ends in `commit` or `rollback`.
#[derive(Debug)]
#[must_use = "an overlay ends in commit or rollback"]
pub struct Overlay {
    at: usize,
}

/// The log. Empty and free of cost while no overlay is open.
#[derive(Debug, Default)]
pub(super) struct UndoLog {
    entries: Vec<Undo>,
    open: usize,
    /// Set while entries are carried out: the net change of an overlay that is undone is none, so an
    /// outer overlay must not learn of it.
    undoing: bool,
}

impl UndoLog {
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    pub(super) fn push(&mut self, entry: Undo) {
        if self.is_open() && !self.undoing {
            self.entries.push(entry);
        }
    }

    pub(super) fn begin(&mut self) -> Overlay {
        self.open += 1;
        Overlay { at: self.entries.len() }
    }

    /// Ends an overlay. Returns the nodes that lost pods when it was the outermost one.
    pub(super) fn commit(&mut self, overlay: Overlay) -> SmallVec<[NodeIdx; 4]> {
        let Overlay { at: _ } = overlay;
        self.open -= 1;
        let mut left = SmallVec::new();
        if self.open == 0 {
            for entry in self.entries.drain(..) {
                if let Undo::Place { node, .. } = entry {
                    left.push(node);
                }
            }
        }
        left
    }

    /// Returns the entries of an overlay, newest first, to be carried out before [`Self::end_undo`].
    pub(super) fn take_back(&mut self, overlay: Overlay) -> Vec<Undo> {
        let mut entries = self.entries.split_off(overlay.at);
        entries.reverse();
        self.undoing = true;
        entries
    }

    pub(super) fn end_undo(&mut self) {
        self.undoing = false;
        self.open -= 1;
    }
}
