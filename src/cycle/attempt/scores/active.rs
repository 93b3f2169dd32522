//! A plugin that scores the pods of one shape.

use pellucid_framework::plugin::{CycleValue, MAX_SCORE, Normalize, Reads};
use smallvec::SmallVec;

use super::greatest::Greatest;
use super::shares::{Shares, Weighing, places, share};

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

    /// Has raw scores of a plugin that normalises take the place of others, each given by where it stands, and adds to the deltas
    /// of totals what they change by. Returns false when it is to be found out which is the greatest now.
    #[inline]
    pub(super) fn exchange<'d>(
        &mut self,
        greatest: &mut Greatest,
        raw: &mut [i32],
        rows: impl Iterator<Item = (usize, i32, &'d mut i64)>,
    ) -> bool {
        let (by, was) = (self.weighing(), greatest.raw);
        let Some(mut changing) = greatest.changing() else { return true };
        let known = &*self.shares.follow(by, was);
        let mut others = SmallVec::<[(i32, i32); 4]>::new();
        for (slot, new, delta) in rows {
            let old = std::mem::replace(&mut raw[slot], new);
            match places(old, new) {
                Some([from, to]) => {
                    changing.exchange([from, to]);
                    *delta += known[to] - known[from];
                }
                None => {
                    others.push((old, new));
                    *delta += share(by, new, was) - share(by, old, was);
                }
            }
        }
        let mut is_lost = changing.end();
        others.into_iter().for_each(|(old, new)| is_lost |= greatest.exchange(old, new));
        !is_lost || greatest.settle()
    }
}
