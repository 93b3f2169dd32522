//! What the raw scores of a plugin come to once they are normalised and weighted, by raw score: most raw scores are up to 100,
//! many nodes have the same, and looking one up is cheaper than a division.

use pellucid_framework::plugin::Normalize;

/// Most raw scores are up to this, of which the binary digits are all 1.
const MOST: i32 = 127;

/// How raw scores are normalised, and the weight.
pub(crate) type Weighing = (Normalize, i64);

fn share((normalize, weight): Weighing, raw: i32, greatest: i32) -> i64 {
    normalize.apply(i64::from(raw), i64::from(greatest)) * weight
}

/// Returns what is known of a raw score.
#[inline]
fn find(known: &[i64], raw: i32) -> Option<i64> {
    known.get(usize::try_from(raw).ok()?).copied()
}

/// Normalised and weighted scores, given the greatest raw score.
#[derive(Default)]
pub(crate) struct Shares {
    /// By raw score; empty before [`Self::follow`].
    known: Vec<i64>,
    greatest: i32,
}

impl Shares {
    /// Makes these the shares under a greatest raw score.
    pub(crate) fn follow(&mut self, by: Weighing, greatest: i32) {
        if self.known.is_empty() || self.greatest != greatest {
            self.known.clear();
            self.known.extend((0..=MOST).map(|raw| share(by, raw, greatest)));
            self.greatest = greatest;
        }
    }

    /// Returns by how much more a raw score comes to than another one.
    #[inline]
    pub(crate) fn difference(&self, by: Weighing, old: i32, new: i32) -> i64 {
        let of = |raw| find(&self.known, raw).unwrap_or_else(|| share(by, raw, self.greatest));
        of(new) - of(old)
    }
}

/// What a weighted score changes by with the greatest raw score.
pub(crate) struct Difference {
    by: Weighing,
    greatest: [i32; 2],
    /// By raw score, up to the lesser of the greatest ones.
    known: [i64; MOST as usize + 1],
}

impl Difference {
    pub(crate) fn new(by: Weighing, was: i32, is: i32) -> Self {
        let mut made = Self { by, greatest: [was, is], known: [0; _] };
        for raw in 0..=was.min(is).min(MOST) {
            made.known[raw as usize] = made.compute(raw);
        }
        made
    }

    fn compute(&self, raw: i32) -> i64 {
        let [was, is] = self.greatest.map(|greatest| share(self.by, raw, greatest));
        is - was
    }

    /// Returns the difference of a raw score that is not negative, and not above either greatest one.
    #[inline]
    pub(crate) fn of(&self, raw: i32) -> i64 {
        if raw <= MOST { self.in_table(raw) } else { self.compute(raw) }
    }

    /// Returns whether no such raw score is above [`MOST`].
    pub(crate) fn has_table(&self) -> bool {
        self.greatest[0].min(self.greatest[1]) <= MOST
    }

    /// Returns the difference of such a raw score up to [`MOST`]. It means nothing for others.
    #[inline(always)]
    pub(crate) fn in_table(&self, raw: i32) -> i64 {
        self.known[(raw & MOST) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_that_of_the_weighted_scores() {
        for normalize in [Normalize::Proportional, Normalize::ProportionalReversed] {
            for (was, is) in [(98, 97), (0, 40), (40, 0), (127, 128), (128, 127), (1_000, 999)] {
                let difference = Difference::new((normalize, 3), was, is);
                let raws: Vec<i32> = (0..=was.min(is)).collect();
                let of = |raw: &i32| share((normalize, 3), *raw, is) - share((normalize, 3), *raw, was);
                let expected: Vec<i64> = raws.iter().map(of).collect();
                let found: Vec<i64> = raws.iter().map(|raw| difference.of(*raw)).collect();
                assert_eq!(found, expected, "{normalize:?}: of {was}, then of {is}");
                assert_eq!(difference.has_table(), was.min(is) <= MOST);
            }
        }
    }

    #[test]
    fn what_is_looked_up_is_what_would_be_worked_out() {
        for by in [(Normalize::Proportional, 3), (Normalize::ProportionalReversed, 2)] {
            let mut shares = Shares::default();
            for greatest in [0, 1, 7, 100, 1_000, 7] {
                shares.follow(by, greatest);
                for (old, new) in [(0, 7), (7, 0), (100, 101), (5_000, 99), (3, 3), (-2, 50)] {
                    let want = share(by, new, greatest) - share(by, old, greatest);
                    assert_eq!(shares.difference(by, old, new), want, "{by:?}: {old} to {new} of {greatest}");
                }
            }
        }
    }
}
