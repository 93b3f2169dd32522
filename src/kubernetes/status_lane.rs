//! The lane of status orders: one waiting order per pod, to which newer ones are added part by part.
//!
//! Bounded: when too many pods wait, the one that waits longest loses its order, and that is counted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::lanes::LaneCounts;
use crate::framework::effect::StatusOrder;
use crate::model::collections::{HashMap, HashSet};

/// Waiting orders by uid. A uid is in `turn` exactly if it waits and is not being written.
#[derive(Default)]
pub(super) struct StatusLane {
    waiting: HashMap<Arc<str>, StatusOrder>,
    turn: VecDeque<Arc<str>>,
    being_written: HashSet<Arc<str>>,
    counts: LaneCounts,
}

impl StatusLane {
    /// Adds an order. Returns whether there is one more to be pulled.
    pub(super) fn push(&mut self, order: StatusOrder, capacity: usize) -> bool {
        let uid = order.pod.uid.clone();
        self.counts.into += 1;
        if let Some(waiting) = self.waiting.get_mut(&uid) {
            *waiting = merged(order, waiting);
            self.counts.replaced += 1;
            return false;
        }
        self.waiting.insert(uid.clone(), order);
        let is_free = !self.being_written.contains(&uid);
        if is_free {
            self.turn.push_back(uid);
        }
        if self.waiting.len() > capacity
            && let Some(oldest) = self.turn.pop_front()
        {
            self.waiting.remove(&oldest);
            self.counts.dropped += 1;
        }
        is_free
    }

    /// Takes the order whose turn it is, and whether there are more.
    pub(super) fn pop(&mut self) -> (Option<StatusOrder>, bool) {
        let uid = self.turn.pop_front();
        let order = uid.and_then(|uid| self.waiting.remove(&uid));
        if let Some(order) = &order {
            self.being_written.insert(order.pod.uid.clone());
            self.counts.out += 1;
        }
        (order, !self.turn.is_empty())
    }

    /// Gives an order up for a newer one, if one waits. What the newer one does not say it takes from this.
    pub(super) fn supersede(&mut self, order: &StatusOrder) -> bool {
        let Some(newer) = self.waiting.get_mut(&order.pod.uid) else { return false };
        *newer = merged(newer.clone(), order);
        true
    }

    /// An order was written or given up. Returns whether there is one more to be pulled.
    pub(super) fn done(&mut self, uid: &Arc<str>) -> bool {
        self.being_written.remove(uid);
        let waits = self.waiting.contains_key(uid);
        if waits {
            self.turn.push_back(uid.clone());
        }
        waits
    }

    /// Returns the counters.
    pub(super) fn counts(&self) -> LaneCounts {
        LaneCounts { depth: self.waiting.len() as u64, ..self.counts }
    }
}

/// The newest of each part.
fn merged(newer: StatusOrder, older: &StatusOrder) -> StatusOrder {
    StatusOrder {
        condition: newer.condition.or_else(|| older.condition.clone()),
        nomination: newer.nomination.or_else(|| older.nomination.clone()),
        pod: newer.pod,
    }
}
