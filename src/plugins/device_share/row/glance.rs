//! What most requests ask of the GPUs of a node, kept in step with its allocations, so that Filter, Score and Reserve need
//! not look at cards: what is left of each, their turns, and their sums; and of a node what fits a cache line.
//!
//! Whatever this does not tell, the allocator knows.

use std::sync::Arc;

use smallvec::smallvec;

use super::super::allocator::{Lack, Scoring, ScoringStrategy, name};
use super::super::amounts::{Amounts, CORE, RATIO};
use super::super::device::DeviceType;
use super::super::request::Plain;
use super::loads::{Load, Pair, Weighed};
use super::{CardInUse, Row, count_one, turns};

/// What the GPUs of a node come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Sums {
    pub(in super::super) total: Amounts,
    /// What a card is overcommitted by is taken from no other card.
    pub(in super::super) used: Amounts,
}

impl Sums {
    /// Adds a card.
    #[inline]
    pub(in super::super) fn add(&mut self, card: &CardInUse<'_>) {
        self.total.add(&card.total);
        self.used.add_taken(&card.total, &card.taken.used);
    }
}

/// What of a node is asked most. Filter and Score walk over these, and look at the rest of a row only where they do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Glance {
    /// Whether the node has a Device.
    pub(in super::super) has_device: bool,
    /// Whether it has a partition table, or must have one.
    pub(super) has_partitions: bool,
    /// Whether the GPUs have no other resources than the amounts below, and these are exact.
    pub(super) is_summed: bool,
    /// Whether there is some of all three besides.
    pub(super) has_all: bool,
    /// What is left of the GPU of which the most is left, in percent.
    pub(super) most: u8,
    /// The sums over the GPUs. What is used of no GPU counts for more than it has.
    pub(super) sums: Load,
}

impl Glance {
    /// Returns whether a plain request for one GPU fits; otherwise it may fit too.
    #[inline]
    pub(in super::super) fn fits(&self, plain: Plain) -> bool {
        plain.count == 1 && self.most >= plain.percent && (plain.is_shared || !self.has_partitions)
    }

    /// Scores the node for a request for GPUs; `None` where their sums are not all known here.
    #[inline]
    pub(in super::super) fn score(&self, scoring: &Scoring, weighed: &Weighed) -> Option<i64> {
        self.is_summed.then(|| self.sums.score(scoring, weighed, self.has_all))
    }

    /// Does the same for a request of two amounts, as most are; `None` also where the GPUs lack a resource.
    #[inline(always)]
    pub(in super::super) fn score_pair(&self, pair: Pair, strategy: ScoringStrategy) -> Option<i64> {
        self.has_all.then(|| pair.score(&self.sums, strategy))
    }
}

impl Row {
    /// Returns what of the node is asked most.
    #[inline]
    pub(in super::super) fn glance(&self) -> &Glance {
        &self.glance
    }

    /// Returns what the GPUs come to.
    pub(in super::super) fn gpu_sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.gpus().for_each(|card| sums.add(&card));
        sums
    }

    /// Returns whether the turns of the GPUs are known: whether they are told apart by number, and none in use is unhealthy.
    #[inline]
    pub(in super::super) fn has_turns(&self) -> bool {
        self.is_noted && self.are_turns_known
    }

    /// Counts an allocation on a GPU, or one less.
    pub(super) fn note_use(&mut self, at: usize, begins: bool) {
        let gpu = &mut self.gpus[at];
        let was_used = gpu.pods > 0;
        count_one(&mut gpu.pods, begins);
        let own = *gpu;
        if !self.is_noted || was_used == (own.pods > 0) {
            return;
        }
        if !begins || !own.is_healthy || !self.are_turns_known {
            return self.note_turns();
        }
        // A turn of 0 says that the switch and the NUMA node are in use already.
        if own.is_placed && self.has_gpu_topology && own.turn != 0 {
            for gpu in self.gpus.iter_mut() {
                gpu.turn &= u8::from(gpu.switch != own.switch) << 1 | u8::from(gpu.numa != own.numa);
            }
        }
    }

    /// Finds out the turns anew.
    fn note_turns(&mut self) {
        self.are_turns_known =
            self.has_numbers && self.gpus.iter().all(|gpu| gpu.is_healthy || gpu.pods == 0);
        let found = match self.are_turns_known {
            true => turns(&self.gpus, self.has_gpu_topology, |_| true),
            false => smallvec![0; self.gpus.len()],
        };
        self.gpus.iter_mut().zip(found).for_each(|(gpu, turn)| gpu.turn = turn);
    }

    /// Computes what is left of each GPU, and of all, unless it is known.
    #[inline]
    pub(in super::super) fn note_left(&mut self) {
        if !self.is_noted {
            self.compute_left();
        }
    }

    fn compute_left(&mut self) {
        self.left.clear();
        (self.short_of_memory, self.whole) = (0, 0);
        for at in 0..self.gpus.len() {
            let card = self.card(at);
            let is_whole = card.healthy && card.total.get(CORE) >= 100 && card.total.get(RATIO) >= 100;
            let (left, is_exact) = card.left();
            self.left.push(left);
            self.short_of_memory += u16::from(!is_exact);
            self.whole += u16::from(is_whole);
        }
        self.note_loads();
        self.note_most();
        self.is_noted = true;
        self.note_turns();
    }

    /// Finds out the greatest part of a GPU that is left.
    #[inline]
    fn note_most(&mut self) {
        self.glance.most = self.left.iter().fold(0, |most, left| most.max(*left));
    }

    /// Takes back what is used of each GPU, so that it can change to anything. What is left must be computed again.
    pub(super) fn forget_left(&mut self) {
        self.forget_loads();
        self.is_noted = false;
    }

    /// Sets what is used of a GPU, and keeps all this in step with it.
    pub(super) fn set_used(&mut self, at: usize, used: Amounts) {
        match self.set_load(at, &used) {
            Some(changed) => self.note_change(at, changed),
            None => {
                self.forget_left();
                Arc::make_mut(&mut self.inventory).taken[at].used = used;
            }
        }
    }

    /// Adds to what is used of a GPU, and does the same.
    pub(super) fn add_used(&mut self, at: usize, more: &Amounts) {
        match self.add_load(at, more) {
            Some(changed) => self.note_change(at, changed),
            None => {
                self.forget_left();
                Arc::make_mut(&mut self.inventory).taken[at].used.add(more);
            }
        }
    }

    fn note_change(&mut self, at: usize, (was, now): (Load, Load)) {
        let (left, is_exact) = now.left();
        let was_exact = self.short_of_memory == 0 || was.left().1;
        self.left[at] = left;
        self.short_of_memory = self.short_of_memory + u16::from(!is_exact) - u16::from(!was_exact);
        self.note_most();
    }

    /// Returns whether a plain request fits, or what the node lacks, by what is left of each GPU; `None` when that does not tell,
    /// or when the request would not fit on the empty node.
    #[inline]
    pub(in super::super) fn fits_plainly(&self, plain: Plain) -> Option<Result<(), Lack>> {
        if self.has_partitions() && !plain.is_shared {
            return None;
        }
        let Plain { percent, count, .. } = plain;
        let fits = match count {
            1 => self.left.iter().any(|left| *left >= percent),
            _ => self.left.iter().filter(|left| **left >= percent).count() >= count,
        };
        if fits {
            return Some(Ok(()));
        }
        let is_certain = plain.is_even && self.short_of_memory == 0 && count <= usize::from(self.whole);
        let is_scoped = self.has_gpu_topology && !(plain.is_shared && count > 1);
        let lack = if is_scoped { Lack::Gpus } else { Lack::Devices(name(&DeviceType::Gpu)) };
        is_certain.then_some(Err(lack))
    }

    /// Returns what is left of each GPU in percent, if just those that have as much as a plain request says fit it.
    #[inline]
    pub(in super::super) fn left_for(&self, plain: Plain) -> Option<&[u8]> {
        (self.is_noted && plain.is_even && self.short_of_memory == 0).then_some(&self.left)
    }
}
