//! The main amounts of the GPUs of a node beside each other, and of all: where a request is for nothing but these, they are all that
//! says which of the GPUs scores best. A node's are a few lines of memory, where cards are many.

use std::sync::Arc;

use pellucid_plugin_helper::scored::{EXACT, quotient};
use smallvec::SmallVec;

use super::super::allocator::{Scoring, ScoringStrategy};
use super::super::amounts::{Amounts, CORE, MEMORY, RATIO, Resource};
use super::gpu::Gpu;
use super::{Card, Row, Taken};

/// What most GPUs have, in the order of [`Load`]. They are the first of all resources.
pub(super) const MAIN: [Resource; 3] = [CORE, MEMORY, RATIO];

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
    /// Returns the memory, in bytes.
    #[inline]
    pub(super) fn memory(&self) -> i64 {
        self.total[1] as i64
    }

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

/// The main amounts of all GPUs of a node, where they have nothing else and nothing else of them is used.
#[derive(Clone, Copy)]
pub(in super::super) struct Loads<'a> {
    /// Of each GPU, or one for all.
    totals: &'a [[f64; 3]],
    gpus: &'a [Gpu],
    each_has_all: bool,
}

impl<'a> Loads<'a> {
    /// Returns 0 where all GPUs have the first totals, 1 where each has its own.
    #[inline]
    fn own(&self) -> usize {
        usize::from(self.totals.len() > 1)
    }

    /// Returns the amounts of a GPU.
    #[inline]
    pub(in super::super) fn get(&self, at: usize) -> Load {
        Load { total: self.totals[at * self.own()], used: self.gpus[at].used }
    }

    /// Returns what scores the GPUs by two amounts; `None` where one lacks a resource.
    #[inline(always)]
    pub(in super::super) fn by_pair(&self, pair: Pair) -> Option<ByPair<'a>> {
        self.each_has_all.then_some(ByPair { totals: self.totals, own: self.own(), pair })
    }

    /// Returns whether every GPU has some of all three.
    #[inline]
    pub(in super::super) fn each_has_all(&self) -> bool {
        self.each_has_all
    }
}

impl Row {
    /// Returns the main amounts of the GPUs, if these are all that they have.
    #[inline]
    pub(in super::super) fn loads(&self) -> Option<Loads<'_>> {
        let Self { totals, gpus, each_has_all, .. } = self;
        self.has_loads.then_some(Loads { totals, gpus, each_has_all: *each_has_all })
    }

    /// Returns the main amounts of a GPU, of which these are all.
    #[inline]
    pub(super) fn load(&self, at: usize) -> Load {
        Loads { totals: &self.totals, gpus: &self.gpus, each_has_all: self.each_has_all }.get(at)
    }

    /// Takes the main amounts of the GPUs from the inventory, if these are all and not too large.
    pub(super) fn note_loads(&mut self) {
        let inventory = Arc::make_mut(&mut self.inventory);
        let cards = inventory.cards.iter().zip(&inventory.taken).take(self.gpus.len());
        let load = |(card, taken): (&Card, &Taken)| {
            Some(Load { total: exact(&card.total)?, used: exact(&taken.used)? })
        };
        let loads: Option<SmallVec<[Load; 8]>> = cards.map(load).collect();
        self.has_loads = loads.is_some();
        let loads = loads.unwrap_or_default();
        // One lies in the row, more lie far away.
        let n = if loads.windows(2).all(|pair| pair[0].total == pair[1].total) { 1 } else { loads.len() };
        self.totals = loads.iter().take(n).map(|load| load.total).collect();
        let (mut sums, mut each_has_all) = (Load::default(), true);
        for (load, (gpu, taken)) in loads.iter().zip(self.gpus.iter_mut().zip(&mut inventory.taken)) {
            (gpu.used, gpu.named) = (load.used, taken.used.named());
            taken.used = Amounts::default();
            sums.add(load);
            each_has_all &= load.has_all();
        }
        self.each_has_all = self.has_loads && each_has_all;
        let is_summed = self.has_loads && sums.total.iter().all(|total| *total < EXACT as f64);
        self.glance.is_summed = is_summed;
        self.glance.has_all = is_summed && sums.has_all();
        self.glance.sums = if is_summed { sums } else { Load::default() };
    }

    /// Gives what is used of the GPUs back to the inventory.
    pub(super) fn forget_loads(&mut self) {
        if !std::mem::take(&mut self.has_loads) {
            return;
        }
        let inventory = Arc::make_mut(&mut self.inventory);
        for (gpu, taken) in self.gpus.iter_mut().zip(&mut inventory.taken) {
            taken.used = gpu.used();
            (gpu.used, gpu.named) = ([0.0; 3], 0);
        }
    }

    /// Sets what is used of a GPU. Returns its amounts before and after; `None` for amounts that these cannot be.
    pub(super) fn set_load(&mut self, at: usize, used: &Amounts) -> Option<(Load, Load)> {
        let main = exact(used).filter(|_| self.has_loads)?;
        Some(self.change_load(at, main, used.named()))
    }

    /// Adds to what is used of a GPU, and does the same.
    #[inline]
    pub(super) fn add_load(&mut self, at: usize, more: &Amounts) -> Option<(Load, Load)> {
        let (main, gpu) = (exact(more).filter(|_| self.has_loads)?, &self.gpus[at]);
        let used: [f64; 3] = std::array::from_fn(|slot| gpu.used[slot] + main[slot]);
        let (is_exact, named) = (used.iter().all(|used| *used < EXACT as f64), gpu.named | more.named());
        is_exact.then(|| self.change_load(at, used, named))
    }

    #[inline(always)]
    fn change_load(&mut self, at: usize, used: [f64; 3], named: u8) -> (Load, Load) {
        let was = self.load(at);
        let now = Load { used, ..was };
        let gpu = &mut self.gpus[at];
        (gpu.used, gpu.named) = (used, named);
        if self.glance.is_summed {
            self.glance.sums.exchange(&was, &now);
        }
        (was, now)
    }
}

/// Scores the GPUs of a node by two amounts.
pub(in super::super) struct ByPair<'a> {
    totals: &'a [[f64; 3]],
    /// 0 where all GPUs have the first totals, 1 where each has its own.
    own: usize,
    pair: Pair,
}

impl ByPair<'_> {
    /// Scores a GPU. A strategy that is a constant costs nothing.
    #[inline(always)]
    pub(in super::super) fn score(&self, at: usize, gpu: &Gpu, strategy: ScoringStrategy) -> i64 {
        let load = Load { total: self.totals[at * self.own], used: gpu.used };
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
