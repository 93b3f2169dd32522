//! EffectQueues: bounded queues from the scheduling thread to the writers.
//!
//! The scheduling thread pushes a batch under one lock and never waits. Writers pull.
//! - binds, evictions, volumes: first in, first out, never dropped. The loop asks for [`EffectQueues::room`] before
//!   it plans, so a queue exceeds its size by what one round of planning orders, at most;
//! - statuses: one order per pod, the newest of each part; one pod's are written one after the other;
//! - statuses of PodGroups: likewise, the newest;
//! - events: the oldest are dropped, and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use pellucid_model::effect::{
    BindOrder, Effect, EventOrder, EvictOrder, GroupStatusOrder, StatusOrder, VolumeOrder,
};
use tokio::sync::Notify;

use crate::writes::newest_queue::NewestQueue;

/// How much the queues hold.
#[derive(Clone, Copy, Debug)]
pub struct EffectQueueSizes {
    /// Bind orders.
    pub binds: usize,
    /// Evict orders.
    pub evictions: usize,
    /// Volume orders.
    pub volumes: usize,
    /// Pods with a status to write.
    pub statuses: usize,
    /// PodGroups with a status to write.
    pub group_statuses: usize,
    /// Events.
    pub events: usize,
}

impl Default for EffectQueueSizes {
    fn default() -> Self {
        Self {
            binds: 2048,
            evictions: 2048,
            volumes: 2048,
            statuses: 65_536,
            group_statuses: 65_536,
            events: 8192,
        }
    }
}

/// Counters of one queue. `into` = `out` + `dropped` + `replaced` + `depth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Orders pushed.
    pub into: u64,
    /// Orders pulled.
    pub out: u64,
    /// Orders dropped for want of room.
    pub dropped: u64,
    /// Orders that joined one that waited already.
    pub replaced: u64,
    /// Orders in the queue.
    pub depth: u64,
}

/// Counters of all queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectQueueCounts {
    /// Bind orders.
    pub binds: QueueCounts,
    /// Evict orders.
    pub evictions: QueueCounts,
    /// Volume orders.
    pub volumes: QueueCounts,
    /// Status orders.
    pub statuses: QueueCounts,
    /// Status orders of PodGroups.
    pub group_statuses: QueueCounts,
    /// Events.
    pub events: QueueCounts,
}

/// The queues.
pub struct EffectQueues {
    sizes: EffectQueueSizes,
    inner: Mutex<Inner>,
    binds: Notify,
    evictions: Notify,
    volumes: Notify,
    statuses: Notify,
    group_statuses: Notify,
    events: Notify,
}

#[derive(Default)]
struct Inner {
    closed: bool,
    binds: Fifo<BindOrder>,
    evictions: Fifo<EvictOrder>,
    volumes: Fifo<VolumeOrder>,
    statuses: NewestQueue<StatusOrder>,
    group_statuses: NewestQueue<GroupStatusOrder>,
    events: Fifo<EventOrder>,
}

impl EffectQueues {
    /// Makes empty queues.
    pub fn new(sizes: EffectQueueSizes) -> Self {
        Self {
            sizes,
            inner: Mutex::default(),
            binds: Notify::new(),
            evictions: Notify::new(),
            volumes: Notify::new(),
            statuses: Notify::new(),
            group_statuses: Notify::new(),
            events: Notify::new(),
        }
    }

    /// Puts orders into their queues. Never waits.
    pub fn push_all(&self, effects: impl IntoIterator<Item = Effect>) {
        let [mut binds, mut evictions, mut volumes, mut statuses, mut groups, mut events] = [false; 6];
        let mut inner = self.inner.lock();
        for effect in effects {
            match effect {
                Effect::Bind(order) => binds |= inner.binds.push(order),
                Effect::Evict(order) => evictions |= inner.evictions.push(order),
                Effect::Volume(order) => volumes |= inner.volumes.push(order),
                Effect::Status(order) => statuses |= inner.statuses.push(order, self.sizes.statuses),
                Effect::GroupStatus(order) => {
                    groups |= inner.group_statuses.push(order, self.sizes.group_statuses);
                }
                Effect::Event(order) => events |= inner.events.push_dropping(order, self.sizes.events),
            }
        }
        drop(inner);
        // One permit wakes one puller, and each puller that leaves something behind wakes the next.
        let grown = [binds, evictions, volumes, statuses, groups, events];
        for (grew, notify) in grown.into_iter().zip(self.notifies()) {
            if grew {
                notify.notify_one();
            }
        }
    }

    fn notifies(&self) -> [&Notify; 6] {
        [&self.binds, &self.evictions, &self.volumes, &self.statuses, &self.group_statuses, &self.events]
    }

    /// Returns how many more orders there is room for in each queue from which nothing is dropped.
    pub fn room(&self) -> usize {
        let (inner, sizes) = (self.inner.lock(), &self.sizes);
        let room = |size: usize, used: usize| size.saturating_sub(used);
        room(sizes.binds, inner.binds.orders.len())
            .min(room(sizes.evictions, inner.evictions.orders.len()))
            .min(room(sizes.volumes, inner.volumes.orders.len()))
    }

    /// Returns the counters.
    pub fn counts(&self) -> EffectQueueCounts {
        let inner = self.inner.lock();
        EffectQueueCounts {
            binds: inner.binds.counts(),
            evictions: inner.evictions.counts(),
            volumes: inner.volumes.counts(),
            statuses: inner.statuses.counts(),
            group_statuses: inner.group_statuses.counts(),
            events: inner.events.counts(),
        }
    }

    /// Ends all pulls: what still waits stays where it is.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        for notify in self.notifies() {
            notify.notify_waiters();
            notify.notify_one();
        }
    }

    /// Waits for a bind order; `None` when closed.
    pub async fn next_bind(&self) -> Option<BindOrder> {
        self.next(&self.binds, |inner| inner.binds.pop()).await
    }

    /// Waits for an evict order; `None` when closed.
    pub async fn next_eviction(&self) -> Option<EvictOrder> {
        self.next(&self.evictions, |inner| inner.evictions.pop()).await
    }

    /// Waits for a volume order; `None` when closed.
    pub async fn next_volume(&self) -> Option<VolumeOrder> {
        self.next(&self.volumes, |inner| inner.volumes.pop()).await
    }

    /// Waits for a status order; `None` when closed. The caller says [`EffectQueues::status_done`] afterwards; until
    /// then no other order of that pod is handed out.
    pub async fn next_status(&self) -> Option<StatusOrder> {
        self.next(&self.statuses, |inner| inner.statuses.pop()).await
    }

    /// Waits for a status order of a PodGroup; `None` when closed. The caller says
    /// [`EffectQueues::group_status_done`] afterwards; until then no other order of that group is handed out.
    pub async fn next_group_status(&self) -> Option<GroupStatusOrder> {
        self.next(&self.group_statuses, |inner| inner.group_statuses.pop()).await
    }

    /// Waits for an event; `None` when closed.
    pub async fn next_event(&self) -> Option<EventOrder> {
        self.next(&self.events, |inner| inner.events.pop()).await
    }

    /// Gives an order that is being written up for a newer one of the same pod, if one waits. What the newer
    /// one does not say it takes from this.
    pub fn supersede(&self, order: &StatusOrder) -> bool {
        self.inner.lock().statuses.supersede(order)
    }

    /// Says that the order pulled for this pod was written, or given up.
    pub fn status_done(&self, uid: &Arc<str>) {
        let waits = self.inner.lock().statuses.done(uid);
        if waits {
            self.statuses.notify_one();
        }
    }

    /// Gives an order that is being written up for a newer one of the same PodGroup, if one waits.
    pub fn supersede_group(&self, order: &GroupStatusOrder) -> bool {
        self.inner.lock().group_statuses.supersede(order)
    }

    /// Says that the order pulled for this PodGroup was written, or given up.
    pub fn group_status_done(&self, uid: &Arc<str>) {
        let waits = self.inner.lock().group_statuses.done(uid);
        if waits {
            self.group_statuses.notify_one();
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

/// First in, first out.
struct Fifo<T> {
    orders: VecDeque<T>,
    counts: QueueCounts,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self { orders: VecDeque::new(), counts: QueueCounts::default() }
    }
}

impl<T> Fifo<T> {
    /// Adds an order; says that there is one more to be pulled.
    fn push(&mut self, order: T) -> bool {
        self.counts.into += 1;
        self.orders.push_back(order);
        true
    }

    /// Adds an order, for which the oldest has to go when the queue is full.
    fn push_dropping(&mut self, order: T, capacity: usize) -> bool {
        if self.orders.len() >= capacity && self.orders.pop_front().is_some() {
            self.counts.dropped += 1;
        }
        self.push(order)
    }

    /// Takes the oldest, and whether there are more.
    fn pop(&mut self) -> (Option<T>, bool) {
        let order = self.orders.pop_front();
        self.counts.out += u64::from(order.is_some());
        (order, !self.orders.is_empty())
    }

    fn counts(&self) -> QueueCounts {
        QueueCounts { depth: self.orders.len() as u64, ..self.counts }
    }
}

#[cfg(test)]
#[path = "effect_queues_tests.rs"]
mod tests;
