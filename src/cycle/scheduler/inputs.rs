//! Applies inputs to the state, the queue and in-flight units.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::preemptions::VictimState;
use pellucid_cluster::{ClusterEvent, Input};
use pellucid_framework::View;
use pellucid_framework::plugin::QueueSort;
use pellucid_framework::profile::Profile;
use pellucid_model::effect::{ConditionText, EventType, PodRef};
use pellucid_model::{NodeIdx, Now, Pod, PodId, PodKey};
use pellucid_queue::{QueueStage, RefusedBy, Unit, UnitId, WakeupReason};
use pellucid_recording::flight::FlightEvent;
use pellucid_recording::gang_verdict::member_refusal;
use pellucid_recording::{Outcome, Refusal};

use crate::scheduler::Scheduler;
use crate::scheduler::records::events::departures_of;
use crate::scheduler::records::last_attempt::LastAttempt;
use crate::scheduler::wakeups::queueing_hints;

impl Scheduler {
    /// Applies one input.
    pub fn apply(&mut self, input: Input, now: Now) {
        let mut events = Vec::new();
        let departures = departures_of(&input);
        self.cluster.set_now(now);
        self.record_left(&input, now);
        self.judge_shadowed(&input, now);
        // What a plugin waits for may stand on the pod itself.
        let changed = match &input {
            Input::PodApplied(pod) if !self.in_flight.pre_binding.is_empty() => Some(pod.key.clone()),
            _ => None,
        };
        self.take_in(input, now, &mut events);
        self.record_changes(&events, &departures, now);
        self.track_leaving(&events, &departures);
        self.end_what_left(&events, now);
        let mut followed = Vec::new();
        for event in &events {
            self.recheck_pre_bind(event, now, &mut followed);
        }
        if let Some(id) = changed.and_then(|key| self.cluster.find_pod(&key)) {
            self.resume_binding(id, now, &mut followed);
        }
        for event in events.into_iter().chain(followed) {
            self.react(event, now);
        }
        self.review_gangs(now);
    }

    /// Puts one input into the state.
    fn take_in(&mut self, input: Input, now: Now, events: &mut Vec<ClusterEvent>) {
        match &input {
            Input::PodApplied(pod) => self.clear_late_nomination(pod),
            Input::PodsReset { pods, quarantined } => {
                self.report_quarantined(quarantined);
                pods.iter().for_each(|pod| self.clear_late_nomination(pod));
            }
            Input::Quarantined(object) => self.report_quarantined(std::slice::from_ref(object)),
            _ => {}
        }
        match input {
            Input::Report(report) => self.settle(report, now, events),
            Input::Leading(is_leading) => self.set_leading(is_leading, now),
            watched => self.cluster.apply(watched, events),
        }
    }

    /// Handles what left the state. Pods that no longer need a node leave the queue before hints about other events are
    /// asked, so that these are asked only for pods that are in the state.
    fn end_what_left(&mut self, events: &[ClusterEvent], now: Now) {
        for event in events {
            match event {
                ClusterEvent::PendingRemoved { id, pod } => {
                    self.compare_with_shadowed(*id, pod);
                    self.forget(*id, pod, now);
                }
                ClusterEvent::PodForgotten { id, .. } => {
                    self.records.last_attempts.set(id.index(), LastAttempt::Nothing);
                    if self.records.wakeups.get(id.index()).is_some_and(Option::is_some) {
                        self.records.wakeups.set(id.index(), None);
                    }
                    self.cluster.nominator_mut().forget_echoes(*id);
                    self.victim_gone(*id, now);
                }
                ClusterEvent::PodChanged { id, .. }
                    if self.cluster.pod(*id).is_some_and(|r| r.pod.deleting) =>
                {
                    self.cluster.preemptions_mut().set_victim_state(*id, VictimState::Terminating, now);
                }
                ClusterEvent::NodeRemoved(..) => self.end_nominations_to_missing_nodes(now),
                _ => {}
            }
        }
    }

    fn react(&mut self, event: ClusterEvent, now: Now) {
        match &event {
            ClusterEvent::PendingAdded(id) => {
                self.adopt_nomination(*id, None, now);
                return self.enqueue(*id, now);
            }
            ClusterEvent::PendingUpdated { id, old } => return self.pending_updated(*id, old.clone(), now),
            ClusterEvent::PendingRemoved { .. } | ClusterEvent::PodForgotten { .. } => return,
            ClusterEvent::PodBound { id, node } => {
                if let Some(pod) = self.cluster.pod(*id).map(|r| r.pod.clone()) {
                    self.compare_with_shadowed(*id, &pod);
                }
                self.confirmed(*id, *node, now);
            }
            _ => {}
        }
        self.wake(&event, now);
    }

    pub(crate) fn enqueue(&mut self, id: PodId, now: Now) {
        if self.queue.unit_of(id).is_some() {
            return;
        }
        let Some(pod) = self.cluster.pod(id).map(|r| r.pod.clone()) else { return };
        let Some(&profile_index) = self.profiles.by_name.get(&pod.scheduler_name) else { return };
        let profile = self.profiles.all[profile_index].clone();
        let at = now.monotonic;
        let held = gated(&profile, &pod);
        if held.is_none() && self.join_gang_unit(id, &pod, now) {
            return;
        }
        let unit = Unit::single(id, pod.key.clone(), profile_index, rank(&profile, &pod), pod.created, at);
        let unit = in_window(unit, &profile, |sort| sort.size(&pod));
        match held {
            None => {
                self.queue.add(unit, at);
            }
            Some(refusal) => {
                self.queue.add_gated(unit, at);
                self.report_gated(id, &pod, refusal, now);
            }
        }
    }

    fn pending_updated(&mut self, id: PodId, old: Arc<Pod>, now: Now) {
        self.adopt_nomination(id, Some(&old), now);
        let Some(unit_id) = self.queue.unit_of(id) else {
            if !self.leaves_unqueued {
                self.enqueue(id, now);
            }
            return;
        };
        let (Some(unit), Some(record)) = (self.queue.unit(unit_id), self.cluster.pod(id)) else { return };
        let (stage, asked, pod) = (unit.stage, unit.asked(), record.pod.clone());
        let (unit_profile, is_gang) = (unit.profile, unit.gang.is_some());
        let is_gang = is_gang || self.gang_of(&pod).is_some() && stage == QueueStage::Gated;
        // A pod with a unit of its own may belong to a gang's unit now.
        let joins = old.member_of() != pod.member_of() && self.gang_of(&pod).is_some();
        if joins || is_gang && (stage == QueueStage::Gated || old.gates != pod.gates || old.gang != pod.gang)
        {
            return self.move_to_other_unit(id, &old, &pod, unit_id, now);
        }
        let profile = self.profiles.all[unit_profile].clone();
        let rank = self.gang_rank(unit_id).unwrap_or_else(|| rank(&profile, &pod));
        self.queue.reorder(unit_id, rank);
        if let Some(refusal) = gated(&profile, &pod) {
            self.queue.gate(unit_id);
            let known = self.last_attempt(id).outcome();
            if !matches!(known, Some(Outcome::Gated(known)) if known.message() == refusal.message()) {
                self.report_gated(id, &pod, refusal, now);
            }
            return;
        }
        if stage == QueueStage::Gated {
            self.set_last_attempt(id, LastAttempt::Nothing);
            return self.queue.ungate(unit_id, now.monotonic);
        }
        let spec_changed = old.spec != pod.spec;
        let event = ClusterEvent::PendingUpdated { id, old };
        let listening = self.queue.listening().asked(unit_profile, asked, event.kinds());
        let queue = queueing_hints(&profile, View::new(&self.cluster), &pod, listening, &event);
        if spec_changed || !queue.is_empty() || asked.is_empty() {
            let by_hints = WakeupReason::Hints { asked: listening, queue };
            let reason = if queue.is_empty() { WakeupReason::Changed } else { by_hints };
            self.queue.wake_changed(unit_id, reason, now.monotonic);
        }
    }

    /// Moves a pod to the right unit after its scheduling gates or its gang changed.
    fn move_to_other_unit(&mut self, id: PodId, old: &Pod, pod: &Pod, unit: UnitId, now: Now) {
        if old.gates == pod.gates && old.gang == pod.gang {
            return;
        }
        if self.queue.unit(unit).is_some_and(|u| u.gang.is_some()) {
            self.leave_gang_unit(id, old);
        } else {
            self.queue.remove(unit);
        }
        self.set_last_attempt(id, LastAttempt::Nothing);
        self.enqueue(id, now);
    }

    /// Handles the API server's confirmation that a pod is on its node.
    fn confirmed(&mut self, id: PodId, node: NodeIdx, now: Now) {
        // Comes first: the unit may have ended already if the binder found the pod bound by another scheduler.
        self.close_preemption(id, now);
        let Some(unit) = self.queue.unit_of(id) else { return };
        let (pod, name) = (self.cluster.pod(id).map(|r| r.pod.clone()), self.cluster.node_name(node).clone());
        if let Some(pod) = &pod {
            self.record_event((id, &pod.key), &name, FlightEvent::Bound, now);
        }
        // What binds an object for which a pod stands is a write of its plugin's PreBind.
        let is_stand_in = pod.as_ref().is_some_and(|pod| pod.stands_for.is_some());
        let was_ordered = self.in_flight.effect_of.contains_key(&id)
            || is_stand_in && self.in_flight.pre_binding.contains_key(&id);
        let as_decided = self.last_attempt(id).node() == Some(node);
        if let (Some(pod), true) = (pod, was_ordered && as_decided) {
            self.records.counters.bound += 1;
            let note = format!("Successfully assigned {} to {name}", pod.key).into();
            self.order_event(PodRef::of(&pod), EventType::Normal, ("Scheduled", "Binding"), note);
            self.post_bind(id, unit, node);
        }
        self.cluster.read_holds(id);
        self.end_unit(id, unit);
        self.record_bound(id, now);
        // If another scheduler bound the pod before its quorum was ready, the other members stop waiting for it.
        for other in self.leave_barrier(id) {
            self.order_binding(other);
        }
    }

    /// Ends everything that is under way to place a pod.
    fn forget(&mut self, id: PodId, pod: &Arc<Pod>, now: Now) {
        self.close_preemption(id, now);
        self.consume_nomination(id, pod, None, now);
        let mut events = Vec::new();
        self.break_quorum(id, pod, now, &mut events);
        if !self.leave_gang_unit(id, pod)
            && let Some(unit) = self.queue.unit_of(id)
        {
            self.end_unit(id, unit);
        }
        self.wake_all(&events, now);
    }

    pub(crate) fn end_unit(&mut self, id: PodId, unit: UnitId) {
        if self.queue.unit(unit).is_some_and(|u| u.gang.is_some()) {
            if let Some(pod) = self.cluster.pod(id).map(|r| r.pod.clone()) {
                self.leave_gang_unit(id, &pod);
            }
        } else if let Some(Unit { wakeup: Some(by), profile, .. }) = self.queue.remove(unit)
            && self.cluster.pod(id).is_some_and(|r| r.stage.is_placed())
        {
            self.records.wakeups.set(id.index(), Some((profile, by)));
        }
        self.in_flight.drop_binding(id);
        self.in_flight.shadow_holds.retain(|(_, held)| *held != id);
    }

    fn report_gated(&mut self, id: PodId, pod: &Pod, refusal: Refusal, now: Now) {
        let refusal = Arc::new(refusal);
        self.report_unschedulable(pod, "SchedulingGated", refusal.message(), None);
        self.store_verdict(id, Outcome::Gated(refusal), now);
    }

    /// Reports on our pods that cannot be read, because no attempt will.
    pub(super) fn report_quarantined(&mut self, objects: &[Quarantined]) {
        for q in objects.iter().filter(|q| q.kind == "Pod" && !q.uid.is_empty()) {
            if q.scheduler_name.as_ref().is_none_or(|name| !self.cluster.is_ours(name)) {
                continue;
            }
            let key = PodKey { namespace: q.namespace.clone(), name: q.name.clone() };
            let pod = PodRef { key, uid: q.uid.clone() };
            let message: Arc<str> = quarantine_message(q).into();
            let condition = Some(ConditionText { reason: "Unschedulable", message: message.clone() });
            self.order_report(pod, condition, None, message);
        }
    }
}

/// Returns what makes an object unreadable, for its condition and for `explain`.
pub fn quarantine_message(object: &Quarantined) -> String {
    let what = format!("{}: {} ({})", object.field, object.problem, object.value);
    ReasonCode::Unreadable.message(&what)
}

pub(crate) fn rank(profile: &Profile, pod: &Pod) -> i64 {
    profile.queue_sort.first().and_then(|e| e.plugin.queue_sort()).map_or(0, |q| q.rank(pod))
}

/// Gives a unit its size and the length of its window, if the profile orders pods within windows.
pub(crate) fn in_window(unit: Unit, profile: &Profile, size: impl FnOnce(&dyn QueueSort) -> i64) -> Unit {
    match profile.queue_sort.first().and_then(|enabled| enabled.plugin.queue_sort()) {
        Some(sort) if !sort.window().is_zero() => unit.sized(size(sort), sort.window()),
        _ => unit,
    }
}

/// Returns why a pod is gated, or `None`: it names two gangs, or a PreEnqueue plugin refuses it.
pub(crate) fn gated(profile: &Profile, pod: &Pod) -> Option<Refusal> {
    if profile.gang_rules().is_some()
        && let Some(problem) = pod.gang.as_ref().filter(|m| m.names_two).and_then(|m| m.problems.first())
    {
        return Some(member_refusal(ReasonCode::GangInvalid, &problem.to_string(), 0));
    }
    let plugins = profile.pre_enqueue.iter();
    let (enabled, cause) =
        plugins.filter_map(|e| Some((e, e.plugin.pre_enqueue()?.pre_enqueue(pod).err()?))).next()?;
    let mut by = RefusedBy::default();
    by.insert(enabled.index);
    Some(Refusal::of_pod(cause, 0, by))
}
