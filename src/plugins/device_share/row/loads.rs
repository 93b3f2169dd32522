//! The main amounts of the GPUs of a node beside each other, and of all: where a request is for nothing but these, they are all that
//! says which of the GPUs scores best. A node's are a few lines of memory, where cards are many.

use pellucid_plugin_helper::scored::{EXACT, quotient};
use smallvec::SmallVec;

use super::super::allocator::{Scoring, ScoringStrategy};
use super::super::amounts::{Amounts, CORE, MEMORY, RATIO, Resource};

/// What most GPUs have, in the order of [`Load`]. They are the first of all resources.
const MAIN: [Resource; 3] = [CORE, MEMORY, RATIO];

/// A place of [`MAIN`]. It needs no check, since there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    First,
    Second,
    Third,
}

/// The main amounts of a GPU, or of all of a node. They are whole numbers below [`EXACT`], in floating point, because that is how they
/// are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Load {
    total: [f64; 3],
    used: [f64; 3],
}

/// Returns the main amounts, unless there are others, or one is too large.
#[inline]
fn exact(amounts: &Amounts) -> Option<[f64; 3]> {
    let main = MAIN.map(|resource| amounts.get(resource));
    let is_exact =
        amounts.named() >> MAIN.len() == 0 && main.iter().all(|amount| (0..EXACT).contains(amount));
    is_exact.then(|| main.map(|amount| amount as f64))
}

impl Load {
    /// Returns whether there is some of all three.
    pub(super) fn has_all(&self) -> bool {
        self.total.iter().all(|total| *total > 0.0)
    }

    /// Returns the same as [`CardInUse::left`](super::CardInUse::left).
    #[inline]
    pub(super) fn left(&self) -> (u8, bool) {
        let [core, memory, ratio] = std::array::from_fn(|at| (self.total[at] - self.used[at]).max(0.0));
        let memory = if self.total[1] > 0.0 { quotient(memory, self.total[1]) } else { 100 };
        let percent = core.min(ratio) as i64;
        (percent.min(memory).clamp(0, 100) as u8, percent <= memory)
    }

    /// Returns what is used of the GPU, but no more than it has.
    #[inline]
    fn taken(&self) -> [f64; 3] {
        std::array::from_fn(|at| self.used[at].min(self.total[at]))
    }

    /// Adds a GPU.
    fn add(&mut self, other: &Self) {
        let taken = other.taken();
        self.total = std::array::from_fn(|at| self.total[at] + other.total[at]);
        self.used = std::array::from_fn(|at| self.used[at] + taken[at]);
    }

    /// Exchanges a GPU that was added for the same one with more or less used.
    #[inline]
    fn exchange(&mut self, was: &Self, now: &Self) {
        let (before, after) = (was.taken(), now.taken());
        self.used = std::array::from_fn(|at| self.used[at] + (after[at] - before[at]));
    }

    /// Scores the GPU as [`Scoring::score`] does, if it has no other resources. `has_all` may be false although it has some of all.
    #[inline(always)]
    pub(in super::super) fn score(&self, scoring: &Scoring, weighed: &Weighed, has_all: bool) -> i64 {
        match &weighed.pair {
            Some(pair) if has_all => pair.score(self, scoring.strategy),
            _ => self.score_any(scoring, weighed),
        }
    }

    /// Scores the GPU by any weights, whatever it has.
    #[inline(never)]
    fn score_any(&self, scoring: &Scoring, weighed: &Weighed) -> i64 {
        let of = |(slot, weight, amount): &(Slot, i64, i64)| {
            let at = *slot as usize;
            (*weight, self.total[at] as i64, (self.used[at] as i64).saturating_add(*amount))
        };
        scoring.mean(weighed.all.iter().map(of))
    }
}

/// The main amounts of all GPUs of a node, where they have nothing else and nothing else of them is used, and their sum.
#[derive(Clone, Debug)]
pub(in super::super) struct Loads {
    /// Of each GPU; one for all where they are equal.
    totals: SmallVec<[[f64; 3]; 1]>,
    used: SmallVec<[[f64; 3]; 8]>,
    /// Which amounts are named among what is used.
    named: SmallVec<[u8; 8]>,
    /// What is used of no GPU counts for more than it has.
    sum: Load,
    /// Whether every GPU has some of all three.
    has_all: bool,
}

impl Loads {
    /// Makes them of what the GPUs have and of what is used of each; `None` where that is not all, or too large.
    pub(super) fn of<'a>(totals: impl Iterator<Item = &'a Amounts>, used: &[Amounts]) -> Option<Self> {
        let totals: SmallVec<[[f64; 3]; 8]> = totals.map(exact).collect::<Option<_>>()?;
        let (mut sum, mut has_all) = (Load::default(), true);
        let mut made: SmallVec<[[f64; 3]; 8]> = SmallVec::new();
        let mut named: SmallVec<[u8; 8]> = SmallVec::new();
        for (total, used) in totals.iter().zip(used) {
            let load = Load { total: *total, used: exact(used)? };
            sum.add(&load);
            has_all &= load.has_all();
            made.push(load.used);
            named.push(used.named());
        }
        let n = if totals.windows(2).all(|pair| pair[0] == pair[1]) { 1 } else { totals.len() };
        Some(Self { totals: totals.into_iter().take(n).collect(), used: made, named, sum, has_all })
    }

    #[inline]
    fn total(&self, at: usize) -> [f64; 3] {
        self.totals[if self.totals.len() == 1 { 0 } else { at }]
    }

    /// Returns the amounts of a GPU.
    #[inline]
    pub(in super::super) fn get(&self, at: usize) -> Load {
        Load { total: self.total(at), used: self.used[at] }
    }

    /// Returns what scores the GPUs by two amounts; `None` where one lacks a resource.
    #[inline(always)]
    pub(in super::super) fn by_pair(&self, pair: Pair) -> Option<ByPair<'_>> {
        let (totals, used) = (&self.totals[..], &self.used[..]);
        self.has_all.then_some(ByPair { totals, used, own: usize::from(totals.len() > 1), pair })
    }

    /// Returns whether every GPU has some of all three.
    #[inline]
    pub(in super::super) fn has_all(&self) -> bool {
        self.has_all
    }

    /// Returns the memory of a GPU, in bytes.
    #[inline]
    pub(super) fn memory(&self, at: usize) -> i64 {
        self.total(at)[1] as i64
    }

    /// Returns what is used of a GPU.
    #[inline]
    pub(super) fn used(&self, at: usize) -> Amounts {
        Amounts::first(self.named[at], self.used[at].map(|amount| amount as i64))
    }

    /// Sets what is used of a GPU. Returns its amounts before and after; `None` for amounts that these cannot be.
    pub(super) fn set_used(&mut self, at: usize, used: &Amounts) -> Option<(Load, Load)> {
        Some(self.change(at, exact(used)?, used.named()))
    }

    /// Adds to what is used of a GPU, and does the same.
    #[inline]
    pub(super) fn add_used(&mut self, at: usize, more: &Amounts) -> Option<(Load, Load)> {
        let (more_used, own) = (exact(more)?, self.used[at]);
        let used = std::array::from_fn(|slot| own[slot] + more_used[slot]);
        let is_exact = used.iter().all(|used| *used < EXACT as f64);
        is_exact.then(|| self.change(at, used, self.named[at] | more.named()))
    }

    #[inline(always)]
    fn change(&mut self, at: usize, used: [f64; 3], named: u8) -> (Load, Load) {
        let was = self.get(at);
        let now = Load { used, ..was };
        (self.used[at], self.named[at]) = (used, named);
        self.sum.exchange(&was, &now);
        (was, now)
    }

    /// Returns the sum; `None` where it is not exact.
    pub(super) fn sum(&self) -> Option<Load> {
        self.sum.total.iter().all(|total| *total < EXACT as f64).then_some(self.sum)
    }
}

/// Scores the GPUs of a node by two amounts.
pub(in super::super) struct ByPair<'a> {
    totals: &'a [[f64; 3]],
    used: &'a [[f64; 3]],
    /// 0 where all GPUs have the first totals, 1 where each has its own.
    own: usize,
    pair: Pair,
}

impl ByPair<'_> {
    /// Scores a GPU. A strategy that is a constant costs nothing.
    #[inline(always)]
    pub(in super::super) fn score(&self, at: usize, strategy: ScoringStrategy) -> i64 {
        let load = Load { total: self.totals[at * self.own], used: self.used[at] };
        self.pair.score(&load, strategy)
    }
}

/// Of a request for GPUs, by what cards and nodes are scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Weighed {
    /// Places, weights and amounts.
    all: SmallVec<[(Slot, i64, i64); 3]>,
    pair: Option<Pair>,
}

/// The same where it is two of weight 1 and below [`EXACT`], as by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Pair([(Slot, i64); 2]);

impl Pair {
    /// Scores what has some of all three. A strategy that is a constant costs nothing.
    #[inline(always)]
    pub(super) fn score(self, load: &Load, strategy: ScoringStrategy) -> i64 {
        let with = |(slot, amount): (Slot, i64)| {
            (load.total[slot as usize], load.used[slot as usize] + amount as f64)
        };
        strategy.mean_of_two(with(self.0[0]), with(self.0[1]))
    }
}

impl Weighed {
    /// Returns what a request is scored by.
    pub(in super::super) fn new(scoring: &Scoring, each: &Amounts) -> Self {
        let places = || MAIN.iter().zip([Slot::First, Slot::Second, Slot::Third]);
        let slot = |resource: &Resource| places().find(|(main, _)| *main == resource).map(|(_, slot)| slot);
        let of = |(resource, weight): &(Resource, i64)| Some((slot(resource)?, *weight, each.get(*resource)));
        let all: SmallVec<[_; 3]> = scoring.weights.iter().filter_map(of).collect();
        let pair = match all[..] {
            [(a, 1, of_a), (b, 1, of_b)] if [of_a, of_b].iter().all(|of| (0..EXACT).contains(of)) => {
                Some(Pair([(a, of_a), (b, of_b)]))
            }
            _ => None,
        };
        Self { all, pair }
    }

    /// Returns the two amounts, if these are all.
    pub(in super::super) fn pair(&self) -> Option<Pair> {
        self.pair
    }
}
