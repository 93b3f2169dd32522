//! Numbers of slots that are given out again, the lowest first.
//!
//! So what is in use stays together at the front, and the end of an array that was long for a while is free again soon,
//! and can be given back. With the newest free slot first, one old entry at the end would keep all before it.

/// The slots of an array: which of them are free.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    /// One bit per slot, set when it is free.
    free: Vec<u64>,
    /// No word before this one has a free slot.
    lowest: usize,
    len: usize,
}

impl Slots {
    /// Returns the number of slots, used or free. The last of them is in use.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Takes the lowest free slot, or a new one at the end.
    #[inline]
    pub fn take(&mut self) -> usize {
        while let Some(word) = self.free.get_mut(self.lowest) {
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                return self.lowest * 64 + bit;
            }
            self.lowest += 1;
        }
        self.len += 1;
        self.free.resize(self.len.div_ceil(64), 0);
        self.len - 1
    }

    /// Frees a slot that is in use. Free slots at the end are no slots any more.
    #[inline]
    pub fn give(&mut self, slot: usize) {
        self.free[slot / 64] |= 1 << (slot % 64);
        self.lowest = self.lowest.min(slot / 64);
        while let Some(last) = self.len.checked_sub(1)
            && self.free[last / 64] & 1 << (last % 64) != 0
        {
            self.free[last / 64] &= !(1 << (last % 64));
            self.len = last;
        }
        self.free.truncate(self.len.div_ceil(64));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The lowest free slot is taken, none twice, and the last slot is in use.
        #[test]
        fn the_lowest_is_taken(steps in prop::collection::vec((any::<bool>(), 0..400usize), 0..900)) {
            let (mut slots, mut used) = (Slots::default(), BTreeSet::new());
            for (takes, which) in steps {
                if takes || used.is_empty() {
                    let want = (0..).find(|slot| !used.contains(slot));
                    let got = slots.take();
                    prop_assert_eq!(Some(got), want);
                    used.insert(got);
                } else {
                    let slot = *used.iter().nth(which % used.len()).expect("it is not empty");
                    used.remove(&slot);
                    slots.give(slot);
                }
                prop_assert_eq!(slots.len(), used.last().map_or(0, |last| last + 1));
            }
        }
    }
}
