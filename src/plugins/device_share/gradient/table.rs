//! How much of a node's idle GPUs typical pods cannot use, in tables: one per kind of node, with a level for each amount
//! of CPU from which on one more typical pod fits.
//!
//! For a typical pod, everything idle is a fragment when the pod requests no GPU, does not accept the node, or does not
//! fit; else those cards are of which less is left than the pod requests of one. For pods with a single card that is the
//! same as summing over the cards, because no card has enough exactly when all are too small. So the fragments of a node
//! are a sum over its cards of a number that depends on what is left of the card, and a correction for pods that want
//! several cards.

use smallvec::SmallVec;

use super::future::Future;
use super::typical::Given;

/// Sum of the weights of a table, at most. It keeps all sums within 64 bits.
const WEIGHTS: i64 = 1_000_000;

/// A typical pod that wants several cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Several {
    gpus: usize,
    percent: u8,
    weight: i64,
}

/// The typical pods that the CPU of a node is enough for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    /// Weight of the pods for which everything idle is a fragment.
    nothing: i64,
    /// By what is left of a card, in percent: its fragments, for the pods that fit.
    of_card: [i64; 101],
    several: Vec<Several>,
}

/// The table of one kind of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// Amounts of CPU at which a level begins, ascending; the first level begins below all of them.
    cpu: Vec<i64>,
    levels: Vec<Level>,
    /// Sum of all weights.
    pub(super) weights: i64,
    future: Option<Future>,
}

impl Table {
    /// Makes the table of the nodes that those of the typical pods accept for which `accepts` is true, by position. With
    /// a `lookahead`, nodes are rated by what stays idle after as many pods.
    pub(super) fn new(typical: &[Given], lookahead: u32, accepts: impl Fn(usize) -> bool) -> Self {
        let sum: i64 = typical.iter().map(|given| given.weight).sum();
        let scaled = |weight: i64| match sum {
            ..=WEIGHTS => weight,
            _ => (i128::from(weight) * i128::from(WEIGHTS) / i128::from(sum)).max(1) as i64,
        };
        let weights = typical.iter().map(|given| scaled(given.weight)).sum();
        let users: Vec<(&Given, i64)> = typical
            .iter()
            .enumerate()
            .filter(|(at, given)| given.wish.gpus > 0 && accepts(*at))
            .map(|(_, given)| (given, scaled(given.weight)))
            .collect();
        let mut cpu: Vec<i64> = users.iter().map(|(given, _)| given.wish.milli_cpu).collect();
        cpu.sort_unstable();
        cpu.dedup();
        let levels = std::iter::once(i64::MIN).chain(cpu.iter().copied());
        let levels = levels.map(|free| {
            let fit = users.iter().filter(|(given, _)| given.wish.milli_cpu <= free);
            Level::new(weights, fit)
        });
        let levels = levels.collect();
        let future = (lookahead > 0).then(|| Future::new(&users, weights, lookahead));
        Self { cpu, levels, weights, future }
    }

    /// Returns what a node is worth with so much CPU left, in thousandths of a core.
    #[inline]
    pub(super) fn prospect<'a>(&'a self, free: i64, left: &'a [u8]) -> Prospect<'a> {
        let level = &self.levels[self.cpu.partition_point(|cpu| *cpu <= free)];
        Prospect { table: self, level, free, left }
    }

    /// Returns how many cards of fragments make one step of the sigmoid. Wider steps suit the coarser rating.
    pub(super) fn width(&self) -> i64 {
        if self.future.is_some() { 2 } else { 1 }
    }
}

impl Level {
    fn new<'a>(weights: i64, fit: impl Iterator<Item = &'a (&'a Given, i64)>) -> Self {
        let mut made = Self { nothing: weights, of_card: [0; 101], several: Vec::new() };
        for (given, weight) in fit {
            let (gpus, percent) = (given.wish.gpus as usize, given.wish.percent);
            made.nothing -= weight;
            for left in 0..percent {
                made.of_card[usize::from(left)] += weight * i64::from(left);
            }
            if gpus > 1 {
                made.several.push(Several { gpus, percent, weight: *weight });
            }
        }
        made
    }

    /// Returns the fragments of a node, in percent of a card times weight. `left` is what is left of each card, in percent.
    #[inline]
    fn fragments(&self, left: impl Iterator<Item = u8> + Clone) -> i64 {
        let mut sum = 0;
        for left in left.clone() {
            sum += self.nothing * i64::from(left) + self.of_card[usize::from(left.min(100))];
        }
        for several in &self.several {
            let able = || left.clone().filter(|left| *left >= several.percent);
            if able().count() < several.gpus {
                sum += several.weight * able().map(i64::from).sum::<i64>();
            }
        }
        sum
    }
}

/// A node as it is, or as it would be: by this it is rated, and the allocator rates its cards.
#[derive(Clone, Copy)]
pub(in super::super) struct Prospect<'a> {
    table: &'a Table,
    level: &'a Level,
    /// CPU in thousandths of a core.
    free: i64,
    /// What is left of each card, in percent.
    pub(super) left: &'a [u8],
}

impl Prospect<'_> {
    /// Returns whether another one has the same fragments, whatever is taken of its cards.
    #[inline]
    pub(super) fn rates_as(&self, other: &Self) -> bool {
        std::ptr::eq(self.level, other.level)
            && self.left == other.left
            && (self.table.future.is_none() || self.free == other.free)
    }

    /// Returns the fragments of the node, in percent of a card times weight.
    #[inline]
    pub(super) fn fragments(&self) -> i64 {
        self.of(self.left.iter().copied())
    }

    #[inline]
    fn of(&self, left: impl Iterator<Item = u8> + Clone) -> i64 {
        match &self.table.future {
            Some(future) => self.table.weights * future.idle_after(self.free, left),
            None => self.level.fragments(left),
        }
    }

    /// Returns the fragments of the node when a part of a card of which `left` is left is taken, in percent. Which of equal
    /// cards it is makes no difference.
    #[inline]
    pub(in super::super) fn fragments_with(&self, left: u8, taken: u8) -> i64 {
        let at = self.left.iter().position(|known| *known == left).unwrap_or(usize::MAX);
        let with = |(i, known): (usize, &u8)| if i == at { known.saturating_sub(taken) } else { *known };
        self.of(self.left.iter().enumerate().map(with))
    }

    /// Returns the least fragments with a share of one of the cards that have as much.
    pub(super) fn least_with(&self, percent: u8) -> Option<i64> {
        let mut seen: SmallVec<[u8; 16]> = SmallVec::new();
        let mut least: Option<i64> = None;
        for left in self.left.iter().copied().filter(|left| *left >= percent) {
            if !seen.contains(&left) {
                seen.push(left);
                let fragments = self.fragments_with(left, percent);
                least = Some(least.map_or(fragments, |known| known.min(fragments)));
            }
        }
        least
    }
}
