//! A gang: its members by stage, its definition, and its history.
//!
//! Counts follow the stages of the members and are undone with them. The scheduler writes the history (attempts,
//! rounds, times) between overlays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::gang::{Dialect, MatchPolicy};
use pellucid_model::pod::PodPhase;
use pellucid_model::{GangKey, Now, PodId, PodKey};

use super::definition::Definition;
use crate::Stage;

/// The outcome of a pending member's last attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastTry {
    /// The member was never attempted.
    #[default]
    None,
    /// A node was found for the member.
    Placeable,
    /// No node was found for the member.
    Failed,
    /// The attempt ended before this member was evaluated, because the outcome was clear.
    NotEvaluated,
}

/// What the gang knows of a member besides the pod's own record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// When the member entered its stage.
    pub since: Option<Now>,
    /// Until when it waits at Permit, on the monotonic clock.
    pub deadline: Option<Duration>,
    /// The round (`schedule_cycle`) in which it was last attempted.
    pub round: u64,
    /// The outcome of that attempt.
    pub last: LastTry,
}

/// A member whose pod ended while its object still exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The pod's uid.
    pub uid: Arc<str>,
    /// Succeeded or Failed.
    pub phase: PodPhase,
}

/// Number of members by stage; ended members are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangCounts {
    /// Not placed, gated members included.
    pub pending: u32,
    /// Held at Permit.
    pub waiting: u32,
    /// Reserved, permitted, pre-binding or binding.
    pub permitted: u32,
    /// Confirmed by the API server.
    pub bound: u32,
}

impl GangCounts {
    /// Returns the number of members that use a node.
    pub fn placed(self) -> u32 {
        self.waiting + self.permitted + self.bound
    }

    fn of(&mut self, stage: Stage) -> &mut u32 {
        match stage {
            Stage::Pending => &mut self.pending,
            Stage::Waiting => &mut self.waiting,
            Stage::Reserved | Stage::Permitted | Stage::PreBinding | Stage::Binding => &mut self.permitted,
            Stage::Bound => &mut self.bound,
        }
    }
}

/// The history of a gang, written by the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Attempts at the gang.
    pub attempts: u32,
    /// Times that a wait for other members ran out.
    pub timeouts: u32,
    /// Koordinator's `scheduleCycle`: the current round, starting at 1.
    pub schedule_cycle: u64,
    /// Whether no member has failed in this round.
    pub is_cycle_valid: bool,
    /// Whether its quorum was ever permitted.
    pub once_satisfied: bool,
    /// Whether a quorum was permitted and is not completely bound yet.
    pub is_partial: bool,
    /// When a member was first placed.
    pub schedule_start: Option<Now>,
    /// Since when it has too few pods; `None` while it has enough.
    pub short_since: Option<Now>,
    /// Whether it had too few pods for longer than it may wait.
    pub is_overdue: bool,
    /// The last time its waiting members were given up.
    pub last_release: Option<Release>,
    /// Consecutive refusals, and when the backoff after the last one ends on the monotonic clock. Set when the last pod
    /// leaves the queue, for pods that come again soon.
    pub rejected: Option<(u32, Duration)>,
    /// The uid of the controller of the member that joined last.
    pub last_owner: Option<Arc<str>>,
    /// Since when it has no pods, on the monotonic clock.
    pub empty_since: Option<Duration>,
}

/// One release of waiting members, who lost their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Why they were released.
    pub code: pellucid_api::reason::ReasonCode,
    /// When they were released.
    pub at: Now,
    /// How many members were released.
    pub members: u32,
}

/// A gang, part of [`Gangs`](super::Gangs).
#[derive(Clone, Debug, Default)]
pub struct Gang {
    /// Namespace and name.
    pub key: GangKey,
    /// The definition in force.
    pub definition: Arc<Definition>,
    /// Members in the state. The order of pod ids means nothing; code that shows or plans must sort.
    pub members: BTreeMap<PodId, Member>,
    /// Members whose pods ended.
    pub finished: BTreeMap<PodKey, Finished>,
    /// Number of members by stage.
    pub counts: GangCounts,
    /// What happened to the gang.
    pub history: History,
    /// Creation time and key of its oldest pod that has not ended.
    pub(super) first: Option<(i64, PodKey)>,
    /// Number of gangs that it names and that do not name it back or do not exist.
    pub(super) one_sided: u32,
    /// Whether a PodGroup ever existed.
    pub(super) had_group: bool,
    pub(super) is_dirty: bool,
    /// Whether the definition changed since the last [`Gangs::take_redefined`](super::Gangs::take_redefined).
    pub(super) is_redefined: bool,
}

impl Gang {
    /// Makes a gang without members or a definition.
    pub fn new(key: GangKey) -> Self {
        let history = History { schedule_cycle: 1, is_cycle_valid: true, ..History::default() };
        Self { key, history, ..Self::default() }
    }

    /// Returns the number of members that exist, ended ones included.
    pub fn created(&self) -> u32 {
        (self.members.len() + self.finished.len()) as u32
    }

    /// Returns how many members succeeded and how many failed.
    pub fn ended(&self) -> (u32, u32) {
        let succeeded = self.finished.values().filter(|f| f.phase == PodPhase::Succeeded).count() as u32;
        (succeeded, self.finished.len() as u32 - succeeded)
    }

    /// Returns the match policy in force; `None` in dialects other than Koordinator's, unless one is declared.
    pub fn policy(&self) -> Option<MatchPolicy> {
        let of_dialect = (self.definition.dialect == Dialect::Koordinator).then(MatchPolicy::default);
        self.definition.policy.or(of_dialect)
    }

    /// Returns whether it had its quorum before. A bound member shows it, as in Koordinator: the history begins with the scheduler.
    pub fn was_satisfied(&self) -> bool {
        self.history.once_satisfied || self.counts.bound > 0
    }

    /// Returns whether the gang needs no more members at once, so that pods can be placed one by one.
    pub fn is_satisfied(&self) -> bool {
        let is_once = self.policy() == Some(MatchPolicy::OnceSatisfied) && self.was_satisfied();
        self.definition.is_basic || is_once || self.counted() >= self.definition.min
    }

    /// Returns how many members count towards the quorum now.
    pub fn counted(&self) -> u32 {
        let counts = self.counts;
        match (self.policy(), self.definition.dialect) {
            // While a permitted quorum is not completely bound, as after a failed Binding, bound members count as well.
            (Some(MatchPolicy::OnlyWaiting), _) if !self.history.is_partial => {
                counts.waiting + counts.permitted
            }
            (_, Dialect::KubeBatch) => counts.placed() + self.ended().0,
            _ => counts.placed(),
        }
    }

    /// Returns how many more members must be placed to reach the quorum.
    pub fn need(&self) -> u32 {
        if self.is_satisfied() { 0 } else { self.definition.min - self.counted() }
    }

    /// Returns how many members are there for the quorum: those that count, and the `ready` ones, which wait to be placed.
    pub fn have(&self, ready: u32) -> u32 {
        self.counted().saturating_add(ready)
    }

    /// Returns how many members must come before the quorum can be planned.
    pub fn missing(&self, ready: u32) -> u32 {
        if self.is_satisfied() { 0 } else { self.definition.min.saturating_sub(self.have(ready)) }
    }

    /// Returns how long members wait for each other; `coscheduling_default` applies to dialects without a default.
    pub fn wait(&self, coscheduling_default: Duration) -> Duration {
        self.definition.wait.unwrap_or(match self.definition.dialect {
            Dialect::Koordinator => Duration::from_secs(600),
            Dialect::Unicore => Duration::from_secs(60),
            Dialect::Coscheduling | Dialect::KubeBatch | Dialect::Native => coscheduling_default,
        })
    }

    /// Returns whether each gang that it names exists and names it back.
    pub fn has_partners(&self) -> bool {
        self.one_sided == 0
    }

    /// Returns whether a PodGroup ever existed.
    pub fn had_group(&self) -> bool {
        self.had_group
    }

    pub(super) fn count(&mut self, stage: Stage, by: i32) {
        let count = self.counts.of(stage);
        *count = count.saturating_add_signed(by);
    }
}
