//! The scheduling queue, as kube-scheduler's SchedulingQueue.
//!
//! PURE. Invariant: every pending unit is in exactly one stage. Active units are taken in order; a refused unit waits
//! for an event that could help it and for its backoff; a gated unit waits for its gates. The queue does not know
//! plugins: the [`Listening`] table says which events each one listens to, and [`Queue::wake`] asks about an event
//! through a closure. Start at [`Queue::add`], [`Queue::pop`] and [`Queue::refuse`].
//!
//! - `unit`: a queued pod or gang group, and its order key;
//! - `moves`: the moves of a unit between stages;
//! - `gangs`: the moves of units of many pods;
//! - `groups`, `listening`: an index of refused units by the events that may wake them;
//! - `events`: the newest events;
//! - `limits`: limits of the queue, and the length of a backoff;
//! - `position`: which units are ahead of a unit.

mod events;
mod gangs;
mod groups;
mod limits;
mod listening;
mod moves;
mod position;
mod unit;

use std::collections::BTreeSet;
use std::time::Duration;

pub use events::{EVENTS_KEPT, EventLog, EventObject, SeenEvent, Wakeup, WakeupReason};
pub use groups::WakeGroup;
pub use limits::QueueLimits;
pub use listening::Listening;
pub use moves::QueueEvent;
pub use unit::{OrderKey, QueueStage, RefusedBy, Unit, UnitId};

use pellucid_model::{Pages, PodId, Slots};

use groups::Groups;

/// The scheduling queue, owned by the scheduling thread; readers get a [`fork`](Self::fork).
#[derive(Default)]
pub struct Queue {
    limits: QueueLimits,
    listening: Listening,
    units: Pages<Option<Unit>>,
    unit_of: Pages<Option<UnitId>>,
    /// Which slots of `units` are free.
    slots: Slots,
    active: BTreeSet<(OrderKey, UnitId)>,
    /// Active units with a paused attempt, which continues between the attempts of other units.
    paused: BTreeSet<(OrderKey, UnitId)>,
    backoff: BTreeSet<(Duration, OrderKey, UnitId)>,
    /// Units that failed with an error, or are held back. Their backoff always runs its full time.
    error_backoff: BTreeSet<(Duration, OrderKey, UnitId)>,
    unschedulable: Groups,
    /// When each unschedulable unit is tried again even if no event woke it.
    expiries: BTreeSet<(Duration, UnitId)>,
    events: EventLog,
    counts: QueueStages,
}

/// Number of units per stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStages {
    /// Units that are ready to be tried.
    pub active: usize,
    /// Units waiting for their backoff to end, after a refusal or an error.
    pub backoff: usize,
    /// The part of `backoff` whose last attempt failed with an error, or that is held back.
    pub error_backoff: usize,
    /// Refused units waiting for an event.
    pub unschedulable: usize,
    /// Units held back until their gates open.
    pub gated: usize,
    /// Units being scheduled, or placed and not confirmed yet.
    pub in_flight: usize,
}

impl Queue {
    /// Makes an empty queue.
    #[inline]
    pub fn new(limits: QueueLimits, listening: Listening) -> Self {
        Self { limits, listening, ..Self::default() }
    }

    /// Returns a copy for readers: units, counts and events, without the ordered sets.
    pub fn fork(&self) -> Self {
        Self {
            limits: self.limits,
            listening: self.listening.clone(),
            units: self.units.clone(),
            unit_of: self.unit_of.clone(),
            slots: self.slots.clone(),
            events: self.events.clone(),
            counts: self.counts,
            ..Self::default()
        }
    }

    /// Returns a unit, or `None` when the slot is free.
    #[inline]
    pub fn unit(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(id.index()).and_then(Option::as_ref)
    }

    /// Returns the id of a pod's unit, or `None` when the pod is not queued.
    #[inline]
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.unit_of.get(pod.index()).copied().flatten()
    }

    /// Iterates over all units, in no meaningful order.
    #[inline]
    pub fn units(&self) -> impl Iterator<Item = (UnitId, &Unit)> {
        self.units.iter().enumerate().filter_map(|(i, u)| u.as_ref().map(|u| (UnitId(i as u32), u)))
    }

    /// Returns the number of units in each stage.
    #[inline]
    pub fn counts(&self) -> QueueStages {
        self.counts
    }

    /// Returns the newest events and counts.
    #[inline]
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// Returns the table of the events that each plugin listens to.
    #[inline]
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Returns when the next backoff or expiry is due. The loop may sleep until then, unless there is a unit to take
    /// ([`can_pop`](Self::can_pop)).
    #[inline]
    pub fn next_deadline(&self) -> Option<Duration> {
        let backoff = self.backoff.first().map(|(until, ..)| *until);
        let errors = self.error_backoff.first().map(|(until, ..)| *until);
        let expiry = self.expiries.first().map(|(at, _)| *at);
        backoff.into_iter().chain(errors).chain(expiry).min()
    }

    /// Returns whether [`pop`](Self::pop) would return a unit.
    #[inline]
    pub fn can_pop(&self) -> bool {
        let is_ready = !self.active.is_empty() || !self.paused.is_empty();
        is_ready || self.limits.pop_from_backoff && !self.backoff.is_empty()
    }

    /// Returns whether the attempt of some unit is paused.
    #[inline]
    pub fn has_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Returns the ranks of the first active unit and of the first paused one.
    #[inline]
    pub fn first_ranks(&self) -> (Option<i64>, Option<i64>) {
        let first = |set: &BTreeSet<(OrderKey, UnitId)>| set.first().map(|(key, _)| key.rank.0);
        (first(&self.active), first(&self.paused))
    }
}

#[cfg(test)]
mod tests;
