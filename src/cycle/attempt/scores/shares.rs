//! What the raw scores of a plugin come to once they are normalised and weighted, by raw score: most raw scores are up to 100,
//! many nodes have the same, and looking one up is cheaper than a division.

use pellucid_framework::plugin::{MAX_SCORE, Normalize};

/// Number of raw scores of which the share is kept: those from 0 on.
pub(super) const KEPT: usize = 1 << 7;

/// How raw scores are normalised, and the weight.
pub(crate) type Weighing = (Normalize, i64);

/// What each raw score that is kept comes to, or changes by.
pub(super) type Table = [i64; KEPT];

/// Returns what a raw score comes to.
pub(super) fn share((normalize, weight): Weighing, raw: i32, greatest: i32) -> i64 {
    normalize.apply(i64::from(raw), i64::from(greatest)) * weight
}

/// Returns the shares. From one raw score to the next, the quotient grows by a constant, and the remainder by another, so that there
/// is no division for each.
fn table(by: Weighing, greatest: i32) -> Table {
    let (normalize, weight) = by;
    let whole = i64::from(greatest);
    if normalize == Normalize::Identity || whole <= 0 {
        return std::array::from_fn(|raw| share(by, raw as i32, greatest));
    }
    let (quotients, remainders) = (MAX_SCORE / whole, MAX_SCORE % whole);
    let (mut quotient, mut remainder) = (0, 0);
    std::array::from_fn(|_| {
        let is_reversed = normalize == Normalize::ProportionalReversed;
        let normalized = if is_reversed { MAX_SCORE - quotient } else { quotient };
        remainder += remainders;
        let carry = i64::from(remainder >= whole);
        quotient += quotients + carry;
        remainder -= carry * whole;
        normalized * weight
    })
}

/// Returns the place of a raw score in a [`Table`], if it has one.
#[inline(always)]
pub(super) fn place(raw: i32) -> Option<usize> {
    let at = raw as u32 as usize;
    (at < KEPT).then_some(at)
}

/// Returns the places of a raw score that is stored and of one that is not yet, if both have one.
#[inline(always)]
pub(super) fn places(stored: i32, new: i64) -> Option<[usize; 2]> {
    let both = u64::from(stored as u32) | new as u64;
    (both < KEPT as u64).then_some([stored as usize % KEPT, new as usize % KEPT])
}

/// Normalised and weighted scores, given the greatest raw score.
#[derive(Default)]
pub(crate) struct Shares {
    /// Those that are kept; `None` before [`Self::follow`].
    known: Option<Box<Table>>,
    greatest: i32,
}

impl Shares {
    /// Makes these the shares under a greatest raw score.
    pub(crate) fn follow(&mut self, by: Weighing, greatest: i32) -> &mut Table {
        if self.greatest != greatest {
            self.known = None;
            self.greatest = greatest;
        }
        self.known.get_or_insert_with(|| Box::new(table(by, greatest)))
    }

    /// Makes these, which are the shares under one greatest raw score, those under another. Returns what they change by.
    pub(crate) fn advance(&mut self, by: Weighing, was: i32, is: i32) -> Difference {
        let now = table(by, is);
        let before = std::mem::replace(self.follow(by, was), now);
        self.greatest = is;
        let known = std::array::from_fn(|raw| now[raw] - before[raw]);
        Difference { by, greatest: [was, is], known }
    }

    /// Returns what a raw score comes to under a greatest one, whichever these are the shares under.
    #[inline]
    pub(crate) fn get(&self, by: Weighing, raw: i32, greatest: i32) -> i64 {
        match (&self.known, place(raw)) {
            (Some(known), Some(at)) if self.greatest == greatest => known[at],
            _ => share(by, raw, greatest),
        }
    }
}

/// What a weighted score changes by with the greatest raw score.
pub(crate) struct Difference {
    by: Weighing,
    /// The one before, and the one that it is.
    greatest: [i32; 2],
    known: Table,
}

impl Difference {
    /// Returns the difference of any raw score.
    #[inline]
    pub(crate) fn of(&self, raw: i32) -> i64 {
        let compute = || {
            let [was, is] = self.greatest.map(|greatest| share(self.by, raw, greatest));
            is - was
        };
        place(raw).map_or_else(compute, |at| self.known[at])
    }

    /// Returns the differences of all raw scores up to the lesser of the greatest ones, if these are kept.
    pub(crate) fn table(&self) -> Option<&Table> {
        place(self.greatest[0].min(self.greatest[1])).map(|_| &self.known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_that_of_the_weighted_scores() {
        for normalize in [Normalize::Proportional, Normalize::ProportionalReversed] {
            for (was, is) in [(98, 97), (0, 40), (40, 0), (127, 128), (128, 127), (1_000, 999)] {
                let difference = Shares::default().advance((normalize, 3), was, is);
                let raws: Vec<i32> = (0..=was.min(is)).collect();
                let of = |raw: &i32| share((normalize, 3), *raw, is) - share((normalize, 3), *raw, was);
                let expected: Vec<i64> = raws.iter().map(of).collect();
                let found: Vec<i64> = raws.iter().map(|raw| difference.of(*raw)).collect();
                assert_eq!(found, expected, "{normalize:?}: of {was}, then of {is}");
                assert_eq!(difference.table().is_some(), was.min(is) < KEPT as i32);
            }
        }
    }

    #[test]
    fn what_is_looked_up_is_what_would_be_worked_out() {
        for by in [(Normalize::Proportional, 3), (Normalize::ProportionalReversed, 2)] {
            let mut shares = Shares::default();
            for greatest in [0, 1, 7, 100, 1_000, 7] {
                shares.follow(by, greatest);
                for raw in -1..200 {
                    assert_eq!(
                        shares.get(by, raw, greatest),
                        share(by, raw, greatest),
                        "{by:?}: {raw} of {greatest}"
                    );
                    assert_eq!(shares.get(by, raw, 50), share(by, raw, 50), "{by:?}: {raw} of 50");
                }
            }
        }
    }
}
