//! Requirements that no node satisfies together: the minimal hitting sets of what the nodes fail.
//!
//! A set of requirements cannot be met on this cluster exactly when every node fails one of them, so the minimal
//! such sets are the minimal conflicts (hitting-set duality, Reiter 1987). Enumeration is exponential in the worst
//! case; size and number are bounded.

use std::collections::BTreeSet;

use pellucid_api::rest::suggestions::Conflict;

use crate::cycle::exhaustive::Masks;
use crate::diagnosis::explain::with_subject;
use crate::diagnosis::requirements::failed;
use crate::model::NodeIdx;

/// Conflicts told.
const MOST: usize = 8;
/// The most requirements of one.
const LARGEST: u32 = 4;
/// Sets looked at before the search is given up.
const BUDGET: usize = 20_000;

/// Finds them, the smallest first. None when some node takes the pod, or it is refused as a whole.
pub(super) fn conflicts(masks: &Masks, nodes: &[NodeIdx]) -> Vec<Conflict> {
    let distinct: BTreeSet<u64> = nodes.iter().map(|node| masks.of(*node)).collect();
    let sets = hitting_sets(&distinct.into_iter().collect::<Vec<_>>());
    let conflict = |set: u64| {
        // Static where no node could be mended by removing pods.
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
    conflicts
}

/// Returns the minimal sets of bits that have one of every mask, up to a size.
fn hitting_sets(masks: &[u64]) -> Vec<u64> {
    if masks.is_empty() || masks.contains(&0) {
        return Vec::new();
    }
    // A mask that contains another is hit with it.
    let needed: Vec<u64> =
        masks.iter().copied().filter(|m| !masks.iter().any(|o| o != m && o & m == *o)).collect();
    let mut found: Vec<u64> = Vec::new();
    let mut open = vec![0u64];
    let mut looked_at = 0;
    // Breadth first, so smaller sets are found before those that contain them.
    while !open.is_empty() && looked_at < BUDGET {
        let mut next = BTreeSet::new();
        for set in open {
            looked_at += 1;
            if found.iter().any(|known| known & set == *known) {
                continue;
            }
            let Some(missed) = needed.iter().find(|mask| *mask & set == 0) else {
                found.push(set);
                continue;
            };
            if set.count_ones() < LARGEST {
                next.extend(
                    (0..64).map(|bit| 1u64 << bit).filter(|bit| missed & bit != 0).map(|bit| set | bit),
                );
            }
        }
        open = next.into_iter().collect();
    }
    found.retain(|set| is_minimal(*set, &needed));
    found
}

fn is_minimal(set: u64, masks: &[u64]) -> bool {
    let bits = (0..64).map(|bit| 1u64 << bit).filter(|bit| set & bit != 0);
    bits.into_iter().all(|bit| masks.iter().any(|mask| mask & (set & !bit) == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimal_sets_that_hit_all() {
        assert_eq!(hitting_sets(&[0b1, 0b10]), [0b11]);
        assert_eq!(hitting_sets(&[0b11, 0b110]), [0b10, 0b101]);
        assert_eq!(hitting_sets(&[0b1, 0b11, 0b111]), [0b1]);
        assert!(hitting_sets(&[0b1, 0]).is_empty(), "a node takes the pod");
        assert!(hitting_sets(&[]).is_empty());
    }

    /// Every set that is found hits all and is minimal, and none of up to the size is missing.
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
            let mut have = hitting_sets(&masks);
            want.sort_unstable();
            have.sort_unstable();
            assert_eq!(have, want, "{masks:?}");
        }
    }
}
