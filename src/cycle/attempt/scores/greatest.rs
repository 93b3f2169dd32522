//! The greatest raw score of a plugin that normalises, kept in step with the nodes whose scores change: most raw scores are
//! small numbers, so that counts of each tell which is the greatest once nobody has what it was.

use super::shares::{KEPT, place};

/// The greatest raw score over the feasible nodes, and how many have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Greatest {
    pub(crate) raw: i32,
    pub(crate) count: u32,
    /// How many have each raw score that is [kept](KEPT); empty for a plugin that does not normalise.
    counts: Vec<u32>,
    /// How many have a greater one.
    above: u32,
}

impl Greatest {
    pub(crate) fn of(raws: impl Iterator<Item = i32>) -> Self {
        let mut made = Self { counts: vec![0; KEPT], ..Self::default() };
        raws.for_each(|raw| made.add(raw));
        made
    }

    /// Returns the number of those that have a raw score, unless it is not counted.
    fn counter(&mut self, raw: i32) -> Option<&mut u32> {
        match place(raw) {
            Some(at) => self.counts.get_mut(at),
            None => (raw > 0).then_some(&mut self.above),
        }
    }

    pub(crate) fn add(&mut self, raw: i32) {
        if let Some(count) = self.counter(raw) {
            *count += 1;
        }
        if self.count == 0 || raw > self.raw {
            (self.raw, self.count) = (raw, 1);
        } else if raw == self.raw {
            self.count += 1;
        }
    }

    pub(crate) fn remove(&mut self, raw: i32) {
        if let Some(count) = self.counter(raw) {
            *count = count.saturating_sub(1);
        }
        if raw == self.raw {
            self.count = self.count.saturating_sub(1);
        }
    }

    /// Has one raw score take another's place. Returns whether none has the greatest one any more, in which case it is to be
    /// found once all changes are made.
    pub(crate) fn exchange(&mut self, old: i32, new: i32) -> bool {
        self.remove(old);
        let is_lost = self.count == 0;
        self.add(new);
        is_lost
    }

    /// Begins changes of many raw scores, none of which is below 0. A plugin that does not normalise has none.
    #[inline]
    pub(crate) fn changing(&mut self) -> Option<Changing<'_>> {
        let Self { raw, count, counts, .. } = self;
        Some(Changing { raw, count, counts: counts.first_chunk_mut()?, highest: 0 })
    }

    /// Finds the greatest one once none has what it was. Returns false when the counts do not tell.
    pub(crate) fn settle(&mut self) -> bool {
        let known = self.counts.iter().rposition(|count| *count > 0).filter(|_| self.above == 0);
        if let Some(at) = known {
            (self.raw, self.count) = (at as i32, self.counts[at]);
        }
        known.is_some()
    }
}

/// Changes of raw scores, most of which are kept and below the greatest one.
pub(crate) struct Changing<'g> {
    raw: &'g mut i32,
    count: &'g mut u32,
    counts: &'g mut [u32; KEPT],
    /// The greatest place that a raw score has come to.
    highest: usize,
}

impl Changing<'_> {
    /// Has one raw score take another's [place](super::shares::places).
    #[inline(always)]
    pub(crate) fn exchange(&mut self, [old, new]: [usize; 2]) {
        self.counts[old] = self.counts[old].saturating_sub(1);
        self.counts[new] += 1;
        self.highest = self.highest.max(new);
    }

    /// Ends the changes. Returns whether none has the greatest one any more.
    pub(crate) fn end(self) -> bool {
        *self.raw = (*self.raw).max(self.highest as i32);
        if let Some(at) = place(*self.raw) {
            *self.count = self.counts[at];
        }
        *self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::shares::places;
    use super::*;

    #[test]
    fn the_greatest_is_kept_in_step_with_what_comes_and_goes() {
        let mut random = 7u64;
        let mut below = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        for range in [(0, 8), (95, 12), (-4, 6), (0, 1_000)] {
            let mut raws: Vec<i32> = (0..6).map(|_| range.0 + below(range.1) as i32).collect();
            let mut known = Greatest::of(raws.iter().copied());
            let mut told = 0;
            for _ in 0..2_000 {
                for at in 0..raws.len() {
                    // Some change together, and the greatest is found afterwards.
                    let mut change = |at: usize| {
                        let was = std::mem::replace(&mut raws[at], range.0 + below(range.1) as i32);
                        (was, raws[at])
                    };
                    let changes: Vec<(i32, i32)> = (at..(at + 3).min(6)).map(&mut change).collect();
                    let mut changing = known.changing().filter(|_| range.0 >= 0);
                    let mut others = Vec::new();
                    for (was, is) in changes {
                        match (places(was, i64::from(is)), &mut changing) {
                            (Some(places), Some(changing)) => changing.exchange(places),
                            _ => others.push((was, is)),
                        }
                    }
                    let mut is_lost = changing.is_some_and(Changing::end);
                    others.into_iter().for_each(|(was, is)| is_lost |= known.exchange(was, is));
                    let is_told = is_lost && known.settle();
                    told += usize::from(is_told);
                    if is_lost && !is_told {
                        known = Greatest::of(raws.iter().copied());
                    }
                    let greatest = raws.iter().copied().max().unwrap_or(0);
                    let count = raws.iter().filter(|raw| **raw == greatest).count();
                    assert_eq!((known.raw, known.count as usize), (greatest, count), "{raws:?}");
                }
            }
            assert!(told > 50 || range.1 > 100, "{range:?}: {told}");
        }
    }
}
