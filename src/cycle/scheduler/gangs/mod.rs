//! Gangs in the cycle: the members of a gang group that are not placed are one unit, planned as one.
//!
//! A group that has its quorum is satisfied: its further pods are scheduled one by one like any others, so
//! what is said here is about groups that are short of it. `groups` follows which gangs belong together, `units` keeps
//! the units in step with the state, `gate` holds back groups that cannot be planned yet. `plan` is the transaction,
//! `underway` an attempt in slices, `search` and `trial` try `orders` of the members, `account` says what came of it. When
//! all fail, `bound` says whether victims could help, `victims` looks for them and `preempt` acts. `resources` are amounts over the whole cluster,
//! `waiting` what NonStrict members do, `barrier` keeps the Bindings of a quorum together, `status` writes
//! PodGroups. What a gang is and who belongs to it: `cluster::gangs`.

mod account;
mod barrier;
mod bound;
pub mod gate;
mod groups;
mod orders;
mod plan;
mod preempt;
mod resources;
mod search;
mod status;
mod trial;
mod underway;
mod units;
mod victims;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::gangs::GroupLimits;
use pellucid_framework::gangs::GangRules;
use pellucid_framework::profile::Profile;
use pellucid_model::collections::FxHashMap;
use pellucid_model::gang::GroupStatus;
use pellucid_model::{CowMap, GangKey};
use pellucid_recording::GangVerdict;

use barrier::Barrier;
use groups::Groups;

/// What the scheduler keeps about gangs besides the state.
#[derive(Default)]
pub(crate) struct GangBook {
    /// How each profile schedules gangs.
    rules: Vec<Option<GangRules>>,
    groups: Groups,
    /// When to look at a group again: to tell it that it waits, or because a wait runs out.
    deadlines: BTreeSet<(Duration, GangKey)>,
    /// Quorums whose Bindings did not begin.
    barriers: Vec<Barrier>,
    /// What became of the last attempt at each gang.
    verdicts: CowMap<GangKey, Arc<GangVerdict>>,
    /// Gangs whose PodGroup may have to say something else.
    stale: BTreeSet<GangKey>,
    /// What was last ordered to be written about each gang.
    written: FxHashMap<GangKey, GroupStatus>,
}

impl GangBook {
    pub(crate) fn new(profiles: &[Arc<Profile>]) -> Self {
        Self { rules: profiles.iter().map(|p| p.gang_rules()).collect(), ..Self::default() }
    }

    /// Returns what became of the last attempts, for readers.
    pub(crate) fn verdicts(&self) -> CowMap<GangKey, Arc<GangVerdict>> {
        self.verdicts.clone()
    }

    /// Returns when something falls due.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    fn look_again(&mut self, rep: &GangKey, at: Duration) {
        let Some(group) = self.groups.get_mut(rep) else { return };
        if group.look_at.is_some_and(|known| known <= at) {
            return;
        }
        let rep = group.rep().clone();
        if let Some(known) = group.look_at.replace(at) {
            self.deadlines.remove(&(known, rep.clone()));
        }
        self.deadlines.insert((at, rep));
    }

    fn look_no_more(&mut self, rep: &GangKey) {
        let Some(group) = self.groups.get_mut(rep) else { return };
        if let Some(at) = group.look_at.take() {
            self.deadlines.remove(&(at, group.rep().clone()));
        }
    }

    /// Returns how large groups may be.
    pub(crate) fn group_limits(&self) -> GroupLimits {
        let rules = self.common_rules().unwrap_or_default();
        GroupLimits { gangs: rules.max_group_gangs, members: rules.max_group_members }
    }

    /// Returns the rules of the first profile that has any: what holds for all gangs alike.
    fn common_rules(&self) -> Option<GangRules> {
        self.rules.iter().flatten().next().copied()
    }
}
