//! The three strategies for scoring nodes by their resources.

use pellucid_framework::View;
use pellucid_framework::plugin::{ColumnScore, MAX_SCORE};
use pellucid_model::NodeIdx;

use pellucid_plugin_helper::scored::{Scored, percent};
use pellucid_plugin_helper::weighted::{self, left, percentages, taken, weighted};

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

    /// Returns the function that [`score`](Self::score) writes for each node, where it can be had.
    pub(super) fn by_columns(&self, scored: &[Scored]) -> Option<Box<dyn ColumnScore>> {
        match self {
            Self::LeastAllocated => weighted::by_columns(scored, left),
            Self::MostAllocated => weighted::by_columns(scored, taken),
            Self::RequestedToCapacityRatio(_) => None,
        }
    }

    /// Writes one score per node to `out`.
    pub(super) fn score(&self, view: View<'_>, scored: &[Scored], nodes: &[NodeIdx], out: &mut [i64]) {
        match self {
            Self::LeastAllocated => percentages(view, scored, nodes, out, left),
            Self::MostAllocated => percentages(view, scored, nodes, out, taken),
            Self::RequestedToCapacityRatio(shape) => {
                let by_shape = |req, alloc| on_curve(shape, utilization(req, alloc));
                weighted(view, scored, nodes, out, false, by_shape, rounded);
            }
        }
    }
}

fn utilization(requested: i64, allocatable: i64) -> i64 {
    if requested > allocatable { 100 } else { percent(requested, allocatable) }
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

#[cfg(test)]
mod tests {
    use super::*;

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
