//! NonStrict groups: members that fit take their places and wait for the others until a deadline.
//!
//! A failed member does not stop its siblings. In the dialect of scheduler-plugins, its argument
//! `podGroupRejectPercentage` applies too: when a member failed and more than that percentage of the quorum is missing,
//! all waiting members give up their places at once.

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::gangs::Release;
use pellucid_cluster::{ClusterEvent, Stage};
use pellucid_framework::profile::Aside;
use pellucid_model::gang::Dialect;
use pellucid_model::{GangKey, Now, Pod, PodId};
use pellucid_queue::{Unit, UnitId};
use pellucid_recording::Outcome;
use pellucid_recording::flight::FlightEvent;
use pellucid_recording::gang_verdict::{GangOutcome, GangRefusal, member_refusal};

use super::attempt_progress::Slice;
use super::plan::GangAttempt;
use super::trial::{Fate, Run, Trial};
use crate::scheduler::{Scheduler, Step};

impl Scheduler {
    /// Places what fits. All members are permitted if the group has its quorum; otherwise those that were placed wait.
    /// Returns the run as the error when the slice is over.
    pub(super) fn plan_waiting(
        &mut self,
        attempt: &GangAttempt,
        mut run: Box<Run>,
        slice: &mut Slice<'_>,
    ) -> Result<Vec<Step>, Box<Run>> {
        let now = slice.now;
        let overlay = self.cluster.begin();
        if !self.run_on(attempt, &mut run, slice) {
            self.cluster.rollback(overlay);
            return Err(run);
        }
        let (trial, work) = (run.trial, slice.spent(self.turns.work));
        for (member, fate) in attempt.candidates.iter().zip(&trial.fates) {
            if matches!(fate, Fate::Placed(..)) {
                self.cluster.set_stage(member.id, Stage::Waiting);
            }
        }
        let is_quorum = self.has_quorum(&attempt.keys);
        if !is_quorum && !trial.failed().is_empty() && self.is_hopeless(&attempt.keys) {
            // These placements leave nothing behind, not even an event: gangs that reject themselves in turn would wake
            // each other forever.
            self.cluster.rollback(overlay);
            return Ok(self.reject(attempt, &trial, work, now));
        }
        self.cluster.commit(overlay);
        self.end_round(attempt, &trial, now);
        let mut steps = Vec::new();
        for (i, fate) in trial.fates.iter().enumerate() {
            if matches!(fate, Fate::Placed(..)) {
                steps.push(self.settle_member(attempt, i, &trial, now));
                self.begin_wait(attempt, i, now);
            }
        }
        let placed = trial.n_placed();
        if is_quorum {
            let outcome = GangOutcome::Placed { members: placed, order: trial.order };
            self.store_gang_verdict(attempt, outcome, now);
            self.permit_waiting(&attempt.keys, now);
            return Ok(steps);
        }
        let refusal = Arc::new(self.account(attempt, &trial, vec![trial.order]));
        self.records.counters.refused += 1;
        self.store_gang_verdict(attempt, GangOutcome::Waiting { placed, refusal: refusal.clone() }, now);
        steps.extend(self.refuse_members(attempt, &refusal, Some(&trial), now));
        if self.is_still(attempt.unit, &attempt.rep) {
            self.park(attempt, Some(&trial), work, now);
        }
        Ok(steps)
    }

    /// Refuses a group that lacks too much of its quorum. Members that wait since earlier attempts give up their places
    /// too.
    fn reject(&mut self, attempt: &GangAttempt, trial: &Trial, work: u64, now: Now) -> Vec<Step> {
        let refusal = self.account(attempt, trial, vec![trial.order]);
        let refusal = GangRefusal { code: ReasonCode::GangRejected, ..refusal };
        self.release_waiting(&attempt.rep, ReasonCode::GangRejected, &refusal.message, now);
        self.refuse_group(attempt, refusal, Some(trial), work, now)
    }

    fn begin_wait(&mut self, attempt: &GangAttempt, i: usize, now: Now) {
        let member = &attempt.candidates[i];
        let rules = self.gangs.rules.get(self.profile_index(&member.pod)).copied().flatten();
        let at_most = rules.unwrap_or_default().permit_wait;
        let key = &attempt.keys[member.gang];
        let wait = self.cluster.gangs().get(key).map_or(Duration::ZERO, |g| g.wait(at_most));
        let deadline = now.monotonic + wait;
        self.cluster.gangs_mut().update_member(&member.pod, member.id, |m| m.deadline = Some(deadline));
        self.cluster.gangs_mut().update(key, |gang| {
            gang.history.schedule_start.get_or_insert(now);
        });
        self.gangs.schedule_check(&attempt.rep, deadline);
    }

    /// Whether the gap rule of scheduler-plugins rejects a group: more than a percentage of a gang's quorum is missing.
    fn is_hopeless(&self, keys: &[GangKey]) -> bool {
        let Some(rules) = self.gangs.common_rules() else { return false };
        let gangs = keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let mut ruled = gangs.filter(|gang| gang.definition.dialect == Dialect::Coscheduling);
        ruled.any(|gang| {
            let (min, counted) = (u64::from(gang.definition.min), u64::from(gang.counted()));
            min.saturating_sub(counted) * 100 > min * u64::from(rules.reject_percentage)
        })
    }

    /// Starts the binding of a group's waiting members.
    pub(super) fn permit_waiting(&mut self, keys: &[GangKey], now: Now) {
        let waiting = self.waiting_of(keys);
        if waiting.is_empty() {
            return;
        }
        self.record_satisfied(keys, now);
        let mut events = Vec::new();
        for (id, pod) in waiting {
            self.cluster.gangs_mut().update_member(&pod, id, |m| m.deadline = None);
            if let Some(unit) = self.queue.unit_of(id) {
                self.cluster.set_stage(id, Stage::Permitted);
                self.start_binding(id, unit, (now, false, Aside::default()), &mut events);
            }
        }
        self.wake_all(&events, now);
    }

    /// Returns the waiting members of some gangs, by priority, age and name.
    fn waiting_of(&self, keys: &[GangKey]) -> Vec<(PodId, Arc<Pod>)> {
        let gangs = keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let ids = gangs.flat_map(|g| g.members.keys().copied());
        let records = ids.filter_map(|id| Some((id, self.cluster.pod(id)?)));
        // A pod that joined the gang while it waits for a plugin at Permit waits for no other member.
        let is_free = |id: &PodId| !self.in_flight.pre_binding.contains_key(id);
        let waiting = records.filter(|(id, r)| r.stage == Stage::Waiting && is_free(id));
        let mut pods: Vec<_> = waiting.map(|(id, r)| (id, r.pod.clone())).collect();
        pods.sort_by(|(_, a), (_, b)| {
            b.priority.cmp(&a.priority).then((a.created, &a.key).cmp(&(b.created, &b.key)))
        });
        pods
    }

    /// Releases all waiting members of a group when the first of their waits has run out.
    pub(super) fn expire_waiting(&mut self, rep: &GangKey, now: Now) {
        let Some(keys) = self.gangs.groups.get(rep).map(|g| g.keys.clone()) else { return };
        let gangs = keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let deadlines = gangs.flat_map(|g| g.members.values().filter_map(|m| m.deadline));
        let Some(first) = deadlines.min() else { return };
        if first > now.monotonic {
            return self.gangs.schedule_check(rep, first);
        }
        for key in &keys {
            if self.cluster.gangs().get(key).is_some_and(|g| g.counts.waiting > 0) {
                self.records.counters.gang_timeouts += 1;
                self.cluster.gangs_mut().update(key, |gang| gang.history.timeouts += 1);
            }
        }
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let message = format!("{}: the wait for the other members ran out", names.join(", "));
        self.release_waiting(rep, ReasonCode::GangWaitTimeout, &message, now);
        if let Some(unit) = self.gangs.groups.get(rep).and_then(|g| g.unit) {
            let at_least = self.gangs.common_rules().map(|r| r.backoff).unwrap_or_default();
            self.queue.back_off(unit, at_least, now.monotonic);
        }
    }

    /// Gives up the places of a group's waiting members. They are retried together, when the caller decides.
    pub(crate) fn release_waiting(&mut self, rep: &GangKey, code: ReasonCode, message: &str, now: Now) {
        let Some(keys) = self.gangs.groups.get(rep).map(|g| g.keys.clone()) else { return };
        let waiting = self.waiting_of(&keys);
        if waiting.is_empty() {
            return;
        }
        let members = waiting.len() as u32;
        let refusal = Arc::new(member_refusal(code, message, self.cluster.present().len()));
        let mut events = Vec::new();
        for (id, pod) in &waiting {
            let Some(node) = self.cluster.pod(*id).and_then(|r| r.node) else { continue };
            let name = self.cluster.node_name(node).clone();
            self.cluster.release(*id);
            self.record_event((*id, &pod.key), &name, FlightEvent::Released, now);
            self.cluster.gangs_mut().update_member(pod, *id, |m| m.deadline = None);
            if let Some(unit) = self.queue.unit_of(*id) {
                self.queue.remove(unit);
            }
            events.push(ClusterEvent::PodReleased { pod: pod.clone(), node });
        }
        for (id, pod) in &waiting {
            self.enqueue(*id, now);
            self.report_if_changed(pod, "Unschedulable", refusal.message());
            self.store_verdict(*id, Outcome::Refused(refusal.clone()), now);
        }
        for key in &keys {
            let release = Release { code, at: now, members };
            self.cluster.gangs_mut().update(key, |gang| gang.history.last_release = Some(release));
        }
        let unit = self.gangs.groups.get(rep).and_then(|g| g.unit);
        let attempts = unit.and_then(|u| self.queue.unit(u)).map_or(0, |u| u.attempts);
        let outcome = GangOutcome::Released { code, message: message.into(), members };
        self.keep_gang_verdict(&keys, attempts, outcome, now);
        self.wake_all(&events, now);
    }

    /// Returns the unit of a group's pending members.
    pub(crate) fn unit_of_group(&self, rep: &GangKey) -> Option<UnitId> {
        self.gangs.groups.get(rep)?.unit
    }

    /// Moves a placed pod of a group to an in-flight unit of its own.
    pub(super) fn fly(&mut self, id: PodId, pod: &Arc<Pod>, now: Now) {
        let of = self.queue.unit_of(id).and_then(|unit| self.queue.unit(unit));
        let (attempts, first, errors) =
            of.map_or((0, now.monotonic, 0), |u| (u.attempts, u.first_queued_at, u.errors));
        self.leave_gang_unit(id, pod);
        let profile = self.profile_index(pod);
        let rank = crate::scheduler::inputs::rank(&self.profiles.all[profile], pod);
        let unit = Unit::single(id, pod.key.clone(), profile, rank, pod.created, first);
        self.queue.add_in_flight(Unit { attempts, errors, ..unit });
        self.cluster.gangs_mut().update_member(pod, id, |member| member.since = Some(now));
    }
}
