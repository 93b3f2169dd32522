//! Finds requirements that no node satisfies together: the minimal hitting sets of what the nodes fail.
//!
//! A set of requirements cannot be met on this cluster exactly when every node fails one of them, so the minimal such
//! sets are the minimal conflicts (hitting-set duality, Reiter 1987). Enumeration is exponential in the worst case,
//! so the size and number of sets are bounded.

use std::collections::BTreeSet;

use pellucid_api::rest::suggestions::Conflict;
use pellucid_cycle::what_if::exhaustive::Masks;
use pellucid_model::NodeIdx;

use crate::explain::with_subject;
use crate::requirements::failed;

/// Largest number of conflicts reported.
const MOST: usize = 8;
/// Largest number of requirements in a conflict.
const LARGEST: u32 = 4;
/// Number of sets examined before the search is cut off.
const BUDGET: usize = 20_000;

/// Returns the conflicts, the smallest first, and whether there may be more. There are none when some node takes the
/// pod, or when the pod is refused as a whole.
pub(super) fn conflicts(masks: &Masks, nodes: &[NodeIdx]) -> (Vec<Conflict>, bool) {
    let distinct: BTreeSet<u64> = nodes.iter().map(|node| masks.of(*node)).collect();
    let (sets, is_cut) = hitting_sets(&distinct.into_iter().collect::<Vec<_>>());
    let is_cut = is_cut || sets.len() > MOST;
    let conflict = |set: u64| {
        // Static: removing pods would not help on any node that fails it.
        let is_static = |bit: usize| {
            let blocked = |node: &&NodeIdx| masks.of(**node) & (1 << bit) != 0;
            nodes.iter().filter(blocked).all(|node| masks.fixed_of(*node) & (1 << bit) != 0)
        };
        let mut requirements: Vec<_> =
            masks.requirements(set).map(|(bit, r)| failed(r, is_static(bit))).collect();
        requirements.sort();
        let texts: Vec<String> =
            requirements.iter().map(|r| with_subject(r.message.clone(), r.subject.as_deref())).collect();
        let text = format!("every node fails one of: {}", texts.join("; "));
        Conflict { requirements, text }
    };
    let mut conflicts: Vec<Conflict> = sets.into_iter().map(conflict).collect();
    conflicts.sort_by(|a, b| {
        (a.requirements.len(), &a.requirements).cmp(&(b.requirements.len(), &b.requirements))
    });
    conflicts.truncate(MOST);
    (conflicts, is_cut)
}

/// Returns the minimal sets of up to `LARGEST` bits that intersect every mask, and whether the search was cut off.
fn hitting_sets(masks: &[u64]) -> (Vec<u64>, bool) {
    if masks.is_empty() || masks.contains(&0) {
        return (Vec::new(), false);
    }
    // A mask that contains another is hit whenever the other is.
    let needed: Vec<u64> =
        masks.iter().copied().filter(|m| !masks.iter().any(|o| o != m && o & m == *o)).collect();
    let mut found: Vec<u64> = Vec::new();
    let mut open = vec![0u64];
    let (mut left, mut is_cut) = (BUDGET, false);
    // Breadth-first, so smaller sets are found before those that contain them.
    while !open.is_empty() && !is_cut {
        is_cut = open.len() > left;
        let looked_at = open.len().min(left);
        left -= looked_at;
        // A set never contains another of its own size.
        let smaller = found.len();
        let mut next = BTreeSet::new();
        for set in open.into_iter().take(looked_at) {
            if found[..smaller].iter().any(|known| known & set == *known) {
                continue;
            }
            let Some(missed) = needed.iter().find(|mask| *mask & set == 0) else {
                found.push(set);
                continue;
            };
            if set.count_ones() < LARGEST {
                next.extend(bits(*missed).map(|bit| set | bit));
            }
        }
        open = next.into_iter().collect();
    }
    found.retain(|set| is_minimal(*set, &needed));
    (found, is_cut)
}

fn is_minimal(set: u64, masks: &[u64]) -> bool {
    bits(set).all(|bit| masks.iter().any(|mask| mask & (set & !bit) == 0))
}

fn bits(set: u64) -> impl Iterator<Item = u64> {
    (0..64).map(|bit| 1 << bit).filter(move |bit| set & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimal_sets_that_hit_all() {
        assert_eq!(hitting_sets(&[0b1, 0b10]).0, [0b11]);
        assert_eq!(hitting_sets(&[0b11, 0b110]).0, [0b10, 0b101]);
        assert_eq!(hitting_sets(&[0b1, 0b11, 0b111]).0, [0b1]);
        assert!(hitting_sets(&[0b1, 0]).0.is_empty(), "a node takes the pod");
        assert!(hitting_sets(&[]).0.is_empty());
    }

    #[test]
    fn a_search_that_is_given_up_says_so() {
        // Sixteen nodes fail four requirements each, all different: 4^4 sets are open and none hits all masks.
        let apart: Vec<u64> = (0..16).map(|node| 0b1111 << (node * 4)).collect();
        assert_eq!(hitting_sets(&apart), (vec![], false), "none is small enough");
        let wide: Vec<u64> = (0..4).map(|node| 0xffff << (node * 16)).collect();
        let (found, is_cut) = hitting_sets(&wide);
        assert!(is_cut && !found.is_empty(), "of 16^4 sets some are looked at");
    }

    /// Every set found hits all masks and is minimal, and no such set up to the size limit is missing.
    #[test]
    fn it_agrees_with_trying_all_sets() {
        for seed in 1u64..400 {
            let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut next = || {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                (x >> 32) & 0x3f
            };
            let masks: Vec<u64> = (0..6).map(|_| next().max(1)).collect();
            let hits = |set: u64| masks.iter().all(|mask| mask & set != 0);
            let is_minimal =
                |set: u64| (0..6u32).all(|bit| set & (1 << bit) == 0 || !hits(set & !(1 << bit)));
            let mut want: Vec<u64> = (1..64u64)
                .filter(|set| set.count_ones() <= LARGEST && hits(*set) && is_minimal(*set))
                .collect();
            let (mut have, is_cut) = hitting_sets(&masks);
            assert!(!is_cut);
            want.sort_unstable();
            have.sort_unstable();
            assert_eq!(have, want, "{masks:?}");
        }
    }
}
