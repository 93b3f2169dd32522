//! The undo log: the inverse of every change since the outermost overlay began.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::{NodeIdx, PodId};

use crate::given::Given;
use crate::hold::Hold;
use crate::stage::Stage;

/// The inverse of one change.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    /// Undoes a placement: releases the pod, which was in `stage` before.
    Release { id: PodId, stage: Stage },
    /// Undoes a release: places the pod on `node` again, where it was since then.
    Place { id: PodId, node: NodeIdx, stage: Stage, since: Duration },
    /// Undoes a reserve.
    Unreserve { id: PodId },
    /// Undoes an unreserve.
    Reserve { id: PodId, hold: Hold },
    /// Undoes a change of what the pod gives up.
    Give { id: PodId, given: Option<Arc<Given>> },
    /// Undoes a change of a hold that stays.
    SetHold { id: PodId, hold: Hold },
    /// Undoes a change of stage: the pod was in `stage` before.
    Stage { id: PodId, stage: Stage },
}

/// An open overlay, as a position in the undo log. Ends in `commit` or `rollback`.
#[derive(Debug)]
#[must_use = "an overlay ends in commit or rollback"]
pub struct Overlay {
    at: usize,
}

/// An overlay that [`Cluster::end_trial`](crate::Cluster::end_trial) undoes.
#[derive(Debug)]
#[must_use = "a trial is undone in end_trial"]
pub struct TrialOverlay {
    pub(super) overlay: Overlay,
    pub(super) paused: bool,
}

/// The log. Invariant: empty while no overlay is open.
#[derive(Debug, Default)]
pub(super) struct UndoLog {
    entries: Vec<Undo>,
    open: usize,
    /// Set while entries are undone. An overlay that is rolled back has no net change, so an outer overlay must
    /// not record the inverse changes.
    undoing: bool,
}

impl UndoLog {
    pub(super) fn is_open(&self) -> bool {
        self.open > 0
    }

    pub(super) fn is_undoing(&self) -> bool {
        self.undoing
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

    /// Ends an overlay. Returns whether it was the outermost one, and nodes lost pods: [`Self::take_left`] names them.
    pub(super) fn commit(&mut self, _overlay: Overlay) -> bool {
        self.open -= 1;
        if self.open > 0 {
            return false;
        }
        let is_any_left = self.entries.iter().any(|entry| matches!(entry, Undo::Place { .. }));
        if !is_any_left {
            self.entries.clear();
        }
        is_any_left
    }

    /// Returns the nodes that lost pods in overlays that have ended.
    pub(super) fn take_left(&mut self) -> Vec<NodeIdx> {
        let left = |entry: Undo| if let Undo::Place { node, .. } = entry { Some(node) } else { None };
        self.entries.drain(..).filter_map(left).collect()
    }

    /// Returns the entries of an overlay, newest first. The caller carries them out, then calls [`Self::end_undo`].
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
