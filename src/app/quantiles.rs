//! Exact quantiles of decision times, for the report of a replay.

use std::time::Duration;

use parking_lot::Mutex;

/// Collects durations, in nanoseconds. It grows with every decision of a replay.
#[derive(Default)]
pub struct Durations(Mutex<Vec<u64>>);

impl Durations {
    /// Adds a duration.
    pub fn add(&self, took: Duration) {
        self.0.lock().push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns the duration that the given share (0 to 1) of all durations do not exceed, or zero if there are none.
    pub fn quantile(&self, share: f64) -> Duration {
        let mut all = self.0.lock().clone();
        all.sort_unstable();
        let at = (share * all.len() as f64).ceil() as usize;
        Duration::from_nanos(all.get(at.saturating_sub(1)).copied().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_hundred() {
        let all = Durations::default();
        assert_eq!(all.quantile(0.5), Duration::ZERO);
        for n in (1..=100).rev() {
            all.add(Duration::from_nanos(n));
        }
        assert_eq!((all.quantile(0.5).as_nanos(), all.quantile(0.99).as_nanos()), (50, 99));
        assert_eq!(all.quantile(1.0).as_nanos(), 100);
    }
}
