//! Arithmetic of a bench: quantiles, the spread of runs, when pods arrive. Pure.

use std::time::Duration;

/// Median and range of the runs, in the unit of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(super) struct Spread {
    /// Middle value; the mean of the two middle ones of an even number.
    pub median: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

/// Returns the spread of the values; zeros of none.
pub(super) fn spread(values: &[f64]) -> Spread {
    let mut all = values.to_vec();
    all.sort_by(f64::total_cmp);
    let (Some(&min), Some(&max)) = (all.first(), all.last()) else { return Spread::default() };
    let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    Spread { median: f64::midpoint(low, high), min, max }
}

/// Returns the value that the given share (0 to 1) of all values do not exceed; zero of none.
pub(super) fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

/// Returns when the pod of this number is due after the first, at `rate` pods per second.
pub(super) fn due(number: usize, rate: f64) -> Duration {
    Duration::try_from_secs_f64(number as f64 / rate).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_of_odd_even_and_no_runs() {
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(spread(&[4.0, 1.0, 2.0, 9.0]), Spread { median: 3.0, min: 1.0, max: 9.0 });
        assert_eq!(spread(&[]), Spread::default());
    }

    #[test]
    fn quantiles_and_arrivals() {
        let all: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&all, 0.5), Duration::from_millis(50));
        assert_eq!(quantile(&all, 0.99), Duration::from_millis(99));
        assert_eq!((quantile(&all, 1.0), quantile(&[], 0.5)), (Duration::from_millis(100), Duration::ZERO));
        assert_eq!((due(0, 50.0), due(100, 50.0)), (Duration::ZERO, Duration::from_secs(2)));
    }
}
