//! Weighted means over the resources of nodes, page by page: what the strategies LeastAllocated and MostAllocated score.
//!
//! Not here: which resources count, and how much of each is requested; that is `scored`.

use pellucid_cluster::columns::ColumnPage;
use pellucid_framework::View;
use pellucid_framework::plugin::ColumnScore;
use pellucid_model::NodeIdx;
use pellucid_model::pages::PAGE;

use crate::scored::{Counting, EXACT, Scored, by_page, percent, percent_exact};
use crate::two::{AnyTwo, CpuAndMemory, TwoColumns};

/// Returns how much of a resource would be left.
#[inline]
pub fn left(requested: i64, allocatable: i64) -> i64 {
    allocatable.wrapping_sub(requested).max(0)
}

/// Returns how much of a resource would be requested, at most all of it.
#[inline]
pub fn taken(requested: i64, allocatable: i64) -> i64 {
    requested.min(allocatable)
}

/// Returns how much of a resource would be left, in percent (LeastAllocated).
#[inline]
pub fn least_allocated(requested: i64, allocatable: i64) -> i64 {
    percent(left(requested, allocatable), allocatable)
}

/// Returns how much of a resource would be requested, in percent (MostAllocated).
#[inline]
pub fn most_allocated(requested: i64, allocatable: i64) -> i64 {
    percent(taken(requested, allocatable), allocatable)
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
    score_of: impl Fn(i64, i64) -> i64 + Sync,
    mean: impl Fn(i64, i64) -> i64,
) {
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

/// Does so with the percentage that a part of a resource is of it, zeros too, and truncated means. The part is [`left`] or
/// [`taken`].
pub fn percentages(
    view: View<'_>,
    scored: &[Scored],
    nodes: &[NodeIdx],
    out: &mut [i64],
    part_of: impl Fn(i64, i64) -> i64 + Send + Sync,
) {
    match MeanOfTwo::of(scored, &part_of) {
        Some(mean) => score_all(&mean, view, nodes, out),
        None => {
            let score_of = |requested, all| percent(part_of(requested, all), all);
            weighted(view, scored, nodes, out, true, score_of, truncated);
        }
    }
}

/// Returns the function that [`percentages`] writes for each node, where it can be had: for two resources of weight 1, the
/// default.
pub fn by_columns(
    scored: &[Scored],
    part_of: impl Fn(i64, i64) -> i64 + Send + Sync + 'static,
) -> Option<Box<dyn ColumnScore>> {
    let MeanOfTwo { two, pods, part_of } = MeanOfTwo::of(scored, part_of)?;
    Some(match two.of_cpu_and_memory() {
        Some(Counting::WithDefaults) => Box::new(MeanOfTwo { two: CpuAndMemory::<true>, pods, part_of }),
        Some(Counting::Real) => Box::new(MeanOfTwo { two: CpuAndMemory::<false>, pods, part_of }),
        None => Box::new(MeanOfTwo { two, pods, part_of }),
    })
}

/// Writes what a function of columns gives for each node.
pub fn score_all(of: &impl ColumnScore, view: View<'_>, nodes: &[NodeIdx], out: &mut [i64]) {
    for (node, score) in nodes.iter().zip(out) {
        *score = of.score(view.columns().page(*node), node.index() % PAGE);
    }
}

/// The mean percentage over two resources of weight 1. A node that offers only one of them has that of this one.
struct MeanOfTwo<T, F> {
    two: T,
    /// What the pod requests of each.
    pods: [i64; 2],
    part_of: F,
}

impl<F: Fn(i64, i64) -> i64> MeanOfTwo<AnyTwo, F> {
    fn of(scored: &[Scored], part_of: F) -> Option<Self> {
        let [a, b] = scored else { return None };
        let pods = [a.pod, b.pod];
        ([a.weight, b.weight] == [1, 1]).then_some(Self { two: AnyTwo([*a, *b]), pods, part_of })
    }
}

impl<T, F: Fn(i64, i64) -> i64> MeanOfTwo<T, F> {
    /// Returns the part of the resource at this place with the pod, given the allocatable and the requested amount.
    #[inline(always)]
    fn part(&self, at: usize, (allocatable, used): (i64, i64)) -> i64 {
        // Exact, because amounts in columns have a bound.
        (self.part_of)(used.wrapping_add(self.pods[at]), allocatable)
    }

    /// Returns the mean for a node that does not offer both, or very much of one.
    #[cold]
    #[inline(never)]
    fn rare(&self, of_a: (i64, i64), of_b: (i64, i64)) -> i64 {
        let score = |at: usize, of: (i64, i64)| percent(self.part(at, of), of.0);
        match (of_a.0, of_b.0) {
            (0, 0) => 0,
            (0, _) => score(1, of_b),
            (_, 0) => score(0, of_a),
            _ => (score(0, of_a) + score(1, of_b)) >> 1,
        }
    }
}

impl<T: TwoColumns, F: Fn(i64, i64) -> i64 + Send + Sync> ColumnScore for MeanOfTwo<T, F> {
    fn score(&self, page: &ColumnPage, at: usize) -> i64 {
        let [of_a, of_b] = self.two.amounts(page, at);
        if of_a.0 == 0 || of_b.0 == 0 || (of_a.0 | of_b.0) >= EXACT {
            return self.rare(of_a, of_b);
        }
        let score = |at: usize, of: (i64, i64)| percent_exact(self.part(at, of), of.0);
        (score(0, of_a) + score(1, of_b)) >> 1
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
    use pellucid_cluster::columns::MOST;

    use super::*;

    /// The amounts of one node.
    #[derive(Clone, Copy)]
    struct Known([(i64, i64); 2]);

    impl TwoColumns for Known {
        fn amounts(&self, _page: &ColumnPage, _at: usize) -> [(i64, i64); 2] {
            self.0
        }
    }

    /// Returns the mean over the resources that there are, without rounding in between.
    fn want(all: [(i64, i64); 2], pods: [i64; 2], part_of: impl Fn(i128, i128) -> i128) -> i64 {
        let there = all.iter().zip(pods).filter(|((allocatable, _), _)| *allocatable > 0);
        let percentages: Vec<i128> = there
            .map(|((allocatable, used), pod)| {
                let (allocatable, requested) =
                    (i128::from(*allocatable), i128::from(*used) + i128::from(pod));
                part_of(requested, allocatable) * 100 / allocatable
            })
            .collect();
        (percentages.iter().sum::<i128>() / (percentages.len().max(1) as i128)) as i64
    }

    #[test]
    fn a_mean_of_two_is_that_of_both_percentages_however_large() {
        let totals = [0, 1, 3, 100, 4000, 8 << 30, EXACT - 1, EXACT, MOST];
        let of = |total: i64| [0, total / 3, total - total / 100, total].map(|used| (total, used));
        let pages = ColumnPage::default();
        let nodes = || totals.into_iter().flat_map(of);
        for (a, b) in nodes().flat_map(|a| nodes().map(move |b| (a, b))) {
            for pods in [[0, 0], [1, 250 << 20], [100, 0], [MOST, 7]] {
                let two = Known([a, b]);
                let least = MeanOfTwo { two, pods, part_of: left }.score(&pages, 0);
                let most = MeanOfTwo { two, pods, part_of: taken }.score(&pages, 0);
                let by_left = |requested: i128, all: i128| (all - requested).max(0);
                assert_eq!(least, want([a, b], pods, by_left), "{a:?} {b:?} {pods:?}");
                assert_eq!(
                    most,
                    want([a, b], pods, |requested, all| requested.min(all)),
                    "{a:?} {b:?} {pods:?}"
                );
            }
        }
    }
}
