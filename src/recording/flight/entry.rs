//! The entries of the flight recorder.

use std::sync::Arc;

use pellucid_cluster::derived::Told;
use pellucid_cluster::preemptions::{GangPart, Lack, Preemption};
use pellucid_model::{NodeIdx, PodKey};

use super::line::Line;
use super::ring::RecordedAt;
use crate::{GangOutcome, GangVerdict, Outcome, Placement, Refusal, Verdict};

/// Why a pod's history ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// The API server no longer has the pod, or has another one with its name.
    Deleted,
    /// The pod is being deleted before it was bound.
    Deleting,
    /// The pod succeeded.
    Succeeded,
    /// The pod failed.
    Failed,
    /// The pod changed into something that cannot be read.
    Unreadable,
}

/// An event in the history of a pod or gang.
#[derive(Clone, Debug)]
pub enum FlightEvent {
    /// A pod for this scheduler was added, and waits to be placed.
    Added,
    /// Scheduling gates, or those of the pod's gang, keep the pod out of the queue.
    Gated(Arc<Refusal>),
    /// An attempt failed, or its placement was undone.
    Refused(Arc<Refusal>),
    /// An attempt placed the pod on a node.
    Placed(Numbers),
    /// The API server confirmed the pod on a node.
    Bound,
    /// The pod lost its place before it was bound.
    Released,
    /// The pod's eviction was ordered, or its placement was taken back, to make room for another pod.
    Evicted(Arc<Eviction>),
    /// The pod's own preemption ended.
    PreemptionEnded(Arc<Preemption>),
    /// The pod no longer waits to be placed, or no longer runs.
    Left(Departure),
    /// An object that is scheduled as a pod changed in a way that its pod does not tell.
    Told(Arc<Told>),
    /// The outcome of an attempt at a gang.
    Gang(Arc<GangVerdict>),
    /// Nothing was recorded for a while, because the switch was off. The entry's count is the number of missed events.
    NotRecorded,
}

/// Who evicted a pod, and for what.
#[derive(Clone, Debug)]
pub struct Eviction {
    /// Namespace and name of the preemptor.
    pub preemptor: PodKey,
    /// The preemptor's priority.
    pub preemptor_priority: i32,
    /// The victim's priority.
    pub priority: i32,
    /// Whether the eviction goes beyond what a PodDisruptionBudget allows.
    pub violates_budget: bool,
    /// Whether the victim's deletion is ordered. Otherwise it was not bound yet, and its placement is taken back.
    pub is_ordered: bool,
    /// The gang that preempts as one, when the preemptor is a member of it.
    pub gang: Option<GangPart>,
    /// What the node lacked for the preemptor.
    pub lack: Option<Arc<Lack>>,
}

/// The numbers of a placement, compact enough for one per decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Sum of the weighted scores; `i64::MIN` when only one node was feasible.
    pub score: i64,
    /// Node-change counter at decision time, modulo 2^32.
    pub changes: u32,
    /// Attempts at the unit so far, this one included.
    pub attempts: u32,
    /// Number of feasible nodes.
    pub feasible: u32,
    /// Number of nodes evaluated.
    pub evaluated: u32,
    /// Number of nodes in the cluster.
    pub total: u32,
}

impl Numbers {
    /// Returns the numbers of a placement.
    #[inline(always)]
    pub fn of(placement: &Placement, attempts: u32, changes: u64) -> Self {
        let Placement { score, feasible, evaluated, total, .. } = *placement;
        let score = score.unwrap_or(i64::MIN);
        Self { score, changes: changes as u32, attempts, feasible, evaluated, total }
    }

    /// Rebuilds the verdict that placed a pod on a node. `changes` is the current node-change counter.
    pub fn verdict(self, node: NodeIdx, (cycle, at): RecordedAt, changes: u64) -> Verdict {
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

impl FlightEvent {
    /// Returns the name used in the REST API.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Gated(_) => "Gated",
            Self::Refused(_) => "Refused",
            Self::Placed(_) => "Placed",
            Self::Bound => "Bound",
            Self::Released => "Released",
            Self::Evicted(eviction) if eviction.is_ordered => "Evicted",
            Self::Evicted(_) => "TakenBack",
            Self::PreemptionEnded(_) => "PreemptionEnded",
            Self::Left(Departure::Deleted) => "Deleted",
            Self::Left(Departure::Deleting) => "Deleting",
            Self::Left(Departure::Succeeded | Departure::Failed) => "Ended",
            Self::Left(Departure::Unreadable) => "Unreadable",
            Self::Told(told) => told.kind,
            Self::NotRecorded => "NotRecorded",
            Self::Gang(verdict) => match verdict.outcome {
                GangOutcome::Placed { .. } => "GangPlaced",
                GangOutcome::Waiting { .. } => "GangWaiting",
                GangOutcome::Refused(_) => "GangRefused",
                GangOutcome::Released { .. } => "GangReleased",
            },
        }
    }

    /// Returns the refusal of a gated or refused pod.
    pub fn refusal(&self) -> Option<&Arc<Refusal>> {
        match self {
            Self::Gated(refusal) | Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// The history of an entry that stands for several events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    /// Id of the entry that it replaced, 0 if none.
    pub(super) replaces: u64,
    /// When the first event happened, in nanoseconds since 1970.
    pub(super) first: u64,
    /// Number of events.
    pub(super) count: u32,
}

/// One entry, as a reader sees it; it is stored as a [`Line`].
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Id of the entry.
    pub id: u64,
    /// Wall time of the last event that it stands for, in nanoseconds since 1970.
    pub last: u64,
    /// Number of the last attempt (scheduling cycle).
    pub cycle: u64,
    pub(super) line: Line,
}
