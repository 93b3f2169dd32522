//! A plugin that scores the pods of one shape.

use pellucid_framework::plugin::{CycleValue, MAX_SCORE, Normalize, Reads};

use super::shares::{Shares, Weighing};

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
}
