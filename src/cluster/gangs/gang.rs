//! A gang: its members by stage, its definition, and what happened to it.
//!
//! Counts follow the members' stages and are undone with them. The history (attempts, rounds, clocks) is written
//! by the scheduler between overlays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::gang::{Dialect, MatchPolicy};
use pellucid_model::pod::PodPhase;
use pellucid_model::{GangKey, Now, PodId, PodKey};

use super::definition::Definition;
use crate::Stage;

/// How a pending member fared in the last attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastTry {
    /// There was none.
    #[default]
    None,
    /// It would have been placed.
    Placeable,
    /// No node took it.
    Failed,
    /// It was not asked: the outcome was clear.
    NotEvaluated,
}

/// What is known of a member besides the pod's own record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// When it entered its stage.
    pub since: Option<Now>,
    /// Until when it waits at Permit, on the monotonic clock.
    pub deadline: Option<Duration>,
    /// The round in which it was tried last.
    pub round: u64,
    /// How it fared then.
    pub last: LastTry,
}

/// A member whose pod ended while the object is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// uid.
    pub uid: Arc<str>,
    /// Succeeded or Failed.
    pub phase: PodPhase,
}

/// Members by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GangCounts {
    /// Not placed (gated ones too).
    pub pending: u32,
    /// Held at Permit.
    pub waiting: u32,
    /// Reserved, permitted, pre-binding or binding.
    pub permitted: u32,
    /// Bound.
    pub bound: u32,
}

impl GangCounts {
    /// Returns how many take room.
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

/// What happened to a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Attempts at it.
    pub attempts: u32,
    /// Waits that ran out.
    pub timeouts: u32,
    /// Koordinator's round: counts from 1.
    pub schedule_cycle: u64,
    /// Whether no member has failed in this round.
    pub is_cycle_valid: bool,
    /// Whether its quorum was permitted once.
    pub once_satisfied: bool,
    /// Whether a quorum was permitted that is not yet bound.
    pub is_partial: bool,
    /// When a member was first placed.
    pub schedule_start: Option<Now>,
    /// Since when it is short of pods.
    pub short_since: Option<Now>,
    /// Whether it was short for longer than it may be.
    pub is_overdue: bool,
    /// What its last release of waiting members was for.
    pub last_release: Option<Release>,
    /// Refusals in a row, and until when the last one lasts: kept for pods that come again.
    pub rejected: Option<(u32, Duration)>,
    /// The uid of the controller of its last pod.
    pub last_owner: Option<Arc<str>>,
    /// Since when it has no pods.
    pub empty_since: Option<Duration>,
}

/// Waiting members were given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Why.
    pub code: pellucid_api::reason::ReasonCode,
    /// When.
    pub at: Now,
    /// How many.
    pub members: u32,
}

/// A gang.
#[derive(Clone, Debug)]
pub struct Gang {
    /// Namespace and name.
    pub key: GangKey,
    /// Definition.
    pub definition: Arc<Definition>,
    /// Members in the state. The numbers order nothing: whoever shows or plans sorts.
    pub members: BTreeMap<PodId, Member>,
    /// Members that ended.
    pub finished: BTreeMap<PodKey, Finished>,
    /// Members by stage.
    pub counts: GangCounts,
    /// What happened.
    pub history: History,
    /// Creation and name of its oldest pod that has not ended: it defines the gang before the others.
    pub(super) first: Option<(i64, PodKey)>,
    /// How many of the gangs that it names do not name it back, or do not exist.
    pub(super) one_sided: u32,
    /// Whether a PodGroup was ever there.
    pub(super) had_group: bool,
    pub(super) is_dirty: bool,
    /// Whether its definition changed since somebody last asked.
    pub(super) is_redefined: bool,
}

impl Gang {
    /// Makes a gang without members or a definition.
    pub fn new(key: GangKey) -> Self {
        let history = History { schedule_cycle: 1, is_cycle_valid: true, ..History::default() };
        Self {
            key,
            definition: Arc::default(),
            members: BTreeMap::new(),
            finished: BTreeMap::new(),
            counts: GangCounts::default(),
            history,
            first: None,
            one_sided: 0,
            had_group: false,
            is_dirty: false,
            is_redefined: false,
        }
    }

    /// Returns how many members exist, ended ones included.
    pub fn created(&self) -> u32 {
        (self.members.len() + self.finished.len()) as u32
    }

    /// Returns how many members ended well, and how many failed.
    pub fn ended(&self) -> (u32, u32) {
        let succeeded = self.finished.values().filter(|f| f.phase == PodPhase::Succeeded).count() as u32;
        (succeeded, self.finished.len() as u32 - succeeded)
    }

    /// Returns the match policy in force (Koordinator's dialect only).
    pub fn policy(&self) -> Option<MatchPolicy> {
        let of_dialect = (self.definition.dialect == Dialect::Koordinator).then(MatchPolicy::default);
        self.definition.policy.or(of_dialect)
    }

    /// Whether nothing more is asked of it: its members are placed one by one.
    pub fn is_satisfied(&self) -> bool {
        let is_once = self.policy() == Some(MatchPolicy::OnceSatisfied) && self.history.once_satisfied;
        self.definition.is_basic || is_once || self.counted() >= self.definition.min
    }

    /// Returns how many members count towards the quorum as they are.
    pub fn counted(&self) -> u32 {
        let counts = self.counts;
        match (self.policy(), self.definition.dialect) {
            // While a quorum is not whole after a failed Binding, the bound ones stand for it.
            (Some(MatchPolicy::OnlyWaiting), _) if !self.history.is_partial => {
                counts.waiting + counts.permitted
            }
            (_, Dialect::KubeBatch) => counts.placed() + self.ended().0,
            _ => counts.placed(),
        }
    }

    /// Returns how many more members must be placed for its quorum.
    pub fn need(&self) -> u32 {
        if self.is_satisfied() { 0 } else { self.definition.min - self.counted() }
    }

    /// Returns how long members wait, given the default of the dialects that have one of their own.
    pub fn wait(&self, coscheduling_default: Duration) -> Duration {
        self.definition.wait.unwrap_or(match self.definition.dialect {
            Dialect::Koordinator => Duration::from_secs(600),
            Dialect::Unicore => Duration::from_secs(60),
            Dialect::Coscheduling | Dialect::KubeBatch | Dialect::Native => coscheduling_default,
        })
    }

    /// Whether each gang that it names exists and names it back.
    pub fn has_partners(&self) -> bool {
        self.one_sided == 0
    }

    /// Whether a PodGroup was ever there.
    pub fn had_group(&self) -> bool {
        self.had_group
    }

    pub(super) fn count(&mut self, stage: Stage, by: i32) {
        let count = self.counts.of(stage);
        *count = count.saturating_add_signed(by);
    }
}
