//! Keeps the units of gang groups in step with the state: members join and leave, groups gain and lose their quorum.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::gang::MatchPolicy;
use pellucid_model::{GangKey, Now, Pod, PodId, PodKey};
use pellucid_queue::{QueueStage, Unit, UnitId, WakeupReason};

use crate::scheduler::Scheduler;
use crate::scheduler::inputs::{in_window, rank};

impl Scheduler {
    /// Returns the gang of a pod, if its profile schedules gangs.
    pub(crate) fn gang_of<'p>(&self, pod: &'p Pod) -> Option<&'p GangKey> {
        let profile = *self.profiles.by_name.get(&pod.scheduler_name)?;
        self.gangs.rules.get(profile)?.as_ref()?;
        pod.member_of()
    }

    /// Adds a pending pod to the unit of its gang group. Returns false if the pod is scheduled on its own, because it
    /// has no gang or its group has its quorum.
    pub(crate) fn join_gang_unit(&mut self, id: PodId, pod: &Arc<Pod>, now: Now) -> bool {
        let Some(key) = self.gang_of(pod).cloned() else { return false };
        self.form_group(&key, now);
        let Some(group) = self.gangs.groups.get_mut(&key) else { return false };
        let Some(at) = group.at(&key).filter(|_| !group.is_satisfied) else { return false };
        group.ready[at] += 1;
        group.update_readiness(self.cluster.gangs(), at);
        group.joined.push(id);
        group.gang_of.insert(id, key.clone());
        let rep = group.rep().clone();
        match group.unit {
            Some(unit) => self.join_unit(unit, id, pod, now),
            None => {
                let unit = self.make_unit(&rep, id, pod, now);
                let unit = self.queue.add_gated(unit, now.monotonic);
                if let Some(group) = self.gangs.groups.get_mut(&rep) {
                    group.unit = Some(unit);
                }
            }
        }
        self.judge_gated(&rep, id, now);
        // The next review decides whether the group can be planned, when all changes are in.
        self.cluster.gangs_mut().update(&key, |_| ());
        true
    }

    fn join_unit(&mut self, unit: UnitId, id: PodId, pod: &Pod, now: Now) {
        self.queue.attach(unit, id);
        let (profile, own) = (self.profile_index(pod), self.own_priority(unit));
        if own.is_none() {
            let rank = rank(&self.profiles.all[profile], pod);
            if self.queue.unit(unit).is_some_and(|u| u.rank < rank) {
                self.queue.reorder(unit, rank);
            }
        }
        // The pod may be what the others lacked.
        self.queue.wake_changed(unit, WakeupReason::Changed, now.monotonic);
    }

    fn make_unit(&self, rep: &GangKey, id: PodId, pod: &Pod, now: Now) -> Unit {
        let group = self.gangs.groups.get(rep);
        let gangs = group.into_iter().flat_map(|g| &g.keys).filter_map(|k| self.cluster.gangs().get(k));
        let created = gangs.map(|g| g.definition.created).min().unwrap_or(pod.created);
        let own = group.and_then(|g| g.own_priority);
        let profile = self.profile_index(pod);
        let rank = own.map_or_else(|| rank(&self.profiles.all[profile], pod), i64::from);
        let key = PodKey { namespace: rep.namespace.clone(), name: (*rep.name).into() };
        let unit = Unit::single(id, key, profile, rank, created, now.monotonic);
        // A gang goes before all single pods of its window.
        let unit = in_window(unit, &self.profiles.all[profile], |_| i64::MAX);
        Unit { gang: Some(rep.clone()), ..unit }
    }

    /// Returns the rank of a gang's unit: the priority of its PodGroups, or else the rank of its highest member.
    pub(crate) fn gang_rank(&self, unit: UnitId) -> Option<i64> {
        let pods = self.queue.unit(unit).filter(|u| u.gang.is_some())?.pods.iter();
        if let Some(own) = self.own_priority(unit) {
            return Some(i64::from(own));
        }
        let pods = pods.filter_map(|id| self.cluster.pod(*id)).map(|r| &r.pod);
        pods.map(|pod| rank(&self.profiles.all[self.profile_index(pod)], pod)).max()
    }

    fn own_priority(&self, unit: UnitId) -> Option<i32> {
        let rep = self.queue.unit(unit)?.gang.as_ref()?;
        self.gangs.groups.get(rep)?.own_priority
    }

    pub(crate) fn profile_index(&self, pod: &Pod) -> usize {
        self.profiles.by_name.get(&pod.scheduler_name).copied().unwrap_or(0)
    }

    /// Removes a pod from the unit of its group. Returns whether it was in one.
    pub(crate) fn leave_gang_unit(&mut self, id: PodId, pod: &Pod) -> bool {
        let Some(unit) = self.queue.unit_of(id) else { return false };
        let Some(rep) = self.queue.unit(unit).and_then(|u| u.gang.clone()) else { return false };
        if let Some(group) = self.gangs.groups.get_mut(&rep) {
            group.reported.remove(&id);
            if let Some(at) = group.gang_of.remove(&id).and_then(|key| group.at(&key)) {
                group.ready[at] = group.ready[at].saturating_sub(1);
                group.update_readiness(self.cluster.gangs(), at);
            }
            if self.queue.unit(unit).is_some_and(|u| u.pods.len() == 1) {
                (group.unit, group.attempt_progress) = (None, None);
                let keys = group.keys.clone();
                self.keep_rejection(unit, &keys);
            }
        }
        self.queue.detach(id);
        if let Some(key) = pod.member_of() {
            self.cluster.gangs_mut().update(key, |_| ());
        }
        true
    }

    /// Saves the unit's rejection in its gangs before the last pod leaves: it still holds if pods of the gang come
    /// again soon.
    fn keep_rejection(&mut self, unit: UnitId, keys: &[GangKey]) {
        let Some(unit) = self.queue.unit(unit) else { return };
        let rejected = (unit.refusals > 0).then_some((unit.refusals, unit.backoff_until));
        for key in keys {
            self.cluster.gangs_mut().update(key, |gang| gang.history.rejected = rejected);
        }
    }

    /// Whether all of these gangs have their quorum.
    pub(super) fn has_quorum(&self, keys: &[GangKey]) -> bool {
        let gangs = keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        gangs.into_iter().all(|g| g.definition.undefined.is_none() && g.is_satisfied())
    }

    /// Reviews every changed gang: its group, its quorum, and whether it can be planned.
    pub(crate) fn review_gangs(&mut self, now: Now) {
        loop {
            let changed = self.cluster.gangs_mut().take_changed();
            if changed.is_empty() {
                return;
            }
            if self.gangs.common_rules().is_none() {
                continue;
            }
            let mut groups: BTreeMap<GangKey, Vec<GangKey>> = BTreeMap::new();
            for key in &changed {
                self.review_gang(key, now);
            }
            for key in changed {
                if let Some(group) = self.gangs.groups.get(&key) {
                    groups.entry(group.rep().clone()).or_default().push(key);
                }
            }
            for (rep, changed) in groups {
                self.review_group(&rep, &changed, now);
            }
        }
    }

    /// Reviews a changed gang, which may belong to another group now, or be gone.
    fn review_gang(&mut self, key: &GangKey, now: Now) {
        let Some(gang) = self.cluster.gangs().get(key) else {
            self.gangs.verdicts.remove(key);
            self.gangs.written.remove(key);
            self.gangs.stale.remove(key);
            return self.form_group(key, now);
        };
        if gang.created() == 0 && gang.history.empty_since.is_none() {
            self.cluster.gangs_mut().mark_empty(key, now.monotonic);
        }
        self.form_group(key, now);
        self.gangs.stale.insert(key.clone());
    }

    /// Reviews a group once for all of its changed gangs.
    fn review_group(&mut self, rep: &GangKey, changed: &[GangKey], now: Now) {
        let Some(group) = self.gangs.groups.get_mut(rep) else { return };
        for at in changed.iter().filter_map(|key| group.at(key)).collect::<Vec<_>>() {
            group.update_readiness(self.cluster.gangs(), at);
        }
        let (is, was) = (group.has_quorum(), group.is_satisfied);
        if is != was {
            self.turn(rep, is, now);
        }
        self.wake_if_easier(rep, changed, now);
        self.gate_group(rep, changed, now);
        self.judge_joined(rep, now);
    }

    /// Wakes a refused group that was redefined or needs fewer members, because it may fit now.
    fn wake_if_easier(&mut self, rep: &GangKey, changed: &[GangKey], now: Now) {
        let Some(group) = self.gangs.groups.get(rep) else { return };
        let Some(unit) = group.unit else { return };
        let is_easier = |key: &GangKey| {
            let then = group.refused_with.get(group.at(key)?)?;
            Some(self.cluster.gangs().get(key)?.need() < *then)
        };
        let is_easier = changed.iter().any(|key| is_easier(key) == Some(true));
        let mut is_redefined = false;
        for key in changed {
            is_redefined |= self.cluster.gangs_mut().take_redefined(key);
        }
        if is_easier || is_redefined {
            if let Some(own) = self.own_priority(unit) {
                self.queue.reorder(unit, i64::from(own));
            }
            self.queue.wake_changed(unit, WakeupReason::Changed, now.monotonic);
        }
    }

    /// Notes how many members a refused group needs, so that it is woken once it needs fewer.
    pub(crate) fn note_needs(&mut self, rep: &GangKey) {
        let Some(group) = self.gangs.groups.get_mut(rep) else { return };
        let gangs = group.keys.iter().map(|key| self.cluster.gangs().get(key));
        group.refused_with = gangs.map(|gang| gang.map_or(0, |gang| gang.need())).collect();
    }

    /// Handles a group that gained its quorum, so that its other pods are scheduled one by one, or that lost it.
    fn turn(&mut self, rep: &GangKey, is_satisfied: bool, now: Now) {
        let Some(group) = self.gangs.groups.get_mut(rep) else { return };
        group.is_satisfied = is_satisfied;
        group.is_held_back = None;
        let keys = group.keys.clone();
        if is_satisfied {
            // The quorum may have been reached without an attempt.
            self.permit_waiting(&keys, now);
        }
        let Some(group) = self.gangs.groups.get_mut(rep) else { return };
        let pods = if is_satisfied {
            group.gang_of.clear();
            for at in 0..keys.len() {
                group.ready[at] = 0;
                group.update_readiness(self.cluster.gangs(), at);
            }
            group.attempt_progress = None;
            group.unit.take().and_then(|unit| self.queue.remove(unit)).map(|u| u.pods.to_vec())
        } else {
            Some(self.singles_of(&keys))
        };
        let mut pods = pods.unwrap_or_default();
        pods.sort_by_cached_key(|id| self.cluster.pod(*id).map(|r| r.pod.key.clone()));
        for id in pods {
            self.enqueue(id, now);
        }
    }

    /// Removes the units of members that wait on their own. Returns these members.
    pub(super) fn singles_of(&mut self, keys: &[GangKey]) -> Vec<PodId> {
        let gangs = keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let pods: Vec<PodId> = gangs.flat_map(|g| g.members.keys().copied()).collect();
        let mut singles = Vec::new();
        for id in pods {
            let Some(unit_id) = self.queue.unit_of(id) else { continue };
            let Some(unit) = self.queue.unit(unit_id) else { continue };
            let is_held = matches!(unit.stage, QueueStage::Gated | QueueStage::InFlight);
            if unit.gang.is_none() && !is_held {
                self.queue.remove(unit_id);
                singles.push(id);
            }
        }
        singles
    }

    /// Enqueues a member that lost its place, in the unit of its group or on its own.
    pub(crate) fn requeue_member(&mut self, id: PodId, pod: &Arc<Pod>, unit: UnitId, now: Now) {
        let was = self.queue.unit(unit).map(|u| (u.attempts, u.first_queued_at, u.errors));
        self.queue.remove(unit);
        self.cluster.gangs_mut().update_member(pod, id, |member| {
            member.since = Some(now);
            member.deadline = None;
        });
        // The gang may have lost its quorum.
        self.review_gangs(now);
        if self.queue.unit_of(id).is_none() {
            self.enqueue(id, now);
            self.review_gangs(now);
        }
        if let Some(unit) = self.queue.unit_of(id) {
            self.queue.fail_in_front(unit, was, now.monotonic);
        }
    }

    /// Records in a member's gang that the API server has confirmed its Binding.
    pub(crate) fn record_bound(&mut self, id: PodId, now: Now) {
        let Some(pod) = self.cluster.pod(id).map(|r| r.pod.clone()) else { return };
        let Some(key) = pod.member_of() else { return };
        self.cluster.gangs_mut().update_member(&pod, id, |member| {
            member.since = Some(now);
            member.deadline = None;
        });
        let is_whole = self.cluster.gangs().get(key).is_some_and(|g| {
            g.history.is_partial
                && (g.policy() != Some(MatchPolicy::OnlyWaiting)
                    || g.counts.waiting + g.counts.permitted == 0)
                && g.counts.bound + g.ended().0 >= g.definition.min
        });
        if is_whole {
            self.cluster.gangs_mut().update(key, |gang| gang.history.is_partial = false);
        }
    }

    pub(crate) fn gang_deadline(&self) -> Option<std::time::Duration> {
        let rules = self.gangs.common_rules()?;
        let expiry = self.cluster.gangs().next_expiry(rules.expiration);
        self.gangs.deadlines.first().map(|(at, _)| *at).into_iter().chain(expiry).min()
    }

    /// Handles what is due for gangs. Returns whether anything was.
    pub(crate) fn tick_gangs(&mut self, now: Now) -> bool {
        let Some(rules) = self.gangs.common_rules() else { return false };
        let mut any = false;
        while let Some((at, rep)) =
            self.gangs.deadlines.first().filter(|(at, _)| *at <= now.monotonic).cloned()
        {
            any = true;
            self.gangs.deadlines.remove(&(at, rep.clone()));
            if let Some(group) = self.gangs.groups.get_mut(&rep) {
                group.check_at = None;
            }
            self.expire_waiting(&rep, now);
            self.report_blocked(&rep, now);
        }
        any |= self.cluster.expire_gangs(now.monotonic, rules.expiration);
        if any {
            self.review_gangs(now);
        }
        any
    }
}
