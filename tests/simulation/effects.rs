//! Execution of the scheduler's effects: late, refused, lost, or without a response.
//!
//! The contract is that of `kubernetes::binder` and its siblings: every order ends in one report; an unknown outcome of
//! a Binding, or of a write of an object, is resolved by reading the object before the report; the newest status order
//! of a pod wins; an eviction without a response may have been carried out.

use std::sync::Arc;

use pellucid::model::effect::{
    BindOrder, BindOutcome, Effect, EffectReport, EvictOrder, EvictOutcome, ObjectOrder, PodRef, StatusOrder,
    WriteOutcome,
};

use crate::api::{Deletion, NotBound};
use crate::world::{Action, World};

/// Largest number of posts of one Binding.
const TRIES: u32 = 6;

impl World {
    pub(crate) fn take_order(&mut self, effect: Effect) {
        let later = self.delay();
        match effect {
            Effect::Bind(order) => {
                self.note(|_| format!("order #{} bind {} to {}", order.id.0, order.pod.key, order.node));
                let sent = EffectReport::BindSent { id: order.id, uid: order.pod.uid.clone() };
                let when = self.delay();
                self.put(when, Action::Report(sent));
                self.put(later, Action::Bind(order, 1));
            }
            Effect::Evict(order) => {
                self.note(|_| {
                    format!("order #{} evict {} for {}", order.id.0, order.victim.key, order.preemptor.key)
                });
                self.put(later, Action::Evict(order));
            }
            Effect::Status(order) => self.take_status(order),
            Effect::Object(order) => {
                self.note(|_| format!("order #{} {}", order.id.0, order.write));
                self.put(later, Action::WriteObject(order, 1, false));
            }
            Effect::Event(_) | Effect::GroupStatus(_) => {}
        }
    }

    fn report(&mut self, report: EffectReport) {
        let later = self.delay();
        // Sometimes a report is delivered twice, the second time when nobody waits for it any more.
        if self.rng.chance(self.nature.faults / 5) {
            let much_later = later + self.rng.millis(100, 5000);
            self.put(much_later, Action::Report(report.clone()));
        }
        self.put(later, Action::Report(report));
    }

    // === bindings ===

    pub(crate) fn post_binding(&mut self, order: BindOrder, tries: u32) {
        let (later, pod) = (self.delay(), PodRef::of(&order.pod));
        assert!(self.api.is_announced(&pod), "{} is bound before its notice is there", order.pod.key);
        if self.goes_wrong() {
            match self.rng.below(3) {
                0 => return self.bind_done(&order, refused(422, "Invalid")),
                // The server carried it out without responding, or did neither.
                1 => {
                    let done = self.api.bind(&pod, &order.node);
                    self.note(|_| format!("api: bind {} {done:?}, no answer", order.pod.key));
                }
                _ => self.note(|_| format!("api: bind {} lost", order.pod.key)),
            }
            return self.put(later, Action::ReadBound(order, tries, false));
        }
        let done = self.api.bind(&pod, &order.node);
        self.note(|_| format!("api: bind {} {done:?}", order.pod.key));
        match done {
            Ok(()) => self.bind_done(&order, BindOutcome::Bound),
            Err(NotBound::Gone) => self.bind_done(&order, BindOutcome::Gone),
            Err(NotBound::Conflict) => self.put(later, Action::ReadBound(order, tries, true)),
        }
    }

    pub(crate) fn read_bound(&mut self, order: BindOrder, tries: u32, conflict: bool) {
        let Some(stored) = self.api.pod(&PodRef::of(&order.pod)) else {
            return self.bind_done(&order, BindOutcome::Gone);
        };
        let (node, deleting) = (stored.pod.node_name.clone(), stored.pod.deleting);
        match node {
            Some(node) if node == *order.node => self.bind_done(&order, BindOutcome::Bound),
            Some(node) => self.bind_done(&order, BindOutcome::BoundElsewhere { node }),
            None if deleting || conflict => self.bind_done(&order, refused(409, "Conflict")),
            None if tries >= TRIES => self.bind_done(&order, refused(0, "NoAnswer")),
            None => {
                let later = self.delay();
                self.put(later, Action::Bind(order, tries + 1));
            }
        }
    }

    fn bind_done(&mut self, order: &BindOrder, outcome: BindOutcome) {
        self.report(EffectReport::BindDone { id: order.id, uid: order.pod.uid.clone(), outcome });
    }

    // === evictions ===

    pub(crate) fn post_eviction(&mut self, order: EvictOrder) {
        let (id, uid) = (order.id, order.victim.uid.clone());
        let is_there = self.api.pod(&order.victim).is_some();
        let how = if self.goes_wrong() { self.rng.below(4) } else { usize::MAX };
        if how == 0 {
            self.note(|_| format!("api: evict {} refused", order.victim.key));
            return self.evict_done(
                id,
                uid,
                EvictOutcome::Refused { status: 500, message: "etcd is away".into() },
            );
        }
        if is_there {
            self.api.change(&order.victim.key, |s| s.pod.is_preempted = true);
        }
        if how == 1 {
            self.note(|_| format!("api: evict {} refused halfway", order.victim.key));
            return self.evict_done(
                id,
                uid,
                EvictOutcome::Refused { status: 500, message: "etcd is away".into() },
            );
        }
        let is_stubborn = is_there && self.rng.chance(self.nature.stubborn);
        if is_stubborn && let Some(stored) = self.api.pods.get_mut(&order.victim.key) {
            stored.is_stubborn = true;
        }
        let done = self.api.delete(&order.victim);
        self.note(|_| format!("api: evict {} {done:?}, stubborn {is_stubborn}, {how}", order.victim.key));
        let outcome = match (how, done) {
            // It was carried out without a response.
            (2, _) => EvictOutcome::Refused { status: 0, message: "no answer".into() },
            // The second request may find the pod gone.
            (3, _) if self.api.pod(&order.victim).is_none() => EvictOutcome::Gone,
            (_, Deletion::Gone) => EvictOutcome::Gone,
            (_, Deletion::Accepted) => EvictOutcome::Deleted,
        };
        self.evict_done(id, uid, outcome);
    }

    fn evict_done(&mut self, id: pellucid::model::effect::EffectId, uid: Arc<str>, outcome: EvictOutcome) {
        self.report(EffectReport::EvictDone { id, uid, outcome });
    }

    // === status ===

    fn take_status(&mut self, order: StatusOrder) {
        let uid = order.pod.uid.clone();
        if let Some(waiting) = self.statuses.get_mut(&uid) {
            waiting.condition = order.condition.or(waiting.condition.take());
            waiting.nomination = order.nomination.or(waiting.nomination.take());
            return;
        }
        self.statuses.insert(uid.clone(), order);
        let later = self.delay();
        self.put(later, Action::WriteStatus(uid));
    }

    pub(crate) fn write_status(&mut self, uid: &Arc<str>) {
        let is_lost = self.goes_wrong();
        let Some(order) = self.statuses.remove(uid) else { return };
        self.note(|_| {
            format!("api: status {} nominated {:?}, lost {is_lost}", order.pod.key, order.nomination)
        });
        if !is_lost {
            self.api.patch_status(&order);
        }
    }

    // === objects ===

    pub(crate) fn write_object(&mut self, order: ObjectOrder, tries: u32, unsure: bool) {
        let (id, later) = (order.id.0, self.delay());
        if self.goes_wrong() {
            match self.rng.below(3) {
                0 => {
                    let message = "a webhook denied it".into();
                    return self.object_done(&order, WriteOutcome::Refused { status: 403, message });
                }
                // The server carried it out without responding, or did neither.
                1 => {
                    let done = self.api.write(&order.write);
                    self.note(|_| format!("api: object #{id} {done:?}, no answer"));
                }
                _ => self.note(|_| format!("api: object #{id} lost")),
            }
            if tries >= TRIES {
                let message = "no answer".into();
                return self.object_done(&order, WriteOutcome::Refused { status: 0, message });
            }
            return self.put(later, Action::WriteObject(order, tries + 1, true));
        }
        let mut done = self.api.write(&order.write);
        if unsure && done != WriteOutcome::Written && self.api.stands(&order.write) {
            done = WriteOutcome::Written;
        }
        self.note(|_| format!("api: object #{id} {done:?}"));
        self.object_done(&order, done);
    }

    fn object_done(&mut self, order: &ObjectOrder, outcome: WriteOutcome) {
        self.report(EffectReport::ObjectDone { id: order.id, outcome });
    }
}

fn refused(status: u16, reason: &str) -> BindOutcome {
    BindOutcome::Refused { status, reason: reason.into(), message: "the API server said so".into() }
}
