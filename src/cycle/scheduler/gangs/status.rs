//! The status of PodGroups. Nothing else in this scheduler writes it.
//!
//! A gang whose quorum runs is Running, whatever else failed; Finished is final.

use std::sync::Arc;

use pellucid_cluster::gangs::{Gang, GangFrom};
use pellucid_model::effect::{Effect, GroupStatusOrder};
use pellucid_model::gang::{Dialect, GroupCondition, GroupPhase, GroupStatus, PodGroup};
use pellucid_model::pod::PodPhase;
use pellucid_model::{GangKey, Object, Pod};
use pellucid_recording::gang_verdict::GangOutcome;

use super::gate;
use crate::scheduler::Scheduler;

/// Counts of a gang's members by their state at the API server.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    created: u32,
    bound: u32,
    running: u32,
    succeeded: u32,
    failed: u32,
}

impl Scheduler {
    /// Orders status updates of PodGroups, once for all changes since effects were last taken.
    pub(crate) fn write_statuses(&mut self) {
        for key in std::mem::take(&mut self.gangs.stale) {
            self.write_status(&key);
        }
    }

    /// Orders the status of a gang's PodGroup if it differs from the current and the last ordered one.
    fn write_status(&mut self, key: &GangKey) {
        if !self.gangs.common_rules().is_some_and(|rules| rules.writes_status) {
            return;
        }
        let Some(gang) = self.cluster.gangs().get(key).cloned() else { return };
        let GangFrom::PodGroup(kind) = gang.definition.from else { return };
        let at = (key.namespace.clone(), key.name.clone());
        let Some(Object::PodGroup(group)) = self.cluster.objects().get(kind, &at).map(Arc::as_ref) else {
            return;
        };
        if group.deleting {
            return;
        }
        let status = self.status_of(&gang, group).held_by(kind);
        if status == group.status {
            self.gangs.written.remove(key);
            return;
        }
        if self.gangs.written.get(key) == Some(&status) {
            return;
        }
        let uid = group.uid.clone();
        self.gangs.written.insert(key.clone(), status.clone());
        self.order(Effect::GroupStatus(GroupStatusOrder { kind, group: key.clone(), uid, status }));
    }

    fn status_of(&self, gang: &Gang, group: &PodGroup) -> GroupStatus {
        let members = gang.members.keys().filter_map(|id| self.cluster.pod(*id));
        let pods: Vec<&Pod> = members.map(|r| &*r.pod).collect();
        let running = pods.iter().filter(|p| p.phase == PodPhase::Running).count() as u32;
        let (succeeded, failed) = gang.ended();
        let ended = succeeded + failed;
        let (created, bound) = (gang.created(), gang.counts.bound + ended);
        let tally = Tally { created, bound, running, succeeded, failed };
        let phase = phase(group.status.phase.unwrap_or_default(), gang, tally);
        let known = group.status.schedule_start;
        let began = gang.history.schedule_start.map(|now| now.wall.as_secs() as i64);
        let holder = &group.status.occupied_by;
        let occupied_by = if holder.is_empty() { occupied_by(&pods) } else { holder.clone() };
        GroupStatus {
            phase: Some(phase),
            occupied_by,
            scheduled: bound,
            running,
            succeeded,
            failed,
            schedule_start: known.or(began),
            condition: self.condition_of(gang, bound),
        }
    }

    fn condition_of(&self, gang: &Gang, bound: u32) -> Option<GroupCondition> {
        let is_whole = bound >= gang.definition.min;
        match gang.definition.dialect {
            Dialect::Native if is_whole || gang.definition.is_basic => Some(GroupCondition {
                kind: "PodGroupScheduled",
                is_true: true,
                reason: "Scheduled".into(),
                message: "All required pods have been successfully scheduled".into(),
            }),
            Dialect::Native => {
                let message = self.trouble_of(gang)?;
                let (kind, reason) = ("PodGroupScheduled", "Unschedulable".into());
                Some(GroupCondition { kind, is_true: false, reason, message })
            }
            Dialect::KubeBatch => {
                let message = self.trouble_of(gang).filter(|_| !is_whole)?;
                let is_short = gang.history.short_since.is_some();
                let reason = if is_short { "NotEnoughTasks" } else { "NotEnoughResources" };
                Some(GroupCondition { kind: "Unschedulable", is_true: true, reason: reason.into(), message })
            }
            _ => None,
        }
    }

    /// Returns a message on what keeps a gang from its quorum.
    fn trouble_of(&self, gang: &Gang) -> Option<Arc<str>> {
        if gang.history.short_since.is_some() || gang.definition.undefined.is_some() {
            // A gang without pending members has no group.
            let block = match self.gangs.groups.get(&gang.key) {
                Some(_) => self.block(&gang.key, &gang.key),
                None => gate::block(self.cluster.gangs(), &gang.key, |_| 0),
            };
            return block.map(|block| block.message().into());
        }
        match &self.gangs.verdicts.get(&gang.key)?.outcome {
            GangOutcome::Placed { .. } => None,
            GangOutcome::Waiting { refusal, .. } | GangOutcome::Refused(refusal) => {
                Some(refusal.message.clone())
            }
            GangOutcome::Released { message, .. } => Some(message.clone()),
        }
    }
}

fn phase(before: GroupPhase, gang: &Gang, of: Tally) -> GroupPhase {
    let min = gang.definition.min;
    if before == GroupPhase::Finished || (min > 0 && of.succeeded >= min) {
        return GroupPhase::Finished;
    }
    if gang.definition.undefined.is_some() {
        return GroupPhase::Unknown;
    }
    let reached = of.running + of.succeeded;
    if reached >= min && reached > 0 {
        GroupPhase::Running
    } else if of.failed > 0 && of.failed + reached >= min {
        GroupPhase::Failed
    } else if of.created < min || of.created == 0 {
        GroupPhase::Pending
    } else if of.bound >= min && of.bound > 0 {
        GroupPhase::Scheduled
    } else if gang.history.schedule_start.is_some() || gang.history.attempts > 0 {
        GroupPhase::Scheduling
    } else {
        GroupPhase::PreScheduling
    }
}

/// Returns the controllers of the pods as `namespace/name`, sorted and joined by commas.
fn occupied_by(pods: &[&Pod]) -> Arc<str> {
    let owner = |p: &&Pod| p.controller.as_ref().map(|c| format!("{}/{}", p.key.namespace, c.name));
    let mut owners: Vec<String> = pods.iter().filter_map(owner).collect();
    owners.sort();
    owners.dedup();
    owners.join(",").into()
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::gangs::Definition;

    use super::*;

    #[test]
    fn phases_follow_the_members() {
        let mut gang = Gang::new(GangKey::new("d", "g"));
        gang.definition = Arc::new(Definition { min: 3, ..Definition::default() });
        let tally =
            |created, bound, running, succeeded, failed| Tally { created, bound, running, succeeded, failed };
        let next = |gang: &Gang, before, of| phase(before, gang, of);
        use GroupPhase::{Failed, Finished, Pending, PreScheduling, Running, Scheduled, Scheduling};
        assert_eq!(next(&gang, Pending, tally(0, 0, 0, 0, 0)), Pending);
        assert_eq!(next(&gang, Pending, tally(2, 0, 0, 0, 0)), Pending);
        assert_eq!(next(&gang, Pending, tally(3, 0, 0, 0, 0)), PreScheduling);
        gang.history.attempts = 1;
        assert_eq!(next(&gang, PreScheduling, tally(3, 0, 0, 0, 0)), Scheduling);
        assert_eq!(next(&gang, Scheduling, tally(3, 3, 2, 0, 0)), Scheduled);
        assert_eq!(next(&gang, Scheduled, tally(3, 3, 3, 0, 0)), Running);
        assert_eq!(
            next(&gang, Running, tally(4, 4, 3, 0, 1)),
            Running,
            "a quorum runs, whatever failed beside it"
        );
        assert_eq!(next(&gang, Running, tally(3, 3, 0, 2, 1)), Failed);
        assert_eq!(next(&gang, Running, tally(4, 4, 0, 3, 1)), Finished);
        assert_eq!(next(&gang, Finished, tally(0, 0, 0, 0, 0)), Finished, "it is final");
        assert_eq!(next(&gang, Failed, tally(4, 4, 3, 0, 1)), Running, "a failed pod was made anew");
    }
}
