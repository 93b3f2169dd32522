//! Whose turn it is: units in their order, and between them attempts at gangs that go on in slices.

use pellucid_model::time::Probe;
use pellucid_model::{GangKey, Now};

use super::{Scheduler, Step};
use crate::attempt::work::SLICE;

/// How work is shared out between attempts at gangs, which go on in slices, and other units. In units of `attempt::work`.
pub(crate) struct Turns {
    /// Work done since the start.
    pub(crate) work: u64,
    /// Work done for units in front of which a paused one stands, since that went on.
    since_slice: u64,
    /// Work of one slice of an attempt at a gang.
    pub(crate) slice: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self { work: 0, since_slice: 0, slice: SLICE }
    }
}

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
        let before = self.turns.work;
        let (unit, is_paused) = match self.is_turn_of_paused() {
            true => (self.queue.pop_paused(), true),
            false => (self.queue.pop(), false),
        };
        let Some(unit) = unit else { return Advance::Idle };
        let rep = self.queue.unit(unit).and_then(|u| u.gang.clone());
        let step = self.schedule_one(unit, now, probe);
        let work = self.turns.work - before;
        self.turns.since_slice = if is_paused { 0 } else { self.turns.since_slice + work };
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
            (Some(active), Some(paused)) if active == paused => self.turns.since_slice >= self.turns.slice,
            _ => self.turns.since_slice >= self.turns.slice / 10,
        }
    }
}
