//! Lanes: bounded queues from the scheduling thread to the writers.
//!
//! The scheduling thread pushes a batch under one lock and never waits. Writers pull. Three lanes:
//! - binds: first in, first out, never dropped. The loop asks for [`Lanes::bind_room`] before it plans the
//!   next unit, so the lane exceeds its capacity by one unit at most;
//! - conditions: the newest per pod; one pod's are written one after the other;
//! - events: the oldest are dropped, and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::framework::effect::{BindOrder, Effect, EventOrder, StatusOrder};
use crate::model::collections::{HashMap, HashSet};

/// How much the lanes hold.
#[derive(Clone, Copy, Debug)]
pub struct LaneSizes {
    /// Bind orders.
    pub binds: usize,
    /// Pods with a condition to write.
    pub conditions: usize,
    /// Events.
    pub events: usize,
}

impl Default for LaneSizes {
    fn default() -> Self {
        Self { binds: 2048, conditions: 65_536, events: 8192 }
    }
}

/// Counters of one lane. `into` = `out` + `dropped` + `replaced` + `depth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Orders pushed.
    pub into: u64,
    /// Orders pulled.
    pub out: u64,
    /// Orders dropped for want of room.
    pub dropped: u64,
    /// Orders that a newer one took the place of.
    pub replaced: u64,
    /// Orders in the lane.
    pub depth: u64,
}

/// Counters of all lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllLaneCounts {
    /// Bind orders.
    pub binds: LaneCounts,
    /// Conditions.
    pub conditions: LaneCounts,
    /// Events.
    pub events: LaneCounts,
}

/// The lanes.
pub struct Lanes {
    sizes: LaneSizes,
    inner: Mutex<Inner>,
    binds: Notify,
    conditions: Notify,
    events: Notify,
}

#[derive(Default)]
struct Inner {
    closed: bool,
    binds: VecDeque<BindOrder>,
    conditions: Conditions,
    events: VecDeque<EventOrder>,
    counts: AllLaneCounts,
}

/// Waiting conditions by uid. A uid is in `turn` exactly if it waits and is not being written.
#[derive(Default)]
struct Conditions {
    waiting: HashMap<Arc<str>, StatusOrder>,
    turn: VecDeque<Arc<str>>,
    being_written: HashSet<Arc<str>>,
}

impl Lanes {
    /// Makes empty lanes.
    pub fn new(sizes: LaneSizes) -> Self {
        let (binds, conditions, events) = (Notify::new(), Notify::new(), Notify::new());
        Self { sizes, inner: Mutex::default(), binds, conditions, events }
    }

    /// Puts orders into their lanes. Never waits.
    pub fn push_all(&self, effects: impl IntoIterator<Item = Effect>) {
        let mut inner = self.inner.lock();
        let before = (inner.binds.len(), inner.conditions.turn.len(), inner.events.len());
        for effect in effects {
            match effect {
                Effect::Bind(order) => {
                    inner.counts.binds.into += 1;
                    inner.binds.push_back(order);
                }
                Effect::Status(order) => inner.push_condition(order, self.sizes.conditions),
                Effect::Evict(_) | Effect::Volume(_) => {}
                Effect::Event(order) => inner.push_event(order, self.sizes.events),
            }
        }
        let after = (inner.binds.len(), inner.conditions.turn.len(), inner.events.len());
        drop(inner);
        // One permit wakes one puller, and each puller that leaves something behind wakes the next.
        for (grew, notify) in [
            (after.0 > before.0, &self.binds),
            (after.1 > before.1, &self.conditions),
            (after.2 > before.2, &self.events),
        ] {
            if grew {
                notify.notify_one();
            }
        }
    }

    /// Returns how many more bind orders there is room for.
    pub fn bind_room(&self) -> usize {
        self.sizes.binds.saturating_sub(self.inner.lock().binds.len())
    }

    /// Returns the counters.
    pub fn counts(&self) -> AllLaneCounts {
        let inner = self.inner.lock();
        let mut counts = inner.counts;
        counts.binds.depth = inner.binds.len() as u64;
        counts.conditions.depth = inner.conditions.waiting.len() as u64;
        counts.events.depth = inner.events.len() as u64;
        counts
    }

    /// Ends all pulls: what still waits stays where it is.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        for notify in [&self.binds, &self.conditions, &self.events] {
            notify.notify_waiters();
            notify.notify_one();
        }
    }

    /// Waits for a bind order; `None` when closed.
    pub async fn next_bind(&self) -> Option<BindOrder> {
        self.next(&self.binds, |inner| {
            let order = inner.binds.pop_front();
            inner.counts.binds.out += u64::from(order.is_some());
            (order, !inner.binds.is_empty())
        })
        .await
    }

    /// Waits for a condition; `None` when closed. The caller says [`Lanes::condition_done`] afterwards;
    /// until then no other condition of that pod is handed out.
    pub async fn next_condition(&self) -> Option<StatusOrder> {
        self.next(&self.conditions, Inner::pop_condition).await
    }

    /// Waits for an event; `None` when closed.
    pub async fn next_event(&self) -> Option<EventOrder> {
        self.next(&self.events, |inner| {
            let order = inner.events.pop_front();
            inner.counts.events.out += u64::from(order.is_some());
            (order, !inner.events.is_empty())
        })
        .await
    }

    /// Whether a newer condition waits for a pod whose condition is being written.
    pub fn is_superseded(&self, uid: &str) -> bool {
        self.inner.lock().conditions.waiting.contains_key(uid)
    }

    /// Says that the condition pulled for this pod was written, or given up.
    pub fn condition_done(&self, uid: &Arc<str>) {
        let mut inner = self.inner.lock();
        let conditions = &mut inner.conditions;
        conditions.being_written.remove(uid);
        if conditions.waiting.contains_key(uid) {
            conditions.turn.push_back(uid.clone());
            drop(inner);
            self.conditions.notify_one();
        }
    }

    /// Pulls with `pop`, which returns an order and whether there are more.
    async fn next<T>(&self, notify: &Notify, pop: impl Fn(&mut Inner) -> (Option<T>, bool)) -> Option<T> {
        loop {
            let (order, more) = {
                let mut inner = self.inner.lock();
                if inner.closed {
                    // Pass the wake-up on: others wait too.
                    notify.notify_one();
                    return None;
                }
                pop(&mut inner)
            };
            if more {
                notify.notify_one();
            }
            if order.is_some() {
                return order;
            }
            notify.notified().await;
        }
    }
}

impl Inner {
    fn push_condition(&mut self, order: StatusOrder, capacity: usize) {
        let conditions = &mut self.conditions;
        let uid = order.pod.uid.clone();
        self.counts.conditions.into += 1;
        if conditions.waiting.insert(uid.clone(), order).is_some() {
            self.counts.conditions.replaced += 1;
            return;
        }
        if !conditions.being_written.contains(&uid) {
            conditions.turn.push_back(uid);
        }
        if conditions.waiting.len() > capacity
            && let Some(oldest) = conditions.turn.pop_front()
        {
            conditions.waiting.remove(&oldest);
            self.counts.conditions.dropped += 1;
        }
    }

    fn pop_condition(&mut self) -> (Option<StatusOrder>, bool) {
        let conditions = &mut self.conditions;
        let uid = conditions.turn.pop_front();
        let order = uid.and_then(|uid| conditions.waiting.remove(&uid));
        if let Some(order) = &order {
            conditions.being_written.insert(order.pod.uid.clone());
            self.counts.conditions.out += 1;
        }
        (order, !conditions.turn.is_empty())
    }

    fn push_event(&mut self, order: EventOrder, capacity: usize) {
        self.counts.events.into += 1;
        if self.events.len() >= capacity && self.events.pop_front().is_some() {
            self.counts.events.dropped += 1;
        }
        self.events.push_back(order);
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
