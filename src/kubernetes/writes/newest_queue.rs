//! A queue of status orders with at most one waiting order per object: a newer order merges with it or replaces it.
//!
//! The queue is bounded: when too many objects wait, the oldest waiting order is dropped and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use pellucid_model::collections::{HashMap, HashSet};
use pellucid_model::effect::{GroupStatusOrder, StatusOrder};

use crate::writes::effect_queues::QueueCounts;

/// An order that a newer one for the same object supersedes.
pub(crate) trait Newest: Clone {
    /// Returns the uid of the object.
    fn uid(&self) -> &Arc<str>;
    /// Takes over the parts of an older order that this one lacks.
    fn merge_older(self, older: &Self) -> Self;
}

/// Condition and nomination are merged separately; the newest of each wins.
impl Newest for StatusOrder {
    fn uid(&self) -> &Arc<str> {
        &self.pod.uid
    }
    fn merge_older(self, older: &Self) -> Self {
        Self {
            condition: self.condition.or_else(|| older.condition.clone()),
            nomination: self.nomination.or_else(|| older.nomination.clone()),
            pod: self.pod,
        }
    }
}

/// A group status is complete, so nothing is merged.
impl Newest for GroupStatusOrder {
    fn uid(&self) -> &Arc<str> {
        &self.uid
    }
    fn merge_older(self, _: &Self) -> Self {
        self
    }
}

/// Holds the waiting orders by uid. Invariant: `ready` contains exactly the uids that wait and are not being written.
pub(crate) struct NewestQueue<O> {
    waiting: HashMap<Arc<str>, O>,
    ready: VecDeque<Arc<str>>,
    being_written: HashSet<Arc<str>>,
    counts: QueueCounts,
}

impl<O> Default for NewestQueue<O> {
    fn default() -> Self {
        let (waiting, ready, being_written) = Default::default();
        Self { waiting, ready, being_written, counts: QueueCounts::default() }
    }
}

impl<O: Newest> NewestQueue<O> {
    /// Adds an order. Returns whether there is one more to pull.
    pub(crate) fn push(&mut self, order: O, capacity: usize) -> bool {
        let uid = order.uid().clone();
        self.counts.into += 1;
        if let Some(waiting) = self.waiting.get_mut(&uid) {
            *waiting = order.merge_older(waiting);
            self.counts.replaced += 1;
            return false;
        }
        self.waiting.insert(uid.clone(), order);
        let is_free = !self.being_written.contains(&uid);
        if is_free {
            self.ready.push_back(uid);
        }
        if self.waiting.len() > capacity
            && let Some(oldest) = self.ready.pop_front()
        {
            self.waiting.remove(&oldest);
            self.counts.dropped += 1;
        }
        is_free
    }

    /// Removes the first order that is ready; also returns whether there are more.
    pub(crate) fn pop(&mut self) -> (Option<O>, bool) {
        let uid = self.ready.pop_front();
        let order = uid.and_then(|uid| self.waiting.remove(&uid));
        if let Some(order) = &order {
            self.being_written.insert(order.uid().clone());
            self.counts.out += 1;
        }
        (order, !self.ready.is_empty())
    }

    /// Drops an order in flight in favour of a newer one, if one waits, and returns whether it did. The newer order
    /// takes over the parts it lacks.
    pub(crate) fn supersede(&mut self, order: &O) -> bool {
        let Some(newer) = self.waiting.get_mut(order.uid()) else { return false };
        *newer = newer.clone().merge_older(order);
        true
    }

    /// Marks an order as written or given up. Returns whether there is one more to pull.
    pub(crate) fn done(&mut self, uid: &Arc<str>) -> bool {
        self.being_written.remove(uid);
        let waits = self.waiting.contains_key(uid);
        if waits {
            self.ready.push_back(uid.clone());
        }
        waits
    }

    /// Returns the counters.
    pub(crate) fn counts(&self) -> QueueCounts {
        QueueCounts { depth: self.waiting.len() as u64, ..self.counts }
    }
}
