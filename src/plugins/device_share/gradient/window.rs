//! Counts what the pods that were seen last request.
//!
//! When twice as many pods were counted as the window has, all counts are halved, so old pods weigh less and less. The
//! number of different wishes is bounded.

use pellucid_model::CowMap;

use super::typical::{Given, Wish};

/// Greatest number of wishes that are counted at once.
const MOST: usize = 2048;
/// Part of the pods that typical ones make up, in percent, as in FGD.
const COVERED: u64 = 95;
/// Number of pods after which typical ones are known for the first time.
const FIRST: u32 = 16;

/// How often a wish was seen.
#[derive(Clone, Copy, Debug)]
struct Count {
    n: u32,
    /// Number of the wish, by which wishes of equal counts are ordered.
    number: u64,
}

/// The wishes of the pods that were seen last.
#[derive(Clone, Debug)]
pub(super) struct Window {
    counts: CowMap<Wish, Count>,
    len: usize,
    numbered: u64,
    /// Sum of all counts.
    sum: u32,
    /// Pods seen since typical ones were listed.
    since: u32,
    /// Number of pods after which they are listed again.
    next: u32,
    most: u32,
}

impl Window {
    pub(super) fn new(most: u32) -> Self {
        Self { counts: CowMap::default(), len: 0, numbered: 0, sum: 0, since: 0, next: FIRST, most }
    }

    /// Counts a wish. Returns whether typical pods should be listed anew: at first whenever as many pods were seen as
    /// before altogether, later once per window.
    pub(super) fn add(&mut self, wish: Wish) -> bool {
        if let Some(count) = self.counts.get_mut(&wish) {
            count.n += 1;
        } else if self.len < MOST {
            self.numbered += 1;
            self.len += 1;
            self.counts.insert(wish, Count { n: 1, number: self.numbered });
        } else {
            return false;
        }
        self.sum += 1;
        self.since += 1;
        if self.sum >= self.most.saturating_mul(2) {
            self.halve();
        }
        let is_due = self.since >= self.next;
        if is_due {
            self.since = 0;
            self.next = self.sum.min(self.most);
        }
        is_due
    }

    fn halve(&mut self) {
        let wishes: Vec<(Wish, u32)> =
            self.counts.iter().map(|(wish, count)| (wish.clone(), count.n / 2)).collect();
        self.sum = 0;
        for (wish, half) in wishes {
            self.sum += half;
            if half == 0 {
                self.counts.remove(&wish);
                self.len -= 1;
            } else if let Some(count) = self.counts.get_mut(&wish) {
                count.n = half;
            }
        }
    }

    /// Lists the most frequent wishes, which together make up 95 % of the pods. The most frequent come first, of
    /// equal ones the one that was seen first.
    pub(super) fn typical(&self) -> Vec<Given> {
        let mut all: Vec<(&Wish, Count)> = self.counts.iter().map(|(wish, count)| (wish, *count)).collect();
        all.sort_unstable_by_key(|(_, count)| (std::cmp::Reverse(count.n), count.number));
        let (mut covered, wanted) = (0, COVERED * u64::from(self.sum));
        let mut made = Vec::new();
        for (wish, count) in all {
            if 100 * covered >= wanted {
                break;
            }
            covered += u64::from(count.n);
            made.push(Given { wish: wish.clone(), weight: i64::from(count.n) });
        }
        made
    }
}
