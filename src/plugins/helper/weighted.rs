//! Weighted means over the resources of nodes, page by page: what the strategies LeastAllocated and MostAllocated score.
//!
//! Not here: which resources count, and how much of each is requested; that is `scored`.

use pellucid_framework::View;
use pellucid_model::NodeIdx;
use pellucid_model::pages::PAGE;

use crate::scored::{Scored, by_page, for_each_of_two, percent};

/// Returns how much of a resource would be left, in percent (LeastAllocated).
#[inline]
pub fn least_allocated(requested: i64, allocatable: i64) -> i64 {
    percent(allocatable.saturating_sub(requested).max(0), allocatable)
}

/// Returns how much of a resource would be requested, in percent (MostAllocated).
#[inline]
pub fn most_allocated(requested: i64, allocatable: i64) -> i64 {
    percent(requested.min(allocatable), allocatable)
}

/// Returns the mean of a weighted sum, truncated.
#[inline]
pub fn truncated(sum: i64, weights: i64) -> i64 {
    sum / weights
}

/// Runs shorter than this are scored node by node, because clearing the sums of a page would cost more.
const SHORT: usize = 8;

/// Writes the weighted mean over the resources that a node offers. If `zeros` is false, only scores above 0 count. A
/// node that offers none of the resources gets 0.
pub fn weighted(
    view: View<'_>,
    scored: &[Scored],
    nodes: &[NodeIdx],
    out: &mut [i64],
    zeros: bool,
    score_of: impl Fn(i64, i64) -> i64,
    mean: impl Fn(i64, i64) -> i64,
) {
    if let [a, b] = scored
        && (zeros, a.weight, b.weight) == (true, 1, 1)
    {
        return mean_of_two(view, [a, b], nodes, out, score_of);
    }
    let finish = |sum: i64, weight: i64| if weight == 0 { 0 } else { mean(sum, weight) };
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

/// Writes the mean over two resources of weight 1, the default. A node that offers only one of them has the score of that one.
#[inline(never)]
fn mean_of_two(
    view: View<'_>,
    scored: [&Scored; 2],
    nodes: &[NodeIdx],
    out: &mut [i64],
    score_of: impl Fn(i64, i64) -> i64,
) {
    let score = |resource: &Scored, (allocatable, used): (i64, i64)| {
        score_of(used.saturating_add(resource.pod), allocatable)
    };
    for_each_of_two(view, scored, nodes, out, |of_a, of_b| match (of_a.0, of_b.0) {
        (0, 0) => 0,
        (0, _) => score(scored[1], of_b),
        (_, 0) => score(scored[0], of_a),
        _ => (score(scored[0], of_a) + score(scored[1], of_b)) >> 1,
    });
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
