//! What the diagnosis costs, and when recording costs too much.
//!
//! Durations come from the edge; no decision reads them. Three levels: L0 is always on and measured at every
//! 251st attempt, so that the meter itself costs nothing. L1, what the flags record, is measured at every attempt
//! that records. L2, explanations made for a reader, is measured where the reader is served.
//!
//! Recording is too dear when it takes more than its budget of the time of attempts within the last ten
//! seconds. An idle scheduler has time for it: up to a hundredth of these seconds nothing is turned off.

use std::time::Duration;

/// One in so many attempts is measured for L0, and all of the first so many. A prime: what is done every so many
/// attempts, such as closing a chunk of the recorder every 128 entries, must not always fall on a sample.
pub const SAMPLED: u64 = 251;
/// The seconds over which shares are taken.
pub const WINDOW: usize = 10;
/// Recording that takes no more than this within the window is never too dear.
pub const FREE: Duration = Duration::from_millis(10 * WINDOW as u64);

/// Nanoseconds since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Attempts, the diagnosis in them and the log of it included.
    pub cycle: u64,
    /// What is always on: verdicts that were stored, times what one takes by the sample.
    pub l0: u64,
    /// What the flags record and log.
    pub l1: u64,
}

/// Time spent per second, of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Second and nanoseconds.
    slots: [(u64, u64); WINDOW],
}

impl Window {
    fn add(&mut self, second: u64, nanos: u64) {
        let slot = &mut self.slots[second as usize % WINDOW];
        if slot.0 != second {
            *slot = (second, 0);
        }
        slot.1 += nanos;
    }

    fn sum(&self, second: u64) -> u64 {
        let is_recent = |(at, _): &&(u64, u64)| at + WINDOW as u64 > second;
        self.slots.iter().filter(is_recent).map(|(_, nanos)| nanos).sum()
    }
}

/// What is told apart in the account of L1: the flag and the number of a recording.
pub type Spender = (&'static str, u64);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    cycle_nanos: u64,
    recording_nanos: u64,
    verdicts: u64,
    samples: u64,
    sampled_nanos: u64,
    /// The highest estimate that was given out.
    told: u64,
    cycle: Window,
    recording: Window,
    /// Who spent how much, since recording was last found too dear.
    spent: Vec<(Spender, Window)>,
}

impl Meter {
    /// Returns the sums. None of them ever falls: an estimate that a fast sample lowers stands still until it is true
    /// again, for a counter that falls reads as one that began anew.
    pub fn costs(&mut self) -> Costs {
        let l0 = u128::from(self.sampled_nanos) * u128::from(self.verdicts) / u128::from(self.samples.max(1));
        self.told = self.told.max(u64::try_from(l0).unwrap_or(u64::MAX));
        Costs { cycle: self.cycle_nanos, l0: self.told, l1: self.recording_nanos }
    }

    /// Whether the plugins of an attempt are timed.
    pub fn times_plugins(cycle: u64) -> bool {
        cycle < SAMPLED || cycle.is_multiple_of(SAMPLED)
    }

    /// Whether it is measured what storing the verdict of an attempt takes: not where plugins were timed right before,
    /// which leaves the processor's caches as they are at no other attempt.
    pub fn times_verdict(cycle: u64) -> bool {
        cycle < SAMPLED || cycle % SAMPLED == SAMPLED / 2
    }

    /// Counts a verdict that is stored.
    pub fn count_verdict(&mut self) {
        self.verdicts += 1;
    }

    /// Adds what storing the verdict of an attempt of the sample took.
    pub fn add_sample(&mut self, took: Duration) {
        self.samples += 1;
        self.sampled_nanos += nanos(took);
    }

    /// Adds what recording an attempt took, for each of those for whom it was done.
    pub fn add_l1(&mut self, took: Duration, spenders: impl IntoIterator<Item = Spender>, second: u64) {
        self.recording_nanos += nanos(took);
        self.recording.add(second, nanos(took));
        // Recordings that ended a while ago have spent nothing lately.
        self.spent.retain(|(_, window)| window.sum(second) > 0);
        for spender in spenders {
            let at = self.spent.iter().position(|(known, _)| *known == spender).unwrap_or_else(|| {
                self.spent.push((spender, Window::default()));
                self.spent.len() - 1
            });
            self.spent[at].1.add(second, nanos(took));
        }
    }

    /// Adds what it took to log what was recorded.
    pub fn add_log(&mut self, took: Duration, second: u64) {
        self.recording_nanos += nanos(took);
        self.recording.add(second, nanos(took));
    }

    /// Adds the time of an attempt. `is_recording`: it is needed for a share.
    pub fn add_cycle(&mut self, took: Duration, is_recording: bool, second: u64) {
        self.cycle_nanos += nanos(took);
        if is_recording {
            self.cycle.add(second, nanos(took));
        }
    }

    /// Returns who is to stop recording: whoever spent most, when all together are beyond the budget. The others
    /// are judged anew from then on.
    pub fn too_dear(&mut self, budget_percent: u32, second: u64) -> Option<Spender> {
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
        assert_eq!(meter.too_dear(13, 4), None, "125 ms of a second are 12.5 %");
        assert_eq!(meter.too_dear(10, 4), Some(("s", 1)));
        assert_eq!(meter.too_dear(10, 4), None, "the other one is judged anew");
        assert_eq!(meter.costs(), Costs { cycle: 1_000_000_000, l0: 0, l1: 125_000_000 });
    }

    #[test]
    fn what_is_long_ago_does_not_count() {
        let mut meter = Meter::default();
        meter.add_cycle(100 * MS, true, 1);
        meter.add_l1(101 * MS, [("s", 0)], 1);
        assert_eq!(meter.too_dear(10, 1 + WINDOW as u64), None);
        assert_eq!(meter.too_dear(100, 1), None, "no budget");
        assert_eq!(meter.too_dear(10, WINDOW as u64), Some(("s", 0)));
    }

    #[test]
    fn an_idle_scheduler_has_time_to_record() {
        let mut meter = Meter::default();
        meter.add_cycle(2 * MS, true, 1);
        meter.add_l1(2 * MS, [("s", 0)], 1);
        assert_eq!(meter.too_dear(10, 1), None);
    }

    #[test]
    fn an_estimate_never_falls() {
        let mut meter = Meter::default();
        (0..100).for_each(|_| meter.count_verdict());
        meter.add_sample(Duration::from_nanos(50));
        assert_eq!(meter.costs().l0, 5_000);
        meter.add_sample(Duration::from_nanos(10));
        assert_eq!(meter.costs().l0, 5_000, "3,000 by both");
        (0..100).for_each(|_| meter.count_verdict());
        assert_eq!(meter.costs().l0, 6_000);
    }

    #[test]
    fn l0_is_estimated_from_the_sample() {
        let mut meter = Meter::default();
        for cycle in 1..=1000 {
            meter.count_verdict();
            if cycle >= SAMPLED && Meter::times_verdict(cycle) {
                meter.add_sample(Duration::from_nanos(cycle));
            }
        }
        assert_eq!(meter.costs().l0, (376 + 627 + 878) * 1000 / 3);
        assert!(Meter::times_verdict(1) && Meter::times_plugins(1), "the first ones are all measured");
        let both = |cycle| Meter::times_verdict(cycle) && Meter::times_plugins(cycle);
        assert!(!(SAMPLED..10_000).any(both));
    }
}
