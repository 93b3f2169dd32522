//! What pods are told: the orders for conditions and events.

use std::sync::Arc;

use super::decision::Outcome;
use super::scheduler::Scheduler;
use crate::framework::effect::{ConditionText, Effect, EventOrder, EventType, PodRef, StatusOrder};
use crate::model::{Name, Pod};

impl Scheduler {
    /// Tells a pod what its last verdict did not say; what it said is told already.
    pub(super) fn tell_changed(&mut self, pod: &Pod, reason: &'static str, message: Arc<str>) {
        let id = self.cluster.find_pod(&pod.key);
        let last = id.and_then(|id| self.verdict(id)).and_then(|v| match &v.outcome {
            Outcome::Refused(refusal) => Some(refusal.message()),
            // What holds a pod back is told a moment later than it is known.
            Outcome::Gated(_) | Outcome::Placed { .. } => None,
        });
        let known = pod.scheduled.as_ref().is_some_and(|c| c.message == message && &*c.reason == reason);
        if !known && last.as_ref() != Some(&message) {
            self.tell(pod, reason, message, None);
        }
    }

    /// Orders the condition and the event of a pod that is not placed, and what becomes of its nomination.
    pub(super) fn tell(
        &mut self,
        pod: &Pod,
        reason: &'static str,
        message: Arc<str>,
        nomination: Option<Option<Name>>,
    ) {
        let known = pod.scheduled.as_ref();
        let is_known = known.is_some_and(|c| !c.is_true && &*c.reason == reason && c.message == message);
        let condition = (!is_known).then(|| ConditionText { reason, message: message.clone() });
        if condition.is_some() || nomination.is_some() {
            self.order(Effect::Status(StatusOrder { pod: pod_ref(pod), condition, nomination }));
        }
        self.order(Effect::Event(EventOrder {
            pod: pod_ref(pod),
            kind: EventType::Warning,
            reason: "FailedScheduling",
            action: "Scheduling",
            note: message,
        }));
    }

    /// Orders an effect, unless shadow mode keeps the door shut.
    pub(super) fn order(&mut self, effect: Effect) {
        if self.shadow.is_none() {
            if let Effect::Status(order) = &effect {
                self.expect_nomination(order);
            }
            self.effects.push(effect);
        }
    }
}

/// Returns the pod as effects name it.
pub(super) fn pod_ref(pod: &Pod) -> PodRef {
    PodRef { key: pod.key.clone(), uid: pod.uid.clone() }
}
