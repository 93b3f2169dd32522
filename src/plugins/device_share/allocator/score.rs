//! Scores of cards and of nodes: how much would be used, or left, with the pod.
//!
//! A resource that the pod does not name counts with what is used of it already, as in Koordinator.

use pellucid_plugin_helper::scored::{percent, quotient};

use super::super::amounts::{Amounts, Resource};

/// Which cards and nodes are preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Strategy {
    /// Those of which the least is used.
    #[default]
    LeastAllocated,
    /// Those of which the most is used.
    MostAllocated,
}

impl Strategy {
    /// Returns the mean over two totals, each with what would be taken of it, both of weight 1. They are whole numbers; totals are
    /// above 0, nothing is below 0, and all is below [`EXACT`](pellucid_plugin_helper::scored::EXACT).
    #[inline(always)]
    pub(in super::super) fn mean_of_two(self, a: (f64, f64), b: (f64, f64)) -> i64 {
        // What is below 0 is 0 as a `u32`.
        let left = |(all, taken): (f64, f64)| quotient(all - taken, all);
        let taken = |(all, taken): (f64, f64)| quotient(if taken > all { 0.0 } else { taken }, all);
        // A shift is cheaper than a division.
        match self {
            Self::LeastAllocated => (left(a) + left(b)) >> 1,
            Self::MostAllocated => (taken(a) + taken(b)) >> 1,
        }
    }
}

/// How cards and nodes are scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Scoring {
    pub(in super::super) strategy: Strategy,
    /// By resource; 0 for one that does not count.
    pub(in super::super) weights: Vec<(Resource, i64)>,
}

impl Scoring {
    /// Scores from 0 to 100 what has these totals, with a request on top of what is used: the weighted mean over the
    /// resources that it has.
    pub(in super::super) fn score(&self, request: &Amounts, total: &Amounts, used: &Amounts) -> i64 {
        let weights = self.weights.iter().copied();
        self.mean(weights.map(|(resource, weight)| {
            let taken = used.get(resource).saturating_add(request.get(resource));
            (weight, total.get(resource), taken)
        }))
    }

    /// Returns the weighted mean over what there are weights, totals, and amounts that would be taken of.
    #[inline]
    pub(in super::super) fn mean(&self, all: impl Iterator<Item = (i64, i64, i64)>) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for (weight, all, taken) in all {
            if all <= 0 {
                continue;
            }
            weights += weight;
            if taken <= all {
                let part = match self.strategy {
                    Strategy::LeastAllocated => all - taken,
                    Strategy::MostAllocated => taken,
                };
                sum += weight * percent(part, all);
            }
        }
        if weights == 0 { 0 } else { sum / weights }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::amounts::{CORE, MEMORY, RATIO};
    use super::*;

    #[test]
    fn what_is_not_requested_counts_with_what_is_used() {
        let of = |strategy| Scoring { strategy, weights: vec![(RATIO, 1), (MEMORY, 1)] };
        let total = Amounts::of([(CORE, 100), (MEMORY, 80), (RATIO, 100)]);
        let used = Amounts::of([(MEMORY, 16), (RATIO, 20)]);
        let request = Amounts::of([(RATIO, 50)]);
        // 30 % of the ratio and 80 % of the memory are left; 70 % and 20 % are taken.
        assert_eq!(of(Strategy::LeastAllocated).score(&request, &total, &used), 55);
        assert_eq!(of(Strategy::MostAllocated).score(&request, &total, &used), 45);
        assert_eq!(of(Strategy::MostAllocated).score(&Amounts::of([(RATIO, 90)]), &total, &used), 10);
        assert_eq!(of(Strategy::MostAllocated).score(&request, &Amounts::default(), &used), 0);
        let huge = Amounts::of([(MEMORY, i64::MAX)]);
        assert_eq!(of(Strategy::LeastAllocated).score(&Amounts::default(), &huge, &Amounts::default()), 100);
    }
}
