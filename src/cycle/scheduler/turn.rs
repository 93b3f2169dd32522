//! Decides whose turn it is: units run in queue order, and attempts at gangs run in slices between them.

use pellucid_model::time::Probe;
use pellucid_model::{GangKey, Now};

use crate::scheduler::{Scheduler, Step};

/// Shares work between attempts at gangs, which run in slices, and other units. Amounts are in units of
/// `attempt::work`.
pub(crate) struct Turns {
    /// Work done since the start.
    pub(crate) work: u64,
    /// Work done since a paused attempt last got a slice.
    pub(crate) since_slice: u64,
    /// Work in one slice of an attempt at a gang.
    pub(crate) slice: u64,
}

/// The result of [`Scheduler::advance`].
#[derive(Debug)]
pub enum Advance {
    /// A unit was judged.
    Judged(Step),
    /// The attempt at this gang, the first of its group, is paused.
    Paused(GangKey),
    /// The queue has no unit to take, or this instance stands by.
    Idle,
}

impl Scheduler {
    /// Plans the next unit to its end. Returns `None` when the queue has no unit to take.
    pub fn step(&mut self, now: Now, probe: &dyn Probe) -> Option<Step> {
        loop {
            match self.advance(now, probe) {
                Advance::Judged(step) => return Some(step),
                Advance::Paused(_) => {}
                Advance::Idle => return None,
            }
        }
    }

    /// Plans the next unit, or one slice of it if it takes long. Between slices the caller can apply inputs, and other
    /// units have their turn.
    pub fn advance(&mut self, now: Now, probe: &dyn Probe) -> Advance {
        self.cluster.set_now(now);
        self.settle_plugin_state(now);
        let before = self.turns.work;
        let is_paused = self.is_turn_of_paused();
        if !self.is_leading() {
            return Advance::Idle;
        }
        let unit = if is_paused { self.queue.pop_paused() } else { self.queue.pop() };
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

    /// Whether the paused attempt continues now. An active unit of higher rank always goes first. Between two slices,
    /// active units of equal rank get a slice's worth of work, and units of lower rank a tenth of it.
    fn is_turn_of_paused(&self) -> bool {
        if !self.queue.has_paused() {
            return false;
        }
        match self.queue.first_ranks() {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(active), Some(paused)) if active > paused => false,
            (Some(active), Some(paused)) if active == paused => self.turns.since_slice >= self.turns.slice,
            _ => self.turns.since_slice >= self.turns.slice / 10,
        }
    }
}
