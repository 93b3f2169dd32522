//! Which pods a simulation tries and in which order: as they wait in the published queue, then those that are new.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pellucid_cluster::PodRecord;
use pellucid_model::{PodId, PodKey, cancellation};
use pellucid_queue::{QueueStage, Unit, UnitId};

use super::simulation::{BETWEEN_STEPS, ROUND, Simulation};

/// Where pods wait in the queue among their equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEnd {
    /// Before all of them, as if the others alone had been tried in between.
    Front,
    /// Behind all that were there before.
    Back,
}

impl Simulation {
    /// Requests all pending pods of this scheduler, before any edit. They wait as in the published queue: one that was
    /// refused is tried again once something happens that could help it. Returns false, and requests none, if there are
    /// more than `most`.
    pub fn resume_pending(&mut self, most: usize) -> bool {
        if !self.ask_pending(most) {
            return false;
        }
        self.scheduler.review_gangs(self.now);
        let asked = self.asked.iter().filter_map(|key| self.scheduler.cluster.find_pod(key));
        for id in asked.collect::<Vec<_>>() {
            cancellation::check();
            self.wait_as_published(id);
        }
        // What happened meanwhile, or will without anybody's doing.
        let events = std::mem::take(&mut self.expired);
        self.scheduler.wake_all(&events, self.now);
        self.announce_unconfirmed();
        true
    }

    /// Lets the backoffs go on that run now: whoever backs off is tried after those who do not. Else they have ended.
    pub fn back_off_as_published(&mut self) {
        self.backs_off = true;
    }

    fn wait_as_published(&mut self, id: PodId) {
        let published = self.published.unit_of(id).and_then(|unit| self.published.unit(unit));
        let queue = &mut self.scheduler.queue;
        let Some((published, own)) = published.zip(queue.unit_of(id)) else { return };
        let refused = match published.stage {
            QueueStage::Unschedulable => published,
            QueueStage::Backoff | QueueStage::ErrorBackoff if self.backs_off => {
                let left = published.backoff_until.saturating_sub(self.now.monotonic);
                return queue.back_off(own, left, self.now.monotonic);
            }
            _ => return,
        };
        let is_active = |unit: &Unit| !matches!(unit.stage, QueueStage::Gated | QueueStage::Unschedulable);
        if !queue.unit(own).is_some_and(is_active) {
            return;
        }
        queue.wait_as(own, refused, self.now.monotonic);
        if let Some(rep) = &refused.gang {
            self.scheduler.note_needs(rep);
        }
    }

    /// Tries the requested pods that nothing has woken, as the queue does some minutes after, and plans on: some that do not fit
    /// for their quota's sake may evict others where a node has changed.
    pub fn try_sleeping(&mut self) {
        let queue = &self.scheduler.queue;
        let asked = self.asked.iter().filter_map(|key| self.scheduler.cluster.find_pod(key));
        let sleeping = |id: PodId| {
            let unit = queue.unit_of(id)?;
            let is_tried = self.scheduler.last_attempt(id).refusal().is_some();
            (!is_tried && queue.unit(unit)?.stage == QueueStage::Unschedulable).then_some(unit)
        };
        let units: BTreeSet<UnitId> = asked.filter_map(sleeping).collect();
        if !units.is_empty() {
            units.into_iter().for_each(|unit| self.scheduler.queue.activate(unit, self.now.monotonic));
            self.go_on();
        }
    }

    /// Requests all pending pods of this scheduler. Returns false, and requests none, if there are more than `most`.
    fn ask_pending(&mut self, most: usize) -> bool {
        let cluster = &self.scheduler.cluster;
        let is_pending = |r: &PodRecord| r.node.is_none() && cluster.is_ours(&r.pod.scheduler_name);
        let pending = cluster.pods().filter(|(_, record)| is_pending(record));
        let keys: Vec<PodKey> = pending.map(|(_, r)| r.pod.key.clone()).take(most + 1).collect();
        if keys.len() > most {
            return false;
        }
        for key in &keys {
            cancellation::check();
            self.ask(key);
        }
        true
    }

    /// Notes that a pod is new, or was made anew.
    pub(super) fn arrive(&mut self, key: PodKey) {
        self.arrived.insert(key, self.arrivals);
        self.arrivals += 1;
    }

    /// Says where pods stand among their equals when a plan goes on after another. Who was tried in between stands further
    /// behind, and that is not known of pods that wait for different events.
    pub fn queue_at(&mut self, keys: Vec<PodKey>, queue_end: QueueEnd) {
        self.queue_end = Some((keys, queue_end));
    }

    /// Puts the requested pods in the order in which they wait in the published queue, before the first attempt. Pods
    /// that are new there come last, in the order in which they arrived.
    pub(super) fn line_up(&mut self) {
        let mut since = match self.lined_up {
            None => self.as_published(),
            Some(_) => self.as_they_stand(),
        };
        let known = self.lined_up.replace(self.arrivals).unwrap_or(0);
        for (unit, queued_at) in self.new_since(known) {
            // A unit that has other pods as well waits already.
            since.entry(unit).or_insert(queued_at);
        }
        for (unit, queued_at) in since {
            self.scheduler.queue.requeue_since(unit, queued_at);
        }
        if !self.backs_off {
            self.scheduler.queue.flush(self.now.monotonic + ROUND);
        }
    }

    pub(super) fn unit_of(&self, key: &PodKey) -> Option<(PodId, UnitId)> {
        let id = self.scheduler.cluster.find_pod(key)?;
        Some((id, self.scheduler.queue.unit_of(id)?))
    }

    /// Returns since when the units of requested pods wait: since when they do in the published queue. A unit that an edit
    /// made of pods that waited in other units, as when a gang falls below its quorum, waits since the edit.
    fn as_published(&self) -> BTreeMap<UnitId, Duration> {
        let mut since = BTreeMap::new();
        let waiting = self.asked.iter().filter(|key| !self.arrived.contains_key(*key));
        for (id, own) in waiting.filter_map(|key| self.unit_of(key)) {
            let published = self.published.unit_of(id).and_then(|unit| self.published.unit(unit));
            if let Some((published, unit)) = published.zip(self.scheduler.queue.unit(own)) {
                let waits = if published.gang == unit.gang { published } else { unit };
                since.entry(own).or_insert(waits.queued_at);
            }
        }
        since
    }

    /// Returns since when the units wait of pods whose end of the queue was given.
    fn as_they_stand(&self) -> BTreeMap<UnitId, Duration> {
        let Some((keys, queue_end)) = &self.queue_end else { return BTreeMap::new() };
        let moved =
            keys.iter().filter(|key| *queue_end == QueueEnd::Back || !self.arrived.contains_key(*key));
        let since = match queue_end {
            QueueEnd::Front => Duration::ZERO,
            QueueEnd::Back => self.now.monotonic,
        };
        moved.filter_map(|key| Some((self.unit_of(key)?.1, since))).collect()
    }

    /// Returns since when the units of new pods wait, but for the first `known` arrivals.
    fn new_since(&mut self, known: usize) -> BTreeMap<UnitId, Duration> {
        let new = self.arrived.iter().filter(|(_, at)| **at >= known);
        let mut new: Vec<(usize, PodKey)> = new.map(|(key, at)| (*at, key.clone())).collect();
        new.sort_unstable();
        let mut since = BTreeMap::new();
        for (_, key) in new {
            if let Some((_, unit)) = self.unit_of(&key) {
                self.now.monotonic += BETWEEN_STEPS;
                since.entry(unit).or_insert(self.now.monotonic);
            }
        }
        since
    }
}
