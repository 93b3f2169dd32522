//! Writes the flight recorder: one call wherever something happens to a pod or a gang.

use std::sync::Arc;

use pellucid_cluster::{ClusterEvent, Input, PodRecord};
use pellucid_model::collections::FxHashMap;
use pellucid_model::pod::PodPhase;
use pellucid_model::{CustomObject, Mirror, Now, Pod, PodId, PodKey};
use pellucid_recording::GangVerdict;
use pellucid_recording::flight::{Departure, FlightEvent, FlightRecorder, Numbers, PodEvent, object_subject};
use pellucid_recording::{Outcome, Verdict};

use crate::scheduler::Scheduler;
use crate::scheduler::records::last_attempt::LastAttempt;

impl Scheduler {
    /// Records the verdict of an attempt, or of a placement that was taken back. Stores what the recorder does not hold
    /// in [`LastAttempt`].
    #[inline(always)]
    pub(crate) fn record_verdict(&mut self, id: PodId, verdict: &Verdict) {
        let is_on = self.switches.recorder();
        match &verdict.outcome {
            // Runs at every placement, so it records only numbers. Names are recorded when the numbers are given up.
            Outcome::Placed(placement) if is_on => {
                let numbers = Numbers::of(placement, verdict.attempts, verdict.changes);
                let (node, at) = (placement.node, (verdict.cycle, verdict.at));
                let entry = self.records.flight.record_placement(id, node, numbers, at);
                self.records.last_attempts.set(id.index(), LastAttempt::Placed { node, entry });
            }
            _ => self.record_whole(id, verdict, is_on),
        }
    }

    #[inline(never)]
    fn record_whole(&mut self, id: PodId, verdict: &Verdict, is_on: bool) {
        if self.cluster.pod(id).is_none() {
            return;
        }
        self.set_last_attempt(id, LastAttempt::Full(Arc::new(verdict.clone())));
        let event = match &verdict.outcome {
            Outcome::Refused(refusal) if is_on => FlightEvent::Refused(refusal.clone()),
            Outcome::Gated(refusal) if is_on => FlightEvent::Gated(refusal.clone()),
            _ => return self.records.flight.count_unrecorded(verdict.at),
        };
        if let Some(record) = self.cluster.pod(id) {
            let event = PodEvent { id, key: &record.pod.key, node: "", event };
            self.records.flight.record(event, (verdict.cycle, verdict.at));
        }
    }

    /// Stores a last attempt that is not a recorded placement.
    pub(crate) fn set_last_attempt(&mut self, id: PodId, attempt: LastAttempt) {
        if let Some(record) = self.cluster.pod(id) {
            name_placed(&self.records.last_attempts, &mut self.records.flight, id, &record.pod.key);
        }
        self.records.last_attempts.set(id.index(), attempt);
    }

    /// Records the end of an attempt at a group, or that its places were given up.
    pub(crate) fn record_gang(&mut self, verdict: &Arc<GangVerdict>, now: Now) {
        if !self.switches.recorder() {
            return self.records.flight.count_unrecorded(now.wall_nanos());
        }
        if let Some(first) = verdict.group.first() {
            self.records.flight.record_gang(
                first,
                FlightEvent::Gang(verdict.clone()),
                (self.cycle, now.wall_nanos()),
            );
        }
    }

    /// Records any other event of a pod.
    pub(crate) fn record_event(
        &mut self,
        (id, key): (PodId, &PodKey),
        node: &str,
        event: FlightEvent,
        now: Now,
    ) {
        if !self.switches.recorder() {
            return self.records.flight.count_unrecorded(now.wall_nanos());
        }
        self.records.flight.record(PodEvent { id, key, node, event }, (self.cycle, now.wall_nanos()));
    }

    /// Records what changes of objects mean that are scheduled as pods are, under the objects' names.
    fn record_told(&mut self, events: &[ClusterEvent], now: Now) {
        for event in events {
            let ClusterEvent::CustomChanged { old, new } = event else { continue };
            let Some(object) = new.as_ref().or(old.as_ref()).filter(|object| object.kind.0.pod.is_some())
            else {
                continue;
            };
            let subject = object_subject(object.kind.0.kind, &object.name);
            let key = PodKey { namespace: object.namespace.clone(), name: subject.into() };
            for told in self.cluster.told(old.as_deref(), new.as_deref()) {
                let node = told.node.clone().unwrap_or_default();
                self.record_event((NOBODY, &key), &node, FlightEvent::Told(Arc::new(told)), now);
            }
        }
    }

    /// Records which pods an input added, bound or removed, and before them what it says of objects for which pods stand.
    pub(crate) fn record_changes(&mut self, events: &[ClusterEvent], departures: &Departures, now: Now) {
        self.record_told(events, now);
        // An assumed pod that is removed produces both PendingRemoved and PodReleased.
        let mut last: Option<&Arc<str>> = None;
        for event in events {
            match event {
                ClusterEvent::PodForgotten { id, pod } => {
                    name_placed(&self.records.last_attempts, &mut self.records.flight, *id, &pod.key)
                }
                ClusterEvent::NodeRemoved(node, name) => self.records.flight.name_node(*node, name),
                ClusterEvent::PendingAdded(id) => {
                    if let Some(pod) = self.cluster.pod(*id).map(|r| r.pod.clone()) {
                        self.record_event((*id, &pod.key), "", FlightEvent::Added, now);
                    }
                }
                ClusterEvent::PendingRemoved { id, pod } => {
                    last = Some(&pod.uid);
                    let place = self.known(pod).and_then(|record| record.node);
                    match place.map(|node| self.cluster.node_name(node).clone()) {
                        Some(node) => self.record_event((*id, &pod.key), &node, FlightEvent::Bound, now),
                        None => {
                            self.record_event((*id, &pod.key), "", FlightEvent::Left(departures.of(pod)), now)
                        }
                    }
                }
                ClusterEvent::PodReleased { pod, node }
                    if self.cluster.is_ours(&pod.scheduler_name)
                        && last != Some(&pod.uid)
                        && self.known(pod).is_none() =>
                {
                    // The slot of a removed node is freed with its last pod, so the pod's own node name comes first.
                    let node = pod.node_name.clone().unwrap_or_else(|| self.cluster.node_name(*node).clone());
                    self.record_event((NOBODY, &pod.key), &node, FlightEvent::Left(departures.of(pod)), now);
                }
                _ => {}
            }
        }
    }

    /// Returns the record of a pod if the state has it, and not another one of the same name.
    fn known(&self, pod: &Pod) -> Option<&PodRecord> {
        self.cluster.pod(self.cluster.find_pod(&pod.key)?).filter(|record| record.pod.uid == pod.uid)
    }
}

/// Records the pod's name if its last attempt is a placement, which the recorder holds by number only. Call it before
/// the slot is reused or gets another last attempt.
fn name_placed(last_attempts: &Mirror<LastAttempt>, flight: &mut FlightRecorder, id: PodId, key: &PodKey) {
    if let Some(LastAttempt::Placed { entry, .. }) = last_attempts.get(id.index()) {
        flight.name_pod(id, *entry, key);
    }
}

/// The id for a pod that no longer has a slot.
pub(crate) const NOBODY: PodId = PodId(u32::MAX);

/// Why pods that an input removes are gone.
pub(crate) struct Departures {
    otherwise: Departure,
    /// Of a complete list, the pods in it that need no node any more, by uid.
    listed: FxHashMap<Arc<str>, Departure>,
}

impl Departures {
    /// Returns why a pod is gone.
    pub(crate) fn of(&self, pod: &Pod) -> Departure {
        self.listed.get(&pod.uid).copied().unwrap_or(self.otherwise)
    }
}

/// Returns why pods that an input removes are gone.
pub(crate) fn departures_of(input: &Input) -> Departures {
    let (mut otherwise, mut listed) = (Departure::Deleted, FxHashMap::default());
    match input {
        Input::PodApplied(pod) => otherwise = departure_of(pod).unwrap_or(Departure::Deleted),
        Input::CustomApplied(object) => {
            otherwise = stand_in(object).and_then(|pod| departure_of(pod)).unwrap_or(Departure::Deleted);
        }
        Input::CustomReset { objects, .. } => {
            let pods = objects.iter().filter_map(|object| stand_in(object));
            listed = pods.filter_map(|pod| Some((pod.uid.clone(), departure_of(pod)?))).collect();
        }
        Input::Quarantined(_) => otherwise = Departure::Unreadable,
        Input::PodsReset { pods, quarantined } => {
            let going = pods.iter().filter_map(|pod| Some((pod.uid.clone(), departure_of(pod)?)));
            let unreadable = quarantined.iter().filter(|object| !object.uid.is_empty());
            let unreadable = unreadable.map(|object| (object.uid.clone(), Departure::Unreadable));
            listed = going.chain(unreadable).collect();
        }
        _ => {}
    }
    Departures { otherwise, listed }
}

/// Returns the pod that stands for an object.
fn stand_in(object: &CustomObject) -> Option<&Arc<Pod>> {
    object.pod.as_ref()?.as_ref().ok()
}

/// Returns why a pod needs no node any more, as its object says it.
fn departure_of(pod: &Pod) -> Option<Departure> {
    match pod.phase {
        PodPhase::Succeeded => Some(Departure::Succeeded),
        PodPhase::Failed => Some(Departure::Failed),
        _ => pod.deleting.then_some(Departure::Deleting),
    }
}
