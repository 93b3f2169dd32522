//! A plugin that scores the pods of one shape.

use pellucid_framework::plugin::{CycleValue, MAX_SCORE, Normalize, Reads};
use pellucid_model::NodeIdx;
use smallvec::SmallVec;

use super::greatest::{Changing, Greatest};
use super::shares::{Shares, Table, Weighing, places, share};

/// A plugin that scores the pod.
pub(super) struct Active {
    /// Index in `profile.score`.
    pub(super) entry: usize,
    pub(super) value: CycleValue,
    pub(super) reads: Reads,
    pub(super) normalize: Normalize,
    pub(super) weight: i64,
    /// The greatest raw score that counts.
    pub(super) most: i32,
    pub(super) shares: Shares,
}

/// Returns the greatest raw score that counts.
pub(super) fn greatest_raw(normalize: Normalize) -> i32 {
    if normalize == Normalize::Identity { MAX_SCORE as i32 } else { i32::MAX }
}

/// Returns a raw score as it is stored, given the greatest one that counts.
#[inline(always)]
pub(super) fn stored(raw: i64, most: i32) -> i32 {
    raw.clamp(0, i64::from(most)) as i32
}

impl Active {
    #[inline]
    pub(super) fn stored(&self, raw: i64) -> i32 {
        stored(raw, self.most)
    }

    #[inline]
    pub(super) fn weighing(&self) -> Weighing {
        (self.normalize, self.weight)
    }

    /// Returns a raw score normalised, and then multiplied by the plugin's weight.
    #[inline]
    pub(super) fn weighted(&self, raw: i32, greatest: i32) -> (i64, i64) {
        let normalized = self.normalize.apply(i64::from(raw), i64::from(greatest));
        (normalized, normalized * self.weight)
    }

    /// Has raw scores of a plugin that normalises take the place of others, and adds to the deltas of totals what they change by.
    /// `raw` are the raw scores by slot, `width` per slot, of which the one at this place changes. Returns false when it is to be
    /// found out which is the greatest now.
    pub(super) fn exchange(
        &mut self,
        greatest: &mut Greatest,
        (raw, width, at): (&mut [i32], usize, usize),
        nodes: &[NodeIdx],
        new: &[i64],
        deltas: &mut [i64],
    ) -> bool {
        let (by, was, most) = (self.weighing(), greatest.raw, self.most);
        let Some(mut changing) = greatest.changing() else { return true };
        let known = &*self.shares.follow(by, was);
        let mut others = SmallVec::<[(i32, i32); 4]>::new();
        let mut done = 0;
        loop {
            let rest = (&nodes[done..], &new[done..], &mut deltas[done..]);
            let n_kept;
            (changing, n_kept) = exchange_kept(changing, known, (raw, width, at), rest);
            done += n_kept;
            let Some(node) = nodes.get(done) else { break };
            let new = stored(new[done], most);
            let old = std::mem::replace(&mut raw[node.index() * width + at], new);
            others.push((old, new));
            deltas[done] += share(by, new, was) - share(by, old, was);
            done += 1;
        }
        let mut is_lost = changing.end();
        others.into_iter().for_each(|(old, new)| is_lost |= greatest.exchange(old, new));
        !is_lost || greatest.settle()
    }
}

/// Does the same up to the first raw score that is not kept. Returns how many it exchanged. A function of its own, since what else a
/// caller keeps in registers costs more than the call.
#[inline(never)]
fn exchange_kept<'g>(
    mut changing: Changing<'g>,
    known: &Table,
    (raw, width, at): (&mut [i32], usize, usize),
    (nodes, new, deltas): (&[NodeIdx], &[i64], &mut [i64]),
) -> (Changing<'g>, usize) {
    for (done, ((node, new), delta)) in nodes.iter().zip(new).zip(deltas).enumerate() {
        let raw = &mut raw[node.index() * width + at];
        let Some([from, to]) = places(*raw, *new) else { return (changing, done) };
        *raw = *new as i32;
        changing.exchange([from, to]);
        *delta += known[to] - known[from];
    }
    (changing, nodes.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Slots have two raw scores, of which the second changes; some are too great to be kept.
    #[test]
    fn totals_follow_raw_scores_that_are_kept_and_others() {
        let normalize = Normalize::Proportional;
        let mut active = Active {
            entry: 0,
            value: Arc::new(()),
            reads: Reads::Usage,
            normalize,
            weight: 3,
            most: greatest_raw(normalize),
            shares: Shares::default(),
        };
        let nodes: Vec<NodeIdx> = (0..6).map(NodeIdx).collect();
        let second = |raw: &[i32]| raw.iter().skip(1).step_by(2).copied().collect::<Vec<_>>();
        for (before, after) in [
            ([5, 60, 0, 9, 9, 250], [7, 50, 200, 9, 130, 250]),
            ([5, 60, 0, 9, 9, 250], [7, 50, 12, 9, 90, 3]),
            ([5, 60, 0, 9, 9, 2], [6, 61, 1, 8, 7, 2]),
            ([300, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 500]),
        ] {
            let mut raw: Vec<i32> = before.iter().flat_map(|raw| [42, *raw]).collect();
            let mut greatest = Greatest::of(before.into_iter());
            let was = greatest.raw;
            let new = after.map(i64::from);
            let mut deltas = [1; 6];
            let is_found = active.exchange(&mut greatest, (&mut raw, 2, 1), &nodes, &new, &mut deltas);
            assert_eq!(second(&raw), after, "from {before:?}");
            assert!(raw.iter().step_by(2).all(|first| *first == 42), "the other plugin's stay");
            let by = active.weighing();
            let expected: Vec<i64> = before
                .iter()
                .zip(after)
                .map(|(old, new)| 1 + share(by, new, was) - share(by, *old, was))
                .collect();
            assert_eq!(deltas[..], expected, "from {before:?} to {after:?}");
            let most = after.into_iter().max().unwrap_or(0);
            assert!(!is_found || greatest.raw == most, "{} of {after:?}", greatest.raw);
        }
    }
}
