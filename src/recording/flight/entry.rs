//! One entry of the flight recorder.

use std::sync::Arc;

use pellucid_model::{NodeIdx, PodKey};

use super::line::Line;
use super::ring::Recorded;
use crate::{GangOutcome, GangVerdict};
use crate::{Outcome, Placement, Refusal, Verdict};

/// How a pod went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The API server no longer has it, or has another one of its name.
    Deleted,
    /// It is being deleted and was not placed for good.
    Deleting,
    /// It succeeded or failed.
    Ended,
    /// It changed into something that cannot be read.
    Unreadable,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// A pod of ours came and waits.
    Added,
    /// It is held before the queue.
    Gated(Arc<Refusal>),
    /// An attempt failed, or what came of one was taken back.
    Refused(Arc<Refusal>),
    /// It was given a node.
    Placed(Numbers),
    /// The API server has it on a node.
    Bound,
    /// It lost the place it held before it was bound.
    Released,
    /// Its eviction was ordered, to make room for this pod.
    Evicted(Arc<PodKey>),
    /// It is no longer there to be placed, or no longer runs.
    Gone(Gone),
    /// What an attempt at a gang came to.
    Gang(Arc<GangVerdict>),
    /// Nothing was recorded for a while: the switch was off. The count says how much.
    NotRecorded,
}

/// The numbers of a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Sum of the weighted scores; `i64::MIN` when only one node was feasible.
    pub score: i64,
    /// How many changes of nodes there had been, modulo 2^32.
    pub changes: u32,
    /// Attempts at the unit so far, this one included.
    pub attempts: u32,
    /// Number of feasible nodes.
    pub feasible: u32,
    /// Number of nodes looked at.
    pub evaluated: u32,
    /// Number of nodes there were.
    pub total: u32,
}

impl Numbers {
    /// Returns those of a placement.
    #[inline(always)]
    pub fn of(placement: &Placement, attempts: u32, changes: u64) -> Self {
        let Placement { score, feasible, evaluated, total, .. } = *placement;
        let score = score.unwrap_or(i64::MIN);
        Self { score, changes: changes as u32, attempts, feasible, evaluated, total }
    }

    /// Returns the verdict that placed a pod on a node. `changes`: how many there have been by now.
    pub fn verdict(self, node: NodeIdx, (cycle, at): Recorded, changes: u64) -> Verdict {
        let Self { score, attempts, feasible, evaluated, total, .. } = self;
        let score = Some(score).filter(|score| *score != i64::MIN);
        Verdict {
            cycle,
            attempts,
            at,
            changes: changes - u64::from((changes as u32).wrapping_sub(self.changes)),
            outcome: Outcome::Placed(Placement { node, score, feasible, evaluated, total }),
            plan: None,
        }
    }
}

impl What {
    /// Returns the word used in bodies.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Gated(_) => "Gated",
            Self::Refused(_) => "Refused",
            Self::Placed(_) => "Placed",
            Self::Bound => "Bound",
            Self::Released => "Released",
            Self::Evicted(_) => "Evicted",
            Self::Gone(Gone::Deleted) => "Deleted",
            Self::Gone(Gone::Deleting) => "Deleting",
            Self::Gone(Gone::Ended) => "Ended",
            Self::Gone(Gone::Unreadable) => "Unreadable",
            Self::NotRecorded => "NotRecorded",
            Self::Gang(verdict) => match verdict.outcome {
                GangOutcome::Placed { .. } => "GangPlaced",
                GangOutcome::Waiting { .. } => "GangWaiting",
                GangOutcome::Refused(_) => "GangRefused",
                GangOutcome::Released { .. } => "GangReleased",
            },
        }
    }

    /// Returns the refusal behind it.
    pub fn refusal(&self) -> Option<&Arc<Refusal>> {
        match self {
            Self::Gated(refusal) | Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// What came before an entry that stands for more than one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    /// The entry whose place it took; 0: none.
    pub(super) replaces: u64,
    /// When the first was, nanoseconds since 1970.
    pub(super) first: u64,
    /// How many there are.
    pub(super) count: u32,
}

/// One entry, as a reader has it; where it is stored it is a [`Line`].
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its number.
    pub id: u64,
    /// Wall time of the last event that it stands for, nanoseconds since 1970.
    pub last: u64,
    /// The attempt that was made last.
    pub cycle: u64,
    pub(super) line: Line,
}
