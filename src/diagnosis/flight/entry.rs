//! One entry of the flight recorder.

use std::sync::Arc;

use crate::cycle::decision::{Placement, Refusal};
use crate::cycle::gangs::{GangOutcome, GangVerdict};
use crate::model::PodKey;

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
    /// It was given a node, which is among the names.
    Placed {
        /// Sum of the weighted scores; `i64::MIN` when only one node was feasible.
        score: i64,
        /// Number of feasible nodes found.
        feasible: u32,
        /// Number of nodes looked at.
        evaluated: u32,
        /// Number of nodes there were.
        total: u32,
    },
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

impl From<&Placement> for What {
    #[inline(always)]
    fn from(placement: &Placement) -> Self {
        let Placement { score, feasible, evaluated, total, .. } = *placement;
        Self::Placed { score: score.unwrap_or(i64::MIN), feasible, evaluated, total }
    }
}

impl What {
    /// Returns the word used in bodies.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Gated(_) => "Gated",
            Self::Refused(_) => "Refused",
            Self::Placed { .. } => "Placed",
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

/// Where the names of an entry stand in its chunk's text, one behind the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names {
    pub(super) at: u32,
    pub(super) namespace: u16,
    pub(super) name: u16,
    pub(super) node: u16,
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

/// One entry, as small as it can be: one is written per decision. Its names are in the [`Chunk`](super::Chunk).
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number.
    pub id: u64,
    /// Wall time of the last event that it stands for, nanoseconds since 1970.
    pub last: u64,
    /// The attempt that was made last.
    pub cycle: u64,
    pub(super) repeat: Option<Box<Repeat>>,
    pub(super) names: Names,
    /// What happened, the last time.
    pub what: What,
}

impl Entry {
    /// Returns the entry whose place it took; 0: none.
    pub fn replaces(&self) -> u64 {
        self.repeat.as_ref().map_or(0, |repeat| repeat.replaces)
    }

    /// Returns the wall time of the first event that it stands for, nanoseconds since 1970.
    pub fn first(&self) -> u64 {
        self.repeat.as_ref().map_or(self.last, |repeat| repeat.first)
    }

    /// Returns how many events it stands for.
    pub fn count(&self) -> u32 {
        self.repeat.as_ref().map_or(1, |repeat| repeat.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Entry>() <= 72, "{} bytes", size_of::<Entry>());
    }
}
