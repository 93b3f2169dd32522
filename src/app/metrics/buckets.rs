//! Reads a family of histograms back, and estimates quantiles of what it gained between two readings.
//!
//! The library gives out the buckets of a histogram only as text, so this reads the text that a scraper gets.

use std::fmt::Debug;
use std::hash::Hash;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::metrics::Durations;

/// Observations by bucket: the upper bound and how many were not above it, of all label sets together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Buckets(Vec<(f64, u64)>);

impl Buckets {
    /// Reads a family.
    pub(super) fn of<L>(family: &Durations<L>) -> Self
    where
        L: EncodeLabelSet + Clone + Debug + Eq + Hash + Send + Sync + 'static,
    {
        let mut registry = Registry::default();
        registry.register("one", "", family.clone());
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &registry);
        Self::parsed(&text)
    }

    fn parsed(text: &str) -> Self {
        let mut all: Vec<(f64, u64)> = Vec::new();
        for (bound, n) in text.lines().filter_map(bucket) {
            match all.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += n,
                None => all.push((bound, n)),
            }
        }
        all.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        Self(all)
    }

    /// Returns a quantile of the observations since an earlier reading, or `None` when there are none. Within a bucket
    /// observations are taken as evenly spread; above the greatest bound that bound is the answer.
    pub fn quantile_since(&self, earlier: &Self, quantile: f64) -> Option<f64> {
        let before = |bound: f64| earlier.0.iter().find(|(known, _)| *known == bound).map_or(0, |(_, n)| *n);
        let gained: Vec<(f64, u64)> =
            self.0.iter().map(|(bound, n)| (*bound, n.saturating_sub(before(*bound)))).collect();
        let total = gained.last().map(|(_, n)| *n).filter(|n| *n > 0)?;
        let rank = quantile * total as f64;
        let (mut lower, mut below) = (0.0, 0);
        for (bound, n) in gained {
            if n as f64 >= rank && n > below {
                let share = (rank - below as f64) / (n - below) as f64;
                return Some(if bound.is_finite() { lower + (bound - lower) * share } else { lower });
            }
            (lower, below) = (bound, n);
        }
        Some(lower)
    }
}

/// Returns the upper bound and the count of a line `one_bucket{le="0.01",…} 3`.
fn bucket(line: &str) -> Option<(f64, u64)> {
    let (labels, count) = line.strip_prefix("one_bucket{")?.rsplit_once("} ")?;
    let bound = labels.split("le=\"").nth(1)?.split('"').next()?;
    let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
    Some((bound, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

    use super::*;
    use crate::metrics::Label;

    fn family() -> Durations<Label> {
        Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 4)))
    }

    #[test]
    fn all_label_sets_are_read_together() {
        let family = family();
        for (label, seconds) in [("a", 0.5), ("a", 1.5), ("b", 1.5), ("b", 100.0)] {
            family.get_or_create_owned(&[("kind", label)]).observe(seconds);
        }
        let read = Buckets::of(&family);
        assert_eq!(read.0, [(1.0, 1), (2.0, 3), (4.0, 3), (8.0, 3), (f64::INFINITY, 4)]);
    }

    #[test]
    fn a_quantile_is_of_what_came_since() {
        let family = family();
        let observe = |seconds: f64, n: usize| {
            (0..n).for_each(|_| family.get_or_create_owned(&[("kind", "a")]).observe(seconds));
            Buckets::of(&family)
        };
        let none = Buckets::of(&family);
        assert_eq!(none.quantile_since(&none, 0.99), None);
        let first = observe(0.5, 100);
        assert_eq!(first.quantile_since(&none, 0.99), Some(0.99));
        assert_eq!(first.quantile_since(&first, 0.99), None, "nothing came since");
        let second = observe(3.0, 10);
        assert_eq!(second.quantile_since(&first, 0.5), Some(3.0), "half of the bucket from 2 to 4");
        let third = observe(1e6, 1);
        assert_eq!(third.quantile_since(&second, 0.99), Some(8.0), "the greatest bound");
    }
}
