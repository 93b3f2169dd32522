//! Whose turn it is: units in their order, and between them attempts at gangs that go on in slices.

use pellucid_cluster::preemptions::End;
use pellucid_model::time::Probe;
use pellucid_model::{GangKey, Now};
use pellucid_queue::UnitId;
use pellucid_recording::Decision;

use super::nominations::AttemptKind;
use super::scheduler::{Decided, Scheduler, Step};

/// What [`Scheduler::advance`] did.
#[derive(Debug)]
pub enum Advance {
    /// A unit was judged.
    Judged(Step),
    /// The attempt at a gang, the first of its group, goes on later.
    Paused(GangKey),
    /// Nothing can be taken.
    Idle,
}

impl Scheduler {
    /// Plans the next unit to its end. Returns `None` when nothing can be taken.
    pub fn step(&mut self, now: Now, probe: &dyn Probe) -> Option<Step> {
        loop {
            match self.advance(now, probe) {
                Advance::Judged(step) => return Some(step),
                Advance::Paused(_) => {}
                Advance::Idle => return None,
            }
        }
    }

    /// Plans the next unit, or a part of it when it is one that takes long: inputs can be taken in between, and other
    /// units have their turn.
    pub fn advance(&mut self, now: Now, probe: &dyn Probe) -> Advance {
        let before = self.work;
        let (unit, is_paused) = match self.is_turn_of_paused() {
            true => (self.queue.pop_paused(), true),
            false => (self.queue.pop(), false),
        };
        let Some(unit) = unit else { return Advance::Idle };
        let rep = self.queue.unit(unit).and_then(|u| u.gang.clone());
        let step = self.step_unit(unit, now, probe);
        let work = self.work - before;
        self.since_slice = if is_paused { 0 } else { self.since_slice + work };
        match (step, rep) {
            (Some(step), _) => Advance::Judged(step),
            (None, Some(rep)) if self.queue.unit(unit).is_some_and(|u| u.is_paused) => Advance::Paused(rep),
            (None, _) => Advance::Idle,
        }
    }

    /// Whether the attempt that was paused goes on now. A unit of greater rank goes first. One of equal or lower rank may
    /// have as much work done for it as a slice is, or a tenth of it, before the next slice.
    fn is_turn_of_paused(&self) -> bool {
        self.queue.has_paused() && self.comes_before_active()
    }

    fn comes_before_active(&self) -> bool {
        match self.queue.first_ranks() {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(active), Some(paused)) if active > paused => false,
            (Some(active), Some(paused)) if active == paused => self.since_slice >= self.slice,
            _ => self.since_slice >= self.slice / 10,
        }
    }

    /// Plans a unit that was taken from the queue. Returns `None` when it was only begun.
    pub(super) fn step_unit(&mut self, unit_id: UnitId, now: Now, probe: &dyn Probe) -> Option<Step> {
        let unit = self.queue.unit(unit_id)?;
        if let Some(rep) = unit.gang.clone() {
            return self.step_gang(unit_id, &rep, now, probe);
        }
        let (pod_id, profile, attempts, first_queued_at) =
            (unit.pods[0], unit.profile, unit.attempts, unit.first_queued_at);
        let Some(record) = self.cluster.pod(pod_id) else {
            debug_assert!(false, "unit {unit_id:?} has no pod");
            self.queue.remove(unit_id);
            return None;
        };
        let (pod, shape) = (record.pod.clone(), record.shape);
        self.cycle += 1;
        self.counters.attempts += 1;
        let Decided { decision, found, draft, .. } =
            self.decide(pod_id, &pod, profile, shape, AttemptKind::Alone, now, probe);
        let (table, failure) = self.record(draft.as_ref(), now);
        let (outcome, plan) = match (decision, found) {
            (Decision::Place(placement), _) => {
                (self.place(unit_id, pod_id, &pod, shape, placement, now), None)
            }
            (Decision::Refuse(refusal), Some(found)) => {
                self.after_post_filter(unit_id, (pod_id, &pod, shape), refusal, found, now)
            }
            (Decision::Refuse(refusal), None) => {
                // Without any node there is none to be nominated to, whoever said so.
                let has_no_node = self.cluster.present().is_empty();
                let clear = has_no_node && self.end_nomination(pod_id, End::NothingFound, now);
                (self.refuse(unit_id, &pod, shape, refusal, clear.then_some(None), now), None)
            }
        };
        let verdict = self.metered(probe, |core| core.store_verdict_of(pod_id, attempts, outcome, plan, now));
        if pod.gang.is_some() {
            self.review_gangs(now);
        }
        let (gang, others) = (None, Vec::new());
        Some(Step { pod, profile, attempts, first_queued_at, verdict, table, failure, gang, others })
    }
}
