//! Merges the hints of all providers for one pod on one node into an affinity.
//!
//! One hint of each resource makes a combination. All that name NUMA nodes must name the same ones, because a hint says
//! what its own NUMA nodes together can give, not what a part of them can. Its score is the sum of theirs, so a resource
//! that tells masks apart more than others has more to say; it is preferred if all of its hints are and the topology
//! allows the mask. The best combination is preferred, then has the fewest NUMA nodes; of equally many, [`Best`] says which.
//! This is the rule of Koordinator's topology manager; where no masks agree, `best-effort` gives up and takes all NUMA nodes.
//!
//! A hint may name NUMA nodes that the topology does not have. They count when masks are compared and are left out of the
//! affinity, whose score such a hint adds nothing to.
//!
//! Of the hints of a resource at most [`MOST`] count, the narrowest. No node with 8 NUMA nodes or fewer has more. On larger
//! ones what is left out may keep a strict policy from finding an affinity; it is always the same that is left out.

use std::cmp::Reverse;

use super::topology::{NumaAffinity, NumaMask, NumaPolicy, NumaTopology, ResourceHints};

/// Maximum number of hints of one resource with different masks.
pub const MOST: usize = 256;

/// The hints of one resource that count.
struct Choices {
    /// One per mask, with its score, in the order in which they are tried.
    masks: Vec<(NumaMask, i64)>,
    /// Whether any mask is as good.
    takes_any: bool,
}

impl Choices {
    const ANY: Self = Self { masks: Vec::new(), takes_any: true };

    /// Returns the score of a mask, 0 when any is as good, or `None` when the resource does not come from it.
    fn score(&self, mask: NumaMask) -> Option<i64> {
        let found = self.masks.binary_search_by_key(&turn(mask), |(known, _)| turn(*known));
        found.map(|at| self.masks[at].1).ok().or(self.takes_any.then_some(0))
    }
}

/// Returns the turn of a mask: narrow ones first, and of equal width those with the lowest first number, then second number,
/// and so on.
fn turn(mask: NumaMask) -> (u32, Reverse<u64>) {
    (mask.count(), Reverse(mask.0.reverse_bits()))
}

/// The best of the masks that were tried. One that is narrower, or as wide and a lower number in binary, takes the place of
/// another whatever their scores; else a greater score does. So of three masks the first can lose to the second by number, and
/// the second to the third by score. That is Koordinator's rule, which only with four NUMA nodes or more differs from
/// "the greatest score, then the lowest number".
#[derive(Clone, Copy)]
struct Best {
    mask: NumaMask,
    score: i64,
    /// Whether the hints name no NUMA nodes beyond the mask.
    is_whole: bool,
}

impl Best {
    fn yields_to(&self, other: &Self) -> bool {
        let width = |best: &Self| best.mask.count();
        let is_narrower = (width(other), other.mask) < (width(self), self.mask);
        is_narrower || width(other) == width(self) && other.score > self.score
    }
}

/// Returns the affinity that the policy takes, or `None` if it takes none. A topology without NUMA nodes, or with
/// policy [`NumaPolicy::None`], has none.
pub fn merge(topology: &NumaTopology, resources: &[ResourceHints]) -> Option<NumaAffinity> {
    let policy = topology.policy;
    if policy == NumaPolicy::None || topology.nodes.is_empty() {
        return None;
    }
    let is_lax = policy == NumaPolicy::BestEffort;
    let everything = NumaAffinity { policy, mask: topology.nodes, preferred: false, score: 0 };
    let preferred: Vec<Choices> = resources.iter().map(|of| choices(topology, of, true)).collect();
    match best(topology, &preferred, |mask| topology.allows(mask)) {
        // What is preferred on NUMA nodes that are not there is given up with them.
        Some(found) if is_lax && !found.is_whole => return Some(everything),
        Some(Best { mask, score, .. }) => return Some(NumaAffinity { policy, mask, preferred: true, score }),
        None if !is_lax => return None,
        None => {}
    }
    let all: Vec<Choices> = resources.iter().map(|of| choices(topology, of, false)).collect();
    let found = best(topology, &all, |_| true).filter(|found| found.is_whole);
    Some(found.map_or(everything, |Best { mask, score, .. }| NumaAffinity { mask, score, ..everything }))
}

/// Returns the hints of a resource that count, the preferred ones or all.
fn choices(topology: &NumaTopology, of: &ResourceHints, only_preferred: bool) -> Choices {
    let Some(hints) = &of.hints else { return Choices::ANY };
    let is_single = |mask: NumaMask| topology.policy != NumaPolicy::SingleNumaNode || mask.count() == 1;
    let mut made = Choices { masks: Vec::new(), takes_any: false };
    for hint in hints.iter().filter(|hint| hint.preferred || !only_preferred) {
        match hint.mask {
            None => made.takes_any = true,
            Some(mask) if is_single(mask) => made.masks.push((mask, hint.score.max(0))),
            Some(_) => {}
        }
    }
    made.masks.sort_unstable_by_key(|(mask, score)| (turn(*mask), Reverse(*score)));
    made.masks.dedup_by_key(|(mask, _)| *mask);
    made.masks.truncate(MOST);
    made
}

/// Returns the best mask that all resources may come from.
fn best(topology: &NumaTopology, resources: &[Choices], allows: impl Fn(NumaMask) -> bool) -> Option<Best> {
    // Where every resource comes from anywhere, so do all together.
    let anywhere = resources.iter().all(|of| of.takes_any).then_some(topology.nodes);
    let named = resources.iter().flat_map(|of| of.masks.iter().map(|(mask, _)| *mask));
    let mut masks: Vec<NumaMask> = named.chain(anywhere).collect();
    masks.sort_unstable_by_key(|mask| turn(*mask));
    masks.dedup();
    let tried = masks.into_iter().filter_map(|named| {
        let mask = named.and(topology.nodes);
        let is_whole = mask == named;
        let sum = |sum: i64, of: &Choices| Some(sum.saturating_add(of.score(named)?));
        let score = resources.iter().try_fold(0, sum)?;
        (!mask.is_empty() && allows(mask)).then_some(Best {
            mask,
            score: if is_whole { score } else { 0 },
            is_whole,
        })
    });
    tried.reduce(|best, other| if best.yields_to(&other) { other } else { best })
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
        assert_eq!(merged(NumaPolicy::Restricted, &agreed), Some((0b11, true, 8)));
        let lax = [hints(&[(0b11, true, 5)]), hints(&[(0b01, true, 2), (0b11, false, 3)])];
        assert_eq!(merged(NumaPolicy::Restricted, &lax), None);
        assert_eq!(merged(NumaPolicy::BestEffort, &lax), Some((0b11, false, 8)));
    }

    #[test]
    fn scores_of_resources_add_up_and_decide_ties() {
        let of = |left, right| hints(&[(0b01, true, left), (0b10, true, right)]);
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &[of(5, 4), of(1, 3)]), Some((0b10, true, 7)));
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &[of(5, 5), of(1, 1)]), Some((0b01, true, 6)));
        // Cards that do not tell the NUMA nodes apart leave the choice to CPU and memory.
        assert_eq!(merged(NumaPolicy::Restricted, &[of(500, 500), of(12, 80)]), Some((0b10, true, 580)));
        assert_eq!(merged(NumaPolicy::Restricted, &[of(500, 0), of(12, 80)]), Some((0b01, true, 512)));
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
    fn of_equally_many_numa_nodes_a_lower_number_wins_before_a_greater_score() {
        let four = NumaTopology { nodes: NumaMask(0b1111), ..two(NumaPolicy::Restricted) };
        let merged =
            |given: &[(u64, bool, i64)]| merge(&four, &[hints(given)]).map(|of| (of.mask.0, of.score));
        // NUMA nodes 0 and 3 are tried before 1 and 2, which are the lower number.
        assert_eq!(merged(&[(0b1001, true, 9), (0b0110, true, 1)]), Some((0b0110, 1)));
        assert_eq!(merged(&[(0b1001, true, 9), (0b0110, true, 1), (0b1100, true, 4)]), Some((0b1100, 4)));
        assert_eq!(merged(&[(0b0011, true, 1), (0b1001, true, 9), (0b1100, true, 4)]), Some((0b1001, 9)));
    }

    #[test]
    fn numa_nodes_that_are_not_there_count_when_hints_are_compared() {
        let (beyond, within) = (hints(&[(0b101, true, 2)]), hints(&[(0b01, true, 7)]));
        assert_eq!(merged(NumaPolicy::Restricted, &[beyond.clone(), within]), None);
        let alone = [beyond];
        assert_eq!(merged(NumaPolicy::Restricted, &alone), Some((0b01, true, 0)));
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &alone), None);
        assert_eq!(merged(NumaPolicy::BestEffort, &alone), Some((0b11, false, 0)));
        assert_eq!(merged(NumaPolicy::SingleNumaNode, &[hints(&[(0b100, true, 3)])]), None);
    }

    #[test]
    fn more_masks_than_count_still_merge_within_the_bound() {
        let nodes = NumaMask::first(64);
        let pairs = (0..64u64).flat_map(|a| (a + 1..64).map(move |b| ((1 << a) | (1 << b), true, 1)));
        let pairs: Vec<(u64, bool, i64)> = pairs.collect();
        let many = vec![hints(&pairs); 6];
        let topology = NumaTopology { policy: NumaPolicy::Restricted, nodes, ..NumaTopology::default() };
        let found = merge(&topology, &many).expect("all lists are the same");
        assert_eq!((found.mask.0, found.preferred, found.score), (0b11, true, 6));
        assert_eq!(merge(&topology, &many), Some(found));
    }
}
