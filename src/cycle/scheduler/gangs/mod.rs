//! Gangs: the pending members of a gang group are one unit, planned as one. Start at `Scheduler::schedule_gang`.
//!
//! A group that has its quorum is satisfied: its further pods are scheduled one by one like any others, so this module
//! is about groups without a quorum. `cluster::gangs` defines what a gang is and who belongs to it.
//!
//! - `groups`: which gangs are planned together
//! - `units`: keeps the units in step with the state
//! - `gate`: holds back groups that cannot be planned yet
//! - `attempt_progress`: one attempt, in slices
//! - `plan`: the transaction, and what follows from its result
//! - `search`, `trial`, `orders`: try the members in several orders
//! - `account`: describes how far a group came
//! - `victims`, `bound`, `preempt`: search for victims when all orders fail
//! - `resources`: amounts over the whole cluster
//! - `waiting`: NonStrict groups, whose members wait for each other
//! - `barrier`: keeps the Bindings of a quorum together
//! - `status`: writes PodGroups

mod account;
mod attempt_progress;
mod barrier;
mod bound;
pub mod gate;
mod groups;
mod orders;
mod plan;
mod preempt;
pub mod resources;
mod search;
mod status;
mod trial;
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

/// What the scheduler knows about gangs besides the cluster state.
#[derive(Default)]
pub(crate) struct GangBook {
    /// Gang rules of each profile; `None` if it does not schedule gangs.
    rules: Vec<Option<GangRules>>,
    groups: Groups,
    /// When each group is checked next, to report that it waits or because a wait runs out.
    deadlines: BTreeSet<(Duration, GangKey)>,
    /// Quorums whose Bindings have not begun.
    barriers: Vec<Barrier>,
    /// Verdict of the last attempt at each gang.
    pub(crate) verdicts: CowMap<GangKey, Arc<GangVerdict>>,
    /// Gangs whose PodGroup status may be out of date.
    stale: BTreeSet<GangKey>,
    /// The last status ordered for each gang's PodGroup.
    written: FxHashMap<GangKey, GroupStatus>,
}

impl GangBook {
    pub(crate) fn new(profiles: &[Arc<Profile>]) -> Self {
        Self { rules: profiles.iter().map(|p| p.gang_rules()).collect(), ..Self::default() }
    }

    fn schedule_check(&mut self, rep: &GangKey, at: Duration) {
        let Some(group) = self.groups.get_mut(rep) else { return };
        if group.check_at.is_some_and(|known| known <= at) {
            return;
        }
        let rep = group.rep().clone();
        if let Some(known) = group.check_at.replace(at) {
            self.deadlines.remove(&(known, rep.clone()));
        }
        self.deadlines.insert((at, rep));
    }

    fn cancel_check(&mut self, rep: &GangKey) {
        let Some(group) = self.groups.get_mut(rep) else { return };
        if let Some(at) = group.check_at.take() {
            self.deadlines.remove(&(at, group.rep().clone()));
        }
    }

    pub(crate) fn group_limits(&self) -> GroupLimits {
        let rules = self.common_rules().unwrap_or_default();
        GroupLimits {
            wait: rules.gang_wait,
            policy: rules.match_policy,
            gangs: rules.max_group_gangs,
            members: rules.max_group_members,
        }
    }

    /// Returns the rules of the first profile that has any. Settings that hold for all gangs alike come from them.
    fn common_rules(&self) -> Option<GangRules> {
        self.rules.iter().flatten().next().copied()
    }
}
