//! Measures what diagnosis costs the scheduling thread, and ends recordings that cost too much.
//!
//! Time comes only from the caller's [`Probe`]. No decision depends on it.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::Now;
use pellucid_model::time::Probe;
use pellucid_recording::switches::{Recording, Why};

use crate::scheduler::Scheduler;

/// Times plugins at sampled attempts only: two clock reads per plugin at every attempt would cost more than all other
/// always-on diagnosis. Each sample weighs the number of attempts since the previous one.
pub(crate) struct Timer<'a> {
    probe: &'a dyn Probe,
    /// Multiplies the time; 0 disables the timer.
    stands_for: u32,
}

impl Probe for Timer<'_> {
    fn elapsed(&self) -> Duration {
        match self.stands_for {
            0 => Duration::ZERO,
            n => self.probe.elapsed() * n,
        }
    }

    #[inline]
    fn nanos(&self) -> u64 {
        if self.stands_for == 0 { 0 } else { self.elapsed().as_nanos() as u64 }
    }
}

impl Scheduler {
    /// Returns the timer of plugins for the current attempt.
    pub(crate) fn timer<'a>(&mut self, probe: &'a dyn Probe, now: Now) -> Timer<'a> {
        let stands_for = match self.switches.accounts() {
            true => self.records.meter.times_plugins(self.cycle, now.monotonic.as_secs()),
            false => 0,
        };
        Timer { probe, stands_for }
    }

    /// Runs the always-on part of the diagnosis, and measures it at sampled attempts.
    pub(crate) fn metered<T>(&mut self, probe: &dyn Probe, work: impl FnOnce(&mut Self) -> T) -> T {
        if !self.records.meter.times_verdict(self.cycle) || !self.switches.accounts() {
            return work(self);
        }
        // Subtracts the cost of reading the clock.
        let (before, start) = (probe.elapsed(), probe.elapsed());
        let done = work(self);
        let took = probe.elapsed().saturating_sub(start);
        self.records.meter.add_sample(took.saturating_sub(start.saturating_sub(before)));
        done
    }

    /// Adds up the time of an attempt: `took` in [`step`](Self::step), and `logged` for logging its recordings
    /// afterwards. Returns the recording that was ended because recording exceeded its budget.
    pub fn charge_cost(&mut self, took: Duration, logged: Duration, now: Now) -> Option<Arc<Recording>> {
        let second = now.monotonic.as_secs();
        let is_recording = self.switches.is_recording();
        if !logged.is_zero() {
            self.records.meter.add_log(logged, second);
        }
        self.records.meter.add_cycle(took + logged, is_recording, second);
        if !is_recording {
            return None;
        }
        let (flag, id) = self.records.meter.over_budget(self.switches.budget(), second)?;
        let recording = self.switches.find(flag, id)?;
        self.switches.end(&recording, Why::OverBudget, "scheduler", now.wall);
        Some(recording)
    }
}
