//! What the diagnosis costs in the scheduling thread, and the end of recordings that cost too much.
//!
//! Only the probe that the edge hands in tells time. Nothing in here changes a decision.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::Now;
use pellucid_model::time::Probe;
use pellucid_recording::switches::{Recording, Why};

use crate::scheduler::Scheduler;

/// Times plugins, at the attempts of the sample: looking at the clock twice for each plugin at every attempt would
/// cost more than all else that is always on. What is measured at one stands for those that are not.
pub(crate) struct Timer<'a> {
    probe: &'a dyn Probe,
    stands_for: u32,
}

impl<'a> Timer<'a> {
    /// The timer of an attempt that stands for so many; one that is off for none.
    pub(crate) fn new(probe: &'a dyn Probe, stands_for: u32) -> Self {
        Self { probe, stands_for }
    }
}

impl Probe for Timer<'_> {
    fn elapsed(&self) -> Duration {
        match self.stands_for {
            0 => Duration::ZERO,
            n => self.probe.elapsed() * n,
        }
    }
}

impl Scheduler {
    /// Does what is always done for the diagnosis, and measures it at the attempts of the sample.
    pub(crate) fn metered<T>(&mut self, probe: &dyn Probe, work: impl FnOnce(&mut Self) -> T) -> T {
        if !self.records.meter.times_verdict(self.cycle) || !self.switches.accounts() {
            return work(self);
        }
        // What looking at the clock takes is taken off.
        let (before, start) = (probe.elapsed(), probe.elapsed());
        let done = work(self);
        let took = probe.elapsed().saturating_sub(start);
        self.records.meter.add_sample(took.saturating_sub(start.saturating_sub(before)));
        done
    }

    /// Adds up what an attempt took: `took` in [`step`](Self::step), `logged` afterwards to write what was recorded
    /// of it. Returns the recording that was turned off because recording takes too large a share.
    pub fn note_cost(&mut self, took: Duration, logged: Duration, now: Now) -> Option<Arc<Recording>> {
        let second = now.monotonic.as_secs();
        let is_recording = self.switches.is_recording();
        self.records.meter.add_cycle(took + logged, is_recording, second);
        if !is_recording {
            return None;
        }
        if !logged.is_zero() {
            self.records.meter.add_log(logged, second);
        }
        let (flag, id) = self.records.meter.too_dear(self.switches.budget(), second)?;
        let recording = self.switches.find(flag, id)?;
        self.switches.end(&recording, Why::OverBudget, "scheduler", now.wall);
        Some(recording)
    }
}
