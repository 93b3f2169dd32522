//! Reports a decision: stores the verdict, and orders the pod's condition and event.

use std::sync::Arc;

use pellucid_cluster::ShapeId;
use pellucid_cluster::preemptions::Plan;
use pellucid_model::effect::{ConditionText, Effect, EventOrder, EventType, PodRef, StatusOrder};
use pellucid_model::{Name, Now, Pod, PodId};
use pellucid_queue::UnitId;
use pellucid_recording::{Outcome, Refusal, Verdict};

use crate::scheduler::Scheduler;

impl Scheduler {
    /// Returns a refused unit to the queue, where events can wake it, and reports the refusal on the pod.
    pub(crate) fn refuse(
        &mut self,
        unit: UnitId,
        pod: &Pod,
        shape: ShapeId,
        refusal: Arc<Refusal>,
        nomination: Option<Option<Name>>,
        now: Now,
    ) -> Outcome {
        self.records.counters.refused += 1;
        let nomination = nomination.or_else(|| self.lost_nomination_write(unit, pod));
        self.queue.refuse(unit, shape, refusal.refused_by, now.monotonic);
        self.report_unschedulable(pod, "Unschedulable", refusal.message(), nomination);
        Outcome::Refused(refusal)
    }

    pub(crate) fn store_verdict(&mut self, pod: PodId, outcome: Outcome, now: Now) -> Verdict {
        let unit = self.queue.unit_of(pod).and_then(|u| self.queue.unit(u));
        let attempts = unit.map_or(0, |u| u.attempts);
        self.store_verdict_of(pod, attempts, outcome, None, now)
    }

    /// Like `store_verdict`, with a known number of attempts at the unit, and the plan of a preemption.
    pub(crate) fn store_verdict_of(
        &mut self,
        pod: PodId,
        attempts: u32,
        outcome: Outcome,
        plan: Option<Arc<Plan>>,
        now: Now,
    ) -> Verdict {
        let verdict = Verdict {
            cycle: self.cycle,
            attempts,
            at: now.wall_nanos(),
            changes: self.cluster.changes().count(),
            outcome,
            plan,
        };
        if self.switches.accounts() {
            self.records.meter.count_verdict();
            self.record_verdict(pod, &verdict);
        }
        verdict
    }

    /// Reports why a pod is pending, unless its condition or its last verdict says so already.
    pub(crate) fn report_if_changed(&mut self, pod: &Pod, reason: &'static str, message: Arc<str>) {
        let id = self.cluster.find_pod(&pod.key);
        let last = id.and_then(|id| self.last_attempt(id).outcome());
        // A gated verdict may be stored before it is reported.
        let is_last = matches!(last, Some(Outcome::Refused(refusal)) if refusal.message() == message);
        let known = pod.scheduled.as_ref().is_some_and(|c| c.message == message && &*c.reason == reason);
        if !known && !is_last {
            self.report_unschedulable(pod, reason, message, None);
        }
    }

    /// Orders the condition and the event of a pending pod, and the change of its nomination.
    pub(crate) fn report_unschedulable(
        &mut self,
        pod: &Pod,
        reason: &'static str,
        message: Arc<str>,
        nomination: Option<Option<Name>>,
    ) {
        if pod.stands_for.is_some() {
            self.cluster.stand_in_refused(pod, &message);
            return self.order_event(
                PodRef::of(pod),
                EventType::Warning,
                ("FailedScheduling", "Scheduling"),
                message,
            );
        }
        let known = pod.scheduled.as_ref();
        let is_known = known.is_some_and(|c| !c.is_true && &*c.reason == reason && c.message == message);
        let condition = (!is_known).then(|| ConditionText { reason, message: message.clone() });
        self.order_report(PodRef::of(pod), condition, nomination, message);
    }

    /// Orders the event of a pod that has no node and, if anything of it changes, its status.
    pub(crate) fn order_report(
        &mut self,
        pod: PodRef,
        condition: Option<ConditionText>,
        nomination: Option<Option<Name>>,
        message: Arc<str>,
    ) {
        if condition.is_some() || nomination.is_some() {
            self.order(Effect::Status(StatusOrder { pod: pod.clone(), condition, nomination }));
        }
        self.order_event(pod, EventType::Warning, ("FailedScheduling", "Scheduling"), message);
    }

    pub(crate) fn order_event(
        &mut self,
        pod: PodRef,
        kind: EventType,
        (reason, action): (&'static str, &'static str),
        note: Arc<str>,
    ) {
        let object = self.cluster.find_pod(&pod.key).and_then(|id| self.cluster.pod(id));
        let object = object.and_then(|record| record.pod.stands_for.clone());
        self.order(Effect::Event(EventOrder { pod, object, kind, reason, action, note }));
    }

    /// Orders the change of a pod's nomination in the API.
    pub(crate) fn order_nomination(&mut self, pod: &Pod, node: Option<Name>) {
        if pod.stands_for.is_some() {
            return;
        }
        let (pod, nomination) = (PodRef::of(pod), Some(node));
        self.order(Effect::Status(StatusOrder { pod, condition: None, nomination }));
    }

    /// Orders an effect. Shadow mode and a standby drop it.
    pub(crate) fn order(&mut self, effect: Effect) {
        if self.shadow.is_none() && self.is_leading() {
            if let Effect::Status(order) = &effect {
                self.expect_nomination(order);
            }
            self.in_flight.effects.push(effect);
        }
    }
}
