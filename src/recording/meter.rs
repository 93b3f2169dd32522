//! Measures what the diagnosis costs, and decides when recording costs too much.
//!
//! Durations come from the I/O rooms; no decision reads them. There are three levels. L0 is always on and is measured
//! at every 1021st attempt, so that the meter itself costs nothing. L1, what the flags record, is measured at every
//! attempt that records. L2, explanations made for a reader, is measured where the reader is served.
//!
//! Recording costs too much when, within the last ten seconds, it took more than its budget, a share of the time of
//! attempts. Below a hundredth of these ten seconds nothing is turned off, because an idle scheduler has time to
//! record.

use std::time::Duration;

/// One attempt in this many is measured for L0. A prime, so that work done at regular intervals, such as closing a
/// chunk of the recorder every 128 entries, does not always coincide with a sample.
const SAMPLED: u64 = 1021;
/// The number of attempts at the start that are all measured.
const FIRST: u64 = 251;
/// Seconds over which shares are computed.
pub const WINDOW: usize = 10;
/// Time that recording may take within the window whatever the budget is.
pub const FREE: Duration = Duration::from_millis(10 * WINDOW as u64);

/// Time spent since the start, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// All attempts, including the diagnosis and its logging.
    pub cycle: u64,
    /// Storing verdicts, which is always on. Extrapolated: each sample counts for all verdicts since the previous one.
    pub l0: u64,
    /// Recording and logging what the flags ask for.
    pub l1: u64,
    /// Attempts of the last seconds during which something was recorded, and what recording took of them.
    recent: (Window, Window),
}

impl Costs {
    /// Returns the time of attempts within the window that ends in this second, counted while something was recorded,
    /// and what recording took of it, in nanoseconds. The budget is a share of the first.
    pub fn recent(&self, second: u64) -> (u64, u64) {
        (self.recent.0.sum(second), self.recent.1.sum(second))
    }
}

/// Time spent in each of the last [`WINDOW`] seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Second, and nanoseconds spent in it.
    slots: [(u64, u64); WINDOW],
}

impl Window {
    #[inline]
    fn add(&mut self, second: u64, nanos: u64) {
        let slot = &mut self.slots[second as usize % WINDOW];
        if slot.0 != second {
            *slot = (second, 0);
        }
        slot.1 += nanos;
    }

    #[inline]
    fn sum(&self, second: u64) -> u64 {
        let is_recent = |(at, _): &&(u64, u64)| at + WINDOW as u64 > second;
        self.slots.iter().filter(is_recent).map(|(_, nanos)| nanos).sum()
    }
}

/// Who spends L1 time: a flag and the number of a recording.
pub type Spender = (&'static str, u64);

/// Sums up the costs. Owned by the scheduling thread.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    cycle_nanos: u64,
    recording_nanos: u64,
    /// The last attempt whose plugins were timed: its number, its second, and how many attempts it stands for.
    timed: (u64, u64, u32),
    l0_nanos: u64,
    /// Number of verdicts stored since the last sample.
    unmeasured: u64,
    cycle: Window,
    recording: Window,
    /// Whether the present attempt recorded something. A recording that it used up is not active any more.
    has_recorded: bool,
    /// Time of each spender, since recording last cost too much.
    spent: Vec<(Spender, Window)>,
}

impl Meter {
    /// Returns the time spent since the start.
    #[inline]
    pub fn costs(&self) -> Costs {
        let recent = (self.cycle, self.recording);
        Costs { cycle: self.cycle_nanos, l0: self.l0_nanos, l1: self.recording_nanos, recent }
    }

    /// Returns how many attempts the timed plugins of this attempt stand for, itself included, or 0 when they are not
    /// timed. They are timed at one attempt in `SAMPLED` and at the first attempt of each second.
    pub fn times_plugins(&mut self, cycle: u64, second: u64) -> u32 {
        let (before, then, stands_for) = self.timed;
        if cycle == before {
            return stands_for;
        }
        let since = cycle.saturating_sub(before);
        if cycle >= FIRST && since < SAMPLED && second == then {
            return 0;
        }
        self.timed = (cycle, second, since.min(SAMPLED) as u32);
        self.timed.2
    }

    /// Returns whether storing this attempt's verdict is measured. An attempt whose plugins were timed is not measured,
    /// because timing leaves the processor's caches in a state that no other attempt has.
    #[inline]
    pub fn times_verdict(&self, cycle: u64) -> bool {
        cycle < FIRST || cycle % SAMPLED == SAMPLED / 2 && self.timed.0 != cycle
    }

    /// Counts a stored verdict.
    #[inline]
    pub fn count_verdict(&mut self) {
        self.unmeasured += 1;
    }

    /// Adds the time that storing a sampled verdict took. It counts for all verdicts since the previous sample.
    #[inline]
    pub fn add_sample(&mut self, took: Duration) {
        self.l0_nanos += nanos(took).saturating_mul(std::mem::take(&mut self.unmeasured));
    }

    /// Adds the time that recording an attempt took, to each spender that it was recorded for.
    pub fn add_l1(&mut self, took: Duration, spenders: impl IntoIterator<Item = Spender>, second: u64) {
        self.add_log(took, second);
        // Recordings that ended a while ago have no recent costs.
        self.spent.retain(|(_, window)| window.sum(second) > 0);
        for spender in spenders {
            let at = self.spent.iter().position(|(known, _)| *known == spender).unwrap_or_else(|| {
                self.spent.push((spender, Window::default()));
                self.spent.len() - 1
            });
            self.spent[at].1.add(second, nanos(took));
        }
    }

    /// Adds the time that logging the recorded data took.
    #[inline]
    pub fn add_log(&mut self, took: Duration, second: u64) {
        self.has_recorded = true;
        self.recording_nanos += nanos(took);
        self.recording.add(second, nanos(took));
    }

    /// Adds the time of an attempt, what recording took of it included. `is_recording` says whether the budget needs it;
    /// an attempt that recorded something counts in any case.
    #[inline]
    pub fn add_cycle(&mut self, took: Duration, is_recording: bool, second: u64) {
        self.cycle_nanos += nanos(took);
        if std::mem::take(&mut self.has_recorded) || is_recording {
            self.cycle.add(second, nanos(took));
        }
    }

    /// When all spenders together exceed the budget, returns the one that spent the most, which must stop recording,
    /// and resets the costs of the others.
    pub fn over_budget(&mut self, budget_percent: u32, second: u64) -> Option<Spender> {
        let spent = self.recording.sum(second);
        if budget_percent >= 100 || spent <= nanos(FREE) {
            return None;
        }
        let allowed = u128::from(self.cycle.sum(second)) * u128::from(budget_percent) / 100;
        if u128::from(spent) <= allowed {
            return None;
        }
        let by_cost =
            |(spender, window): &(Spender, Window)| (window.sum(second), std::cmp::Reverse(*spender));
        let most = self.spent.iter().max_by_key(|s| by_cost(s)).map(|(spender, _)| *spender);
        self.recording = Window::default();
        self.spent.clear();
        most
    }
}

fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_spends_most_stops_when_all_are_beyond_the_budget() {
        let mut meter = Meter::default();
        for second in 0..5 {
            meter.add_cycle(200 * MS, true, second);
            meter.add_l1(15 * MS, [("s", 1)], second);
            meter.add_l1(10 * MS, [("f", 2)], second);
        }
        assert_eq!(meter.over_budget(13, 4), None, "125 ms of a second are 12.5 %");
        assert_eq!(meter.over_budget(10, 4), Some(("s", 1)));
        assert_eq!(meter.over_budget(10, 4), None, "the other one is judged anew");
        let costs = meter.costs();
        assert_eq!((costs.cycle, costs.l0, costs.l1), (1_000_000_000, 0, 125_000_000));
    }

    #[test]
    fn what_is_long_ago_does_not_count() {
        let mut meter = Meter::default();
        meter.add_cycle(100 * MS, true, 1);
        meter.add_l1(101 * MS, [("s", 0)], 1);
        assert_eq!(meter.over_budget(10, 1 + WINDOW as u64), None);
        assert_eq!(meter.over_budget(100, 1), None, "no budget");
        assert_eq!(meter.over_budget(10, WINDOW as u64), Some(("s", 0)));
    }

    #[test]
    fn an_attempt_that_used_its_recording_up_counts_like_the_others() {
        let mut meter = Meter::default();
        meter.add_l1(6 * MS, [("s", 1)], 3);
        meter.add_cycle(9 * MS, false, 3);
        meter.add_cycle(50 * MS, false, 3);
        assert_eq!(meter.costs().recent(3), (9_000_000, 6_000_000), "6 of 9 ms, not of nothing");
        assert_eq!(meter.costs().recent(3 + WINDOW as u64), (0, 0));
    }

    #[test]
    fn an_idle_scheduler_has_time_to_record() {
        let mut meter = Meter::default();
        meter.add_cycle(2 * MS, true, 1);
        meter.add_l1(2 * MS, [("s", 0)], 1);
        assert_eq!(meter.over_budget(10, 1), None);
    }

    #[test]
    fn a_measured_verdict_stands_for_those_since_the_one_before() {
        let mut meter = Meter::default();
        for cycle in 1..=3000 {
            meter.count_verdict();
            if meter.times_verdict(cycle) {
                meter.add_sample(Duration::from_nanos(cycle));
            }
        }
        // Each of the first attempts stands for itself; verdicts after the last sample are not counted yet.
        let first: u64 = (1..FIRST).sum();
        assert_eq!(meter.costs().l0, first + 510 * (510 - 250) + 1531 * 1021 + 2552 * 1021);
    }

    #[test]
    fn timed_attempts_stand_for_all_and_no_verdict_is_measured_at_one() {
        let (mut meter, mut all) = (Meter::default(), 0);
        for cycle in 1..=10_000 {
            // A thousand attempts in each of the first seconds, then all in one second.
            let second = (cycle / 1000).min(5);
            let timed = meter.times_plugins(cycle, second);
            let again = meter.times_plugins(cycle, second);
            assert_eq!(again, timed, "members of a gang are tried in one attempt");
            assert!(cycle >= FIRST || timed == 1 && meter.times_verdict(cycle));
            assert!(cycle < FIRST || timed == 0 || !meter.times_verdict(cycle));
            all += u64::from(timed);
        }
        assert!((10_000 - SAMPLED..=10_000).contains(&all), "{all}");
    }
}
