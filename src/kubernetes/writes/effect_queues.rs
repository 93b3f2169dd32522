//! Bounded queues from the scheduling thread to the writers.
//!
//! The scheduling thread pushes a batch under one lock and never waits. Writers pull.
//! - Binds, evictions, objects: first in, first out, never dropped. The scheduling thread checks
//!   [`EffectQueues::room`] before it plans, so a queue exceeds its capacity by at most the orders of one planning
//!   round.
//! - Statuses of pods: one waiting order per pod with the newest condition and nomination. At most one order per pod
//!   is in flight.
//! - Statuses of PodGroups: the same, with the newest status.
//! - Events: when the queue is full, the oldest is dropped and counted. While bind orders wait, or more than
//!   [`BESIDE_EVENTS`] Bindings are being written, the API server is busy, so events wait, as long as none is dropped for it.
//!   Each keeps the time at which it was pushed.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use pellucid_model::Now;
use pellucid_model::effect::{
    BindOrder, Effect, EventOrder, EvictOrder, GroupStatusOrder, ObjectOrder, StatusOrder,
};
use tokio::sync::Notify;

use crate::Clock;
use crate::writes::newest_queue::NewestQueue;

/// Capacity of each queue, in orders unless a field says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct EffectQueueSizes {
    /// Bind orders, never dropped.
    pub binds: usize,
    /// Evict orders, never dropped.
    pub evictions: usize,
    /// Object orders, never dropped.
    pub objects: usize,
    /// Pods with a waiting status order.
    pub statuses: usize,
    /// PodGroups with a waiting status order.
    pub group_statuses: usize,
    /// Events; the oldest is dropped when the queue is full.
    pub events: usize,
}

impl Default for EffectQueueSizes {
    fn default() -> Self {
        Self {
            binds: 2048,
            evictions: 2048,
            objects: 2048,
            statuses: 65_536,
            group_statuses: 65_536,
            events: 65_536,
        }
    }
}

/// Eighths of the queue of events that may fill up while Bindings go first.
const EVENTS_KEPT: usize = 7;
/// Bindings that may be in flight while events are written.
const BESIDE_EVENTS: usize = 8;

/// Counters of one queue, in orders. Invariant: `into` = `out` + `dropped` + `replaced` + `depth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Orders pushed.
    pub into: u64,
    /// Orders pulled.
    pub out: u64,
    /// Orders dropped because the queue was full.
    pub dropped: u64,
    /// Orders merged into one that was already waiting.
    pub replaced: u64,
    /// Orders waiting now.
    pub depth: u64,
}

/// Counters of all queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectQueueCounts {
    /// Counters of bind orders.
    pub binds: QueueCounts,
    /// Counters of evict orders.
    pub evictions: QueueCounts,
    /// Counters of object orders.
    pub objects: QueueCounts,
    /// Counters of pod status orders.
    pub statuses: QueueCounts,
    /// Counters of PodGroup status orders.
    pub group_statuses: QueueCounts,
    /// Counters of events.
    pub events: QueueCounts,
}

/// Holds all effects that wait for a writer. Shared by the scheduling thread and the writers.
pub struct EffectQueues {
    sizes: EffectQueueSizes,
    clock: Clock,
    inner: Mutex<Inner>,
    binds: Notify,
    evictions: Notify,
    objects: Notify,
    statuses: Notify,
    group_statuses: Notify,
    events: Notify,
}

#[derive(Default)]
struct Inner {
    closed: bool,
    binds: Fifo<BindOrder>,
    evictions: Fifo<EvictOrder>,
    objects: Fifo<ObjectOrder>,
    statuses: NewestQueue<StatusOrder>,
    group_statuses: NewestQueue<GroupStatusOrder>,
    /// With the time of each.
    events: Fifo<(EventOrder, Now)>,
    /// Bind orders that were pulled and are not done.
    binding: usize,
}

impl Inner {
    /// Returns whether Bindings leave the API server time for events.
    fn has_room_for_events(&self) -> bool {
        self.binds.orders.is_empty() && self.binding <= BESIDE_EVENTS
    }
}

impl EffectQueues {
    /// Creates empty queues.
    pub fn new(sizes: EffectQueueSizes, clock: Clock) -> Self {
        let [binds, evictions, objects, statuses, group_statuses, events] =
            std::array::from_fn(|_| Notify::new());
        Self {
            sizes,
            clock,
            inner: Mutex::default(),
            binds,
            evictions,
            objects,
            statuses,
            group_statuses,
            events,
        }
    }

    /// Pushes effects into their queues. Never waits.
    pub fn push_all(&self, effects: impl IntoIterator<Item = Effect>) {
        let [mut binds, mut evictions, mut objects, mut statuses, mut groups, mut events] = [false; 6];
        let now = (self.clock)();
        let mut inner = self.inner.lock();
        for effect in effects {
            match effect {
                Effect::Bind(order) => binds |= inner.binds.push(order),
                Effect::Evict(order) => evictions |= inner.evictions.push(order),
                Effect::Object(order) => objects |= inner.objects.push(order),
                Effect::Status(order) => statuses |= inner.statuses.push(order, self.sizes.statuses),
                Effect::GroupStatus(order) => {
                    groups |= inner.group_statuses.push(order, self.sizes.group_statuses);
                }
                Effect::Event(order) => {
                    events |= inner.events.push_dropping((order, now), self.sizes.events);
                }
            }
        }
        drop(inner);
        // One permit wakes one puller; a puller that leaves orders behind wakes the next.
        let grown = [binds, evictions, objects, statuses, groups, events];
        for (grew, notify) in grown.into_iter().zip(self.notifies()) {
            if grew {
                notify.notify_one();
            }
        }
    }

    fn notifies(&self) -> [&Notify; 6] {
        [&self.binds, &self.evictions, &self.objects, &self.statuses, &self.group_statuses, &self.events]
    }

    /// Returns how many more orders fit into the fullest of the queues that never drop.
    pub fn room(&self) -> usize {
        let (inner, sizes) = (self.inner.lock(), &self.sizes);
        let room = |size: usize, used: usize| size.saturating_sub(used);
        room(sizes.binds, inner.binds.orders.len())
            .min(room(sizes.evictions, inner.evictions.orders.len()))
            .min(room(sizes.objects, inner.objects.orders.len()))
    }

    /// Returns the counters.
    pub fn counts(&self) -> EffectQueueCounts {
        let inner = self.inner.lock();
        EffectQueueCounts {
            binds: inner.binds.counts(),
            evictions: inner.evictions.counts(),
            objects: inner.objects.counts(),
            statuses: inner.statuses.counts(),
            group_statuses: inner.group_statuses.counts(),
            events: inner.events.counts(),
        }
    }

    /// Ends all pulls. Waiting orders stay in the queues.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        for notify in self.notifies() {
            notify.notify_waiters();
            notify.notify_one();
        }
    }

    /// Waits for a bind order; `None` when the queues are closed. The caller calls [`EffectQueues::bind_done`] when it is
    /// settled.
    pub async fn next_bind(&self) -> Option<BindOrder> {
        let pop = |inner: &mut Inner| {
            let popped = inner.binds.pop();
            inner.binding += usize::from(popped.0.is_some());
            popped
        };
        let order = self.next(&self.binds, pop).await;
        self.let_events_go();
        order
    }

    /// Marks a bind order as settled.
    pub fn bind_done(&self) {
        self.inner.lock().binding -= 1;
        self.let_events_go();
    }

    fn let_events_go(&self) {
        if self.inner.lock().has_room_for_events() {
            self.events.notify_one();
        }
    }

    /// Waits for an evict order; `None` when the queues are closed.
    pub async fn next_eviction(&self) -> Option<EvictOrder> {
        self.next(&self.evictions, |inner| inner.evictions.pop()).await
    }

    /// Waits for an object order; `None` when the queues are closed.
    pub async fn next_object(&self) -> Option<ObjectOrder> {
        self.next(&self.objects, |inner| inner.objects.pop()).await
    }

    /// Waits for a status order; `None` when the queues are closed. No other order for the pod is returned until the
    /// caller calls [`EffectQueues::status_done`].
    pub async fn next_status(&self) -> Option<StatusOrder> {
        self.next(&self.statuses, |inner| inner.statuses.pop()).await
    }

    /// Waits for a PodGroup status order; `None` when the queues are closed. No other order for the group is returned
    /// until the caller calls [`EffectQueues::group_status_done`].
    pub async fn next_group_status(&self) -> Option<GroupStatusOrder> {
        self.next(&self.group_statuses, |inner| inner.group_statuses.pop()).await
    }

    /// Waits for an event that may be written now, and returns when it was; `None` when the queues are closed.
    pub async fn next_event(&self) -> Option<(EventOrder, Now)> {
        let kept = self.sizes.events / 8 * EVENTS_KEPT;
        let pop = |inner: &mut Inner| match inner.has_room_for_events() || inner.events.orders.len() > kept {
            true => inner.events.pop(),
            false => (None, false),
        };
        self.next(&self.events, pop).await
    }

    /// Drops an order in flight in favour of a newer one for the same pod, if one waits, and returns whether it did.
    /// The newer order takes over the parts it lacks.
    pub fn supersede(&self, order: &StatusOrder) -> bool {
        self.inner.lock().statuses.supersede(order)
    }

    /// Marks the order pulled for this pod as written or given up.
    pub fn status_done(&self, uid: &Arc<str>) {
        if self.inner.lock().statuses.done(uid) {
            self.statuses.notify_one();
        }
    }

    /// Drops an order in flight in favour of a newer one for the same PodGroup, if one waits; returns whether it did.
    pub fn supersede_group(&self, order: &GroupStatusOrder) -> bool {
        self.inner.lock().group_statuses.supersede(order)
    }

    /// Marks the order pulled for this PodGroup as written or given up.
    pub fn group_status_done(&self, uid: &Arc<str>) {
        if self.inner.lock().group_statuses.done(uid) {
            self.group_statuses.notify_one();
        }
    }

    /// Waits until `pop` returns an order; `pop` also returns whether there are more.
    async fn next<T>(&self, notify: &Notify, pop: impl Fn(&mut Inner) -> (Option<T>, bool)) -> Option<T> {
        loop {
            let (order, more) = {
                let mut inner = self.inner.lock();
                if inner.closed {
                    // Pass the wake-up on to the other waiting pullers.
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

/// A queue in order of arrival, with its counters.
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
    /// Adds an order. Returns true: there is one more to pull.
    fn push(&mut self, order: T) -> bool {
        self.counts.into += 1;
        self.orders.push_back(order);
        true
    }

    /// Adds an order. When the queue is full, drops the oldest first.
    fn push_dropping(&mut self, order: T, capacity: usize) -> bool {
        if self.orders.len() >= capacity && self.orders.pop_front().is_some() {
            self.counts.dropped += 1;
        }
        self.push(order)
    }

    /// Removes the oldest order; also returns whether there are more.
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
