//! Merges the hints of all providers for one pod on one node into an affinity.
//!
//! One hint of each resource makes a combination. All that name NUMA nodes must name the same ones, because a hint says
//! what its own NUMA nodes together can give, not what a part of them can. Its score is the least of theirs, so where one
//! resource does not tell masks apart, the order of numbers does; it is preferred if all of its hints are and the topology allows the mask. The best combination is preferred, then has the
//! fewest NUMA nodes, then the greatest score, then the lowest numbers. This is the rule of the kubelet's topology manager
//! and of Koordinator's; where no masks agree, `best-effort` gives up and takes all NUMA nodes.
//!
//! Of the hints of a resource at most [`MOST`] count, the narrowest. No node with 8 NUMA nodes or fewer has more. On larger
//! ones what is left out may keep a strict policy from finding an affinity; it is always the same that is left out.

use std::cmp::Reverse;

use super::topology::{NumaAffinity, NumaMask, NumaPolicy, NumaTopology, ResourceHints};

/// The score of a mask for a resource that takes any: it leaves the score to the others.
const ANY_SCORE: i64 = i64::MAX;
/// Maximum number of hints of one resource with different masks.
pub const MOST: usize = 256;

/// The hints of one resource that count.
struct Choices {
    /// One per mask, with its score, the narrowest first.
    masks: Vec<(NumaMask, i64)>,
    /// Whether any mask is as good.
    takes_any: bool,
}

impl Choices {
    const ANY: Self = Self { masks: Vec::new(), takes_any: true };

    /// Returns the score of a mask, [`ANY_SCORE`] when any is as good, or `None` when the resource does not come from it.
    fn score(&self, mask: NumaMask) -> Option<i64> {
        if self.takes_any { Some(ANY_SCORE) } else { self.own_score(mask) }
    }

    /// Returns the score of a mask that the resource names.
    fn own_score(&self, mask: NumaMask) -> Option<i64> {
        let found = self.masks.binary_search_by_key(&key(mask), |(known, _)| key(*known));
        found.map(|at| self.masks[at].1).ok()
    }
}

/// Masks are sorted by this.
fn key(mask: NumaMask) -> (u32, NumaMask) {
    (mask.count(), mask)
}

/// Returns the affinity that the policy takes, or `None` if it takes none. A topology without NUMA nodes, or with
/// policy [`NumaPolicy::None`], has none.
pub fn merge(topology: &NumaTopology, resources: &[ResourceHints]) -> Option<NumaAffinity> {
    let policy = topology.policy;
    if policy == NumaPolicy::None || topology.nodes.is_empty() {
        return None;
    }
    let preferred: Vec<Choices> = resources.iter().map(|of| choices(topology, of, true)).collect();
    if let Some((mask, score)) = best(topology, &preferred, |mask| topology.allows(mask)) {
        return Some(NumaAffinity { policy, mask, preferred: true, score });
    }
    if policy != NumaPolicy::BestEffort {
        return None;
    }
    let all: Vec<Choices> = resources.iter().map(|of| choices(topology, of, false)).collect();
    let (mask, score) = best(topology, &all, |_| true).unwrap_or((topology.nodes, 0));
    Some(NumaAffinity { policy, mask, preferred: false, score })
}

/// Returns the hints of a resource that count, the preferred ones or all.
fn choices(topology: &NumaTopology, of: &ResourceHints, only_preferred: bool) -> Choices {
    let Some(hints) = &of.hints else { return Choices::ANY };
    let is_single = |mask: NumaMask| topology.policy != NumaPolicy::SingleNumaNode || mask.count() == 1;
    let mut made = Choices { masks: Vec::new(), takes_any: false };
    for hint in hints.iter().filter(|hint| hint.preferred || !only_preferred) {
        let Some(mask) = hint.mask else {
            made.takes_any = true;
            continue;
        };
        let mask = mask.and(topology.nodes);
        if !mask.is_empty() && is_single(mask) {
            made.masks.push((mask, hint.score.max(0)));
        }
    }
    made.masks.sort_unstable_by_key(|(mask, score)| (key(*mask), Reverse(*score)));
    made.masks.dedup_by_key(|(mask, _)| *mask);
    made.masks.truncate(MOST);
    made
}

/// Returns the best mask that all resources may come from, with its score.
fn best(
    topology: &NumaTopology,
    resources: &[Choices],
    allows: impl Fn(NumaMask) -> bool,
) -> Option<(NumaMask, i64)> {
    // Where every resource comes from anywhere, so do all together.
    let anywhere = resources.iter().all(|of| of.takes_any).then_some(topology.nodes);
    let named = resources.iter().flat_map(|of| of.masks.iter().map(|(mask, _)| *mask));
    let masks = named.chain(anywhere).filter(|mask| allows(*mask));
    let score = |mask: NumaMask| {
        let mut all = resources.iter();
        let least = all.try_fold(ANY_SCORE, |least, of| Some(least.min(of.score(mask)?)))?;
        if least < ANY_SCORE {
            return Some(least);
        }
        // Each takes any; one that names this mask beside that gives it its score.
        Some(resources.iter().filter_map(|of| of.own_score(mask)).max().unwrap_or(0))
    };
    let scored = masks.filter_map(|mask| Some((mask, score(mask)?)));
    scored.min_by_key(|(mask, score)| (mask.count(), Reverse(*score), *mask))
}

#[cfg(test)]
mod tests {
    use super::super::topology::TopologyHint;
    use super::*;

    fn two(policy: NumaPolicy) -> NumaTopology {
        NumaTopology { policy, nodes: NumaMask(0b11), ..NumaTopology::default() }
    }

    /// Makes the hints of a resource from masks, each with whether it is preferred and its score.
    fn hints(given: &[(u64, bool, i64)]) -> ResourceHints {
        let hint = |(mask, preferred, score)| TopologyHint { mask: Some(NumaMask(mask)), preferred, score };
        ResourceHints { resource: "cpu".into(), hints: Some(given.iter().copied().map(hint).collect()) }
    }

    fn any() -> ResourceHints {
        ResourceHints { resource: "memory".into(), hints: None }
    }

    /// Returns mask, preference and score of what is merged.
    fn merged(policy: NumaPolicy, resources: &[ResourceHints]) -> Option<(u64, bool, i64)> {
        merge(&two(policy), resources).map(|found| (found.mask.0, found.preferred, found.score))
    }

    #[test]
    fn without_hints_all_numa_nodes_are_taken() {
        for policy in [NumaPolicy::BestEffort, NumaPolicy::Restricted, NumaPolicy::SingleNumaNode] {
            assert_eq!(merged(policy, &[]), Some((0b11, true, 0)), "{policy:?}");
            assert_eq!(merged(policy, &[any()]), Some((0b11, true, 0)), "{policy:?}");
        }
    }

    #[test]
    fn without_a_policy_or_numa_nodes_nothing_is_merged() {
        assert_eq!(merged(NumaPolicy::None, &[any()]), None);
        let bare = NumaTopology { policy: NumaPolicy::BestEffort, ..NumaTopology::default() };
        assert_eq!(merge(&bare, &[any()]), None);
    }

    #[test]
    fn disjoint_masks_pass_best_effort_alone() {
        let apart = [hints(&[(0b01, true, 0)]), hints(&[(0b10, true, 0)])];
        assert_eq!(merged(NumaPolicy::BestEffort, &apart), Some((0b11, false, 0)));
        assert_eq!(merged(NumaPolicy::Restricted, &apart), None);
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &apart), None);
    }

    #[test]
    fn a_resource_without_an_aligned_way_passes_best_effort_alone() {
        let none = [hints(&[]), hints(&[(0b10, true, 4)])];
        assert_eq!(merged(NumaPolicy::BestEffort, &none), Some((0b11, false, 0)));
        assert_eq!(merged(NumaPolicy::Restricted, &none), None);
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &none), None);
    }

    #[test]
    fn a_preferred_wide_affinity_is_better_than_a_narrow_one_that_is_not() {
        let wide = [hints(&[(0b01, false, 9), (0b11, true, 1)])];
        assert_eq!(merged(NumaPolicy::BestEffort, &wide), Some((0b11, true, 1)));
        assert_eq!(merged(NumaPolicy::Restricted, &wide), Some((0b11, true, 1)));
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &wide), None);
    }

    #[test]
    fn a_part_of_a_wide_mask_does_not_agree_with_it() {
        let mixed = [hints(&[(0b11, true, 5)]), hints(&[(0b01, true, 2), (0b10, true, 3)])];
        assert_eq!(merged(NumaPolicy::Restricted, &mixed), None);
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &mixed), None);
        assert_eq!(merged(NumaPolicy::BestEffort, &mixed), Some((0b11, false, 0)));
        let agreed = [hints(&[(0b11, true, 5)]), hints(&[(0b01, true, 2), (0b11, true, 3)])];
        assert_eq!(merged(NumaPolicy::Restricted, &agreed), Some((0b11, true, 3)));
        let lax = [hints(&[(0b11, true, 5)]), hints(&[(0b01, true, 2), (0b11, false, 3)])];
        assert_eq!(merged(NumaPolicy::Restricted, &lax), None);
        assert_eq!(merged(NumaPolicy::BestEffort, &lax), Some((0b11, false, 3)));
    }

    #[test]
    fn a_mask_is_as_good_as_its_worst_resource_and_scores_decide_ties() {
        let of = |left, right| hints(&[(0b01, true, left), (0b10, true, right)]);
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &[of(5, 4), of(1, 3)]), Some((0b10, true, 3)));
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &[of(5, 5), of(1, 1)]), Some((0b01, true, 1)));
        assert_eq!(merged(NumaPolicy::Restricted, &[of(-8, -9)]), Some((0b01, true, 0)));
        let great = [of(i64::MAX, 0), of(i64::MAX, 0)];
        assert_eq!(merged(NumaPolicy::Restricted, &great), Some((0b01, true, i64::MAX)));
    }

    #[test]
    fn affinities_that_break_a_restriction_are_not_preferred() {
        let (left, both) = (hints(&[(0b01, true, 0)]), hints(&[(0b11, true, 0)]));
        let apart = NumaTopology { never_alone: NumaMask(0b01), ..two(NumaPolicy::Restricted) };
        assert_eq!(merge(&apart, std::slice::from_ref(&left)), None);
        assert!(merge(&apart, std::slice::from_ref(&both)).is_some());
        let alone = NumaTopology { only_alone: NumaMask(0b10), ..two(NumaPolicy::Restricted) };
        assert_eq!(merge(&alone, std::slice::from_ref(&both)), None);
        assert!(merge(&alone, std::slice::from_ref(&left)).is_some());
        let lax = NumaTopology { policy: NumaPolicy::BestEffort, ..alone };
        assert_eq!(merge(&lax, &[both]).map(|found| (found.mask.0, found.preferred)), Some((0b11, false)));
    }

    #[test]
    fn numa_nodes_that_are_not_there_are_ignored() {
        let beyond = [hints(&[(0b101, true, 2), (0b100, true, 3)])];
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &beyond), Some((0b01, true, 2)));
    }

    #[test]
    fn more_masks_than_count_still_merge_within_the_bound() {
        let nodes = NumaMask::first(64);
        let pairs = (0..64u64).flat_map(|a| (a + 1..64).map(move |b| ((1 << a) | (1 << b), true, 1)));
        let pairs: Vec<(u64, bool, i64)> = pairs.collect();
        let many = vec![hints(&pairs); 6];
        let topology = NumaTopology { policy: NumaPolicy::Restricted, nodes, ..NumaTopology::default() };
        let found = merge(&topology, &many).expect("all lists are the same");
        assert_eq!((found.mask.0, found.preferred, found.score), (0b11, true, 1));
        assert_eq!(merge(&topology, &many), Some(found));
    }
}
