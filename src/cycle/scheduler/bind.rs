//! Settles orders by their reports, and gives up placements.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::preemptions::End;
use pellucid_cluster::{ClusterEvent, Stage};
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::effect::{BindOutcome, EffectId, EffectReport};
use pellucid_model::{Now, PodId};
use pellucid_queue::UnitId;
use pellucid_recording::flight::FlightEvent;

use crate::scheduler::Scheduler;

impl Scheduler {
    /// Applies a report. A report for an attempt that has ended (the watch was faster, or the pod is gone) changes
    /// nothing.
    pub(crate) fn settle(&mut self, report: EffectReport, now: Now, events: &mut Vec<ClusterEvent>) {
        match report {
            EffectReport::BindSent { id, uid } => {
                if let Some((pod, _)) = self.open_order(id, &uid) {
                    self.cluster.set_stage(pod, Stage::Binding);
                }
            }
            EffectReport::BindDone { id, uid, outcome } => {
                if let Some(order) = self.open_order(id, &uid) {
                    self.settle_bind(order, outcome, now, events);
                }
            }
            EffectReport::EvictDone { id, uid, outcome } => self.settle_eviction(id, &uid, outcome, now),
            EffectReport::ObjectDone { id, outcome } => self.settle_object(id, outcome, now, events),
        }
    }

    fn open_order(&self, id: EffectId, uid: &Arc<str>) -> Option<(PodId, UnitId)> {
        let (pod, unit) = *self.in_flight.bindings.get(&id)?;
        (self.cluster.pod(pod)?.pod.uid == *uid).then_some((pod, unit))
    }

    fn settle_bind(
        &mut self,
        (id, unit): (PodId, UnitId),
        outcome: BindOutcome,
        now: Now,
        events: &mut Vec<ClusterEvent>,
    ) {
        let Some(record) = self.cluster.pod(id) else { return };
        let (pod, node) = (record.pod.clone(), record.node);
        match outcome {
            BindOutcome::Bound => {
                self.cluster.set_stage(id, Stage::Bound);
                events.extend(node.map(|node| ClusterEvent::PodBound { id, node }));
            }
            // The watch delivers the actual node later; until then the state keeps our placement.
            BindOutcome::BoundElsewhere { node } => {
                self.record_event((id, &pod.key), &node, FlightEvent::Bound, now);
                self.records.counters.bind_failures += 1;
                if self.cluster.preemptions_mut().end(id, End::PlacedElsewhere, now) {
                    self.record_ended_preemption(id, now);
                }
                self.cluster.unreserve_all(id);
                self.end_unit(id, unit);
            }
            // The pod's room is free at once; the watch delivers the deletion later.
            BindOutcome::Gone => {
                self.records.counters.bind_failures += 1;
                self.cluster.delete_pod(&pod.key, events);
            }
            BindOutcome::Refused { status, reason, message } => {
                let subject = format!("{message} (HTTP {status} {reason})");
                let reason = Reason::about(ReasonCode::BindRefused, &*subject);
                let cause = Cause::new("DefaultBinder", Code::Unschedulable, reason);
                self.fail_binding(id, cause, now, events);
            }
        }
    }

    /// Gives up an unconfirmed placement; the unit is retried after a backoff. A member of a gang goes back to its
    /// gang's pending members, ahead of other units of its priority, because the bound members need it.
    pub(crate) fn give_up(&mut self, id: PodId, now: Now) {
        let pod = self.cluster.pod(id).map(|r| r.pod.clone());
        let place = self.cluster.pod(id).and_then(|r| r.node).map(|n| self.cluster.node_name(n).clone());
        if let (Some(pod), Some(node)) = (&pod, place) {
            self.record_event((id, &pod.key), &node, FlightEvent::Released, now);
            // The place may have been announced.
            if self.cluster.nominator().written(id, pod.nominated_node.as_ref()).is_some() {
                self.order_nomination(pod, None);
            }
        }
        self.cluster.release(id);
        self.in_flight.drop_binding(id);
        let Some(unit) = self.queue.unit_of(id) else { return };
        match pod.filter(|pod| self.gang_of(pod).is_some()) {
            Some(pod) => self.requeue_member(id, &pod, unit, now),
            None => self.queue.fail(unit, now.monotonic),
        }
    }
}
