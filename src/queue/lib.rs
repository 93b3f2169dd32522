//! The scheduling queue: every pending unit in exactly one stage.
//!
//! PURE. Active units are taken in order; a refused one waits for an event that could help it, and for its
//! backoff; a gated one waits for its gates. The queue knows nothing of plugins: which events they listen to
//! is a table ([`Listening`]), and what they say about one is asked through a closure ([`Queue::wake`]).
//!
//! `moves` has what moves a unit, `gangs` what is particular to units of many pods, `groups` finds refused units by event, `events` remembers what they were
//! asked about, `limits` says how long a backoff takes, `line` who is ahead of whom.

mod events;
mod gangs;
mod groups;
mod limits;
mod line;
mod listening;
mod moves;
mod order;
mod unit;

use std::collections::BTreeSet;
use std::time::Duration;

pub use events::{EVENTS_KEPT, EventLog, EventObject, SeenEvent, Wakeup, WakeupReason};
pub use groups::WakeGroup;
pub use limits::QueueLimits;
pub use line::Turn;
pub use listening::Listening;
pub use moves::Happened;
pub use order::OrderKey;
pub use unit::{QueueStage, RefusedBy, Unit, UnitId};

use pellucid_model::{Pages, PodId};

use groups::Groups;

/// The queue. See the module.
#[derive(Default)]
pub struct Queue {
    limits: QueueLimits,
    listening: Listening,
    units: Pages<Option<Unit>>,
    unit_of: Pages<Option<UnitId>>,
    free: Vec<UnitId>,
    active: BTreeSet<(OrderKey, UnitId)>,
    /// Active too, but for a unit whose attempt is under way: it goes on between the others.
    paused: BTreeSet<(OrderKey, UnitId)>,
    backoff: BTreeSet<(Duration, OrderKey, UnitId)>,
    /// Those whose last attempt failed for a reason that is nobody's verdict. They sit their backoff out.
    error_backoff: BTreeSet<(Duration, OrderKey, UnitId)>,
    unschedulable: Groups,
    /// When each unschedulable unit is tried again in any case.
    expiries: BTreeSet<(Duration, UnitId)>,
    events: EventLog,
    counts: QueueStages,
}

/// Number of units per stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStages {
    /// Ready to be tried.
    pub active: usize,
    /// Waiting for their backoff to end, after a refusal or an error.
    pub backoff: usize,
    /// Those of them whose last attempt failed with an error.
    pub error_backoff: usize,
    /// Waiting for an event.
    pub unschedulable: usize,
    /// Held before the queue.
    pub gated: usize,
    /// Being planned, or placed and not yet confirmed.
    pub in_flight: usize,
}

impl Queue {
    /// Makes an empty queue.
    pub fn new(limits: QueueLimits, listening: Listening) -> Self {
        Self { limits, listening, ..Self::default() }
    }

    /// Returns a copy for readers: units, counts and events, without the orders.
    pub fn fork(&self) -> Self {
        Self {
            limits: self.limits,
            listening: self.listening.clone(),
            units: self.units.clone(),
            unit_of: self.unit_of.clone(),
            events: self.events.clone(),
            counts: self.counts,
            ..Self::default()
        }
    }

    /// Returns a unit.
    pub fn unit(&self, id: UnitId) -> Option<&Unit> {
        self.units.get(id.index()).and_then(Option::as_ref)
    }

    /// Returns the unit of a pod.
    pub fn unit_of(&self, pod: PodId) -> Option<UnitId> {
        self.unit_of.get(pod.index()).copied().flatten()
    }

    /// Iterates over all units, in no order that means anything.
    pub fn units(&self) -> impl Iterator<Item = (UnitId, &Unit)> {
        self.units.iter().enumerate().filter_map(|(i, u)| u.as_ref().map(|u| (UnitId(i as u32), u)))
    }

    /// Returns how many units are in each stage.
    pub fn counts(&self) -> QueueStages {
        self.counts
    }

    /// Returns the events that units were asked about.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// Returns who listens to what.
    pub fn listening(&self) -> &Listening {
        &self.listening
    }

    /// Returns when something falls due: the end of a backoff or an expiry. The loop may sleep until then,
    /// unless there is a unit to take ([`can_pop`](Self::can_pop)).
    pub fn next_deadline(&self) -> Option<Duration> {
        let backoff = self.backoff.first().map(|(until, ..)| *until);
        let errors = self.error_backoff.first().map(|(until, ..)| *until);
        let expiry = self.expiries.first().map(|(at, _)| *at);
        backoff.into_iter().chain(errors).chain(expiry).min()
    }

    /// Whether [`pop`](Self::pop) would return a unit.
    pub fn can_pop(&self) -> bool {
        let is_ready = !self.active.is_empty() || !self.paused.is_empty();
        is_ready || self.limits.pop_from_backoff && !self.backoff.is_empty()
    }

    /// Whether an attempt at some unit goes on later.
    pub fn has_paused(&self) -> bool {
        !self.paused.is_empty()
    }

    /// Returns the ranks of the first active unit and of the first paused one.
    pub fn first_ranks(&self) -> (Option<i64>, Option<i64>) {
        let first = |set: &BTreeSet<(OrderKey, UnitId)>| set.first().map(|(key, _)| key.rank.0);
        (first(&self.active), first(&self.paused))
    }
}

#[cfg(test)]
mod tests;
