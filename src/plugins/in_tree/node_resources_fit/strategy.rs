//! The three strategies for scoring nodes by their resources.

use pellucid_framework::View;
use pellucid_framework::plugin::MAX_SCORE;
use pellucid_model::NodeIdx;
use pellucid_model::pages::PAGE;

use pellucid_plugin_helper::scored::{Scored, by_page, percent};

/// A point of `requestedToCapacityRatio.shape`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShapePoint {
    /// Utilisation in percent, 0 to 100.
    pub(super) utilization: i64,
    /// Score, 0 to [`MAX_SHAPE_SCORE`].
    pub(super) score: i64,
}

/// The greatest score of a point of a shape.
pub(super) const MAX_SHAPE_SCORE: i64 = 10;

/// Scoring strategy (`scoringStrategy.type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Prefers nodes with more free resources.
    LeastAllocated,
    /// Prefers nodes with fewer free resources.
    MostAllocated,
    /// Scores by a piecewise linear curve over utilisation.
    RequestedToCapacityRatio(Vec<ShapePoint>),
}

impl Strategy {
    /// Returns the strategy's name in the configuration.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::LeastAllocated => "LeastAllocated",
            Self::MostAllocated => "MostAllocated",
            Self::RequestedToCapacityRatio(_) => "RequestedToCapacityRatio",
        }
    }

    /// Writes one score per node to `out`.
    pub(super) fn score(&self, view: View<'_>, scored: &[Scored], nodes: &[NodeIdx], out: &mut [i64]) {
        match self {
            Self::LeastAllocated => weighted(view, scored, nodes, out, true, least, truncated),
            Self::MostAllocated => weighted(view, scored, nodes, out, true, most, truncated),
            Self::RequestedToCapacityRatio(shape) => {
                let by_shape = |req, alloc| on_curve(shape, utilization(req, alloc));
                weighted(view, scored, nodes, out, false, by_shape, rounded);
            }
        }
    }
}

fn least(requested: i64, allocatable: i64) -> i64 {
    percent(allocatable.saturating_sub(requested).max(0), allocatable)
}

fn most(requested: i64, allocatable: i64) -> i64 {
    percent(requested.min(allocatable), allocatable)
}

fn utilization(requested: i64, allocatable: i64) -> i64 {
    if requested > allocatable { 100 } else { percent(requested, allocatable) }
}

/// Runs shorter than this are scored node by node, because clearing the sums of a page would cost more.
const SHORT: usize = 8;

fn truncated(sum: i64, weights: i64) -> i64 {
    sum / weights
}

fn rounded(sum: i64, weights: i64) -> i64 {
    (sum as f64 / weights as f64).round() as i64
}

/// Returns the value of the piecewise linear curve: flat before its first and after its last point.
fn on_curve(shape: &[ShapePoint], at: i64) -> i64 {
    let scale = MAX_SCORE / MAX_SHAPE_SCORE;
    let after = shape.partition_point(|p| p.utilization < at);
    match (after.checked_sub(1).and_then(|i| shape.get(i)), shape.get(after)) {
        (Some(left), Some(right)) => {
            let rise = (right.score - left.score) * scale;
            left.score * scale + rise * (at - left.utilization) / (right.utilization - left.utilization)
        }
        (None, Some(end)) | (Some(end), None) => end.score * scale,
        (None, None) => 0,
    }
}

/// Writes the weighted mean over the resources that a node offers. If `zeros` is false, only scores above 0 count. A
/// node that offers none of the resources gets 0.
fn weighted(
    view: View<'_>,
    scored: &[Scored],
    nodes: &[NodeIdx],
    out: &mut [i64],
    zeros: bool,
    score_of: impl Fn(i64, i64) -> i64,
    mean: impl Fn(i64, i64) -> i64,
) {
    let finish = |sum: i64, weight: i64| match weight {
        0 => 0,
        // The default is two resources of weight 1. A shift is cheaper than a division.
        2 if zeros => sum >> 1,
        weight => mean(sum, weight),
    };
    let by = (zeros, &score_of);
    for (page, run, scores) in by_page(view, nodes, out) {
        if run.len() < SHORT {
            for (node, score) in run.iter().zip(scores) {
                let at = node.index() % PAGE;
                let (mut sum, mut weight) = (0, 0);
                for resource in scored {
                    add(resource, resource.amounts(page), at, by, (&mut sum, &mut weight));
                }
                *score = finish(sum, weight);
            }
            continue;
        }
        let mut sums = [0; PAGE];
        let mut weights = [0; PAGE];
        for resource in scored {
            let amounts = resource.amounts(page);
            for ((node, sum), weight) in run.iter().zip(&mut sums).zip(&mut weights) {
                add(resource, amounts, node.index() % PAGE, by, (sum, weight));
            }
        }
        for ((score, sum), weight) in scores.iter_mut().zip(sums).zip(weights) {
            *score = finish(sum, weight);
        }
    }
}

/// Adds a resource's score to the sum of the node at a place of the page, unless the node does not offer it.
#[inline(always)]
fn add(
    resource: &Scored,
    (allocatable, used): (&[i64; PAGE], &[i64; PAGE]),
    at: usize,
    (zeros, score_of): (bool, &impl Fn(i64, i64) -> i64),
    (sum, weight): (&mut i64, &mut i64),
) {
    if allocatable[at] == 0 {
        return;
    }
    let score = score_of(used[at].saturating_add(resource.pod), allocatable[at]);
    if zeros || score > 0 {
        *sum += score * resource.weight;
        *weight += resource.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_agrees_with_integer_division() {
        let edge = (1i64 << 46) - 1;
        for whole in [1, 3, 7, 100, 4000, 8 << 30, edge, edge + 1, i64::MAX] {
            for part in [0, 1, whole / 3, whole / 2, whole / 100 * 29, whole - 1, whole] {
                let want = i128::from(part) * 100 / i128::from(whole);
                assert_eq!(i128::from(percent(part, whole)), want, "{part}/{whole}");
            }
        }
    }

    #[test]
    fn the_curve_is_flat_outside_and_truncates_inside() {
        let shape = [
            ShapePoint { utilization: 20, score: 0 },
            ShapePoint { utilization: 50, score: 10 },
            ShapePoint { utilization: 80, score: 3 },
        ];
        for (at, want) in [(0, 0), (20, 0), (21, 3), (35, 50), (50, 100), (60, 77), (80, 30), (100, 30)] {
            assert_eq!(on_curve(&shape, at), want, "{at}");
        }
    }
}
