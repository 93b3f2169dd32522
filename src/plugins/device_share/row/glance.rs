//! What most requests ask of the GPUs of a node, kept in step with its allocations, so that Filter, Score and Reserve need
//! not look at cards: what is left of each, where each stands, and their sums; and of a node what fits a cache line.
//!
//! Whatever this does not tell, the allocator knows.

use smallvec::SmallVec;

use super::super::allocator::{Lack, Scoring, ScoringStrategy, name};
use super::super::amounts::{Amounts, CORE, RATIO};
use super::super::device::DeviceType;
use super::super::request::Plain;
use super::loads::{Load, Loads, Pair, Weighed};
use super::{CardInUse, Row};

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

/// Where a GPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Spot {
    /// Number of the PCIe switch; GPUs without topology share the number 0.
    pub(in super::super) switch: u8,
    /// Number of the NUMA node and 1 more; 0 where it is not known.
    pub(in super::super) numa: u8,
    pub(in super::super) is_healthy: bool,
    /// Whether the Device says where it is.
    pub(in super::super) is_placed: bool,
    /// Whether a pod has a part of it.
    pub(in super::super) is_used: bool,
}

impl Spot {
    pub(super) fn of(card: &CardInUse<'_>) -> Self {
        Self {
            switch: card.switch,
            numa: card.numa.map_or(0, |numa| numa.saturating_add(1)),
            is_healthy: card.healthy,
            is_placed: card.has_topology,
            is_used: card.taken.pods > 0,
        }
    }
}

/// Returns the turn of each GPU for a pod that wants one: the least is taken first. GPUs of a PCIe switch that is in use have the
/// first, then those of a NUMA node that is. Both must be told apart by number. `counts` says whether one in use counts.
pub(in super::super) fn turns(
    spots: &[Spot],
    has_topology: bool,
    counts: impl Fn(usize) -> bool,
) -> SmallVec<[u8; 8]> {
    let (mut switches, mut numa) = (0_u128, 0_u128);
    let in_use = spots.iter().enumerate().filter(|(_, spot)| spot.is_used && spot.is_placed && has_topology);
    for (_, spot) in in_use.filter(|(at, _)| counts(*at)) {
        switches |= 1 << spot.switch;
        numa |= 1 << spot.numa;
    }
    let has = |set: u128, number: u8| set >> number & 1 == 1;
    let turn = |spot: &Spot| u8::from(!has(switches, spot.switch)) << 1 | u8::from(!has(numa, spot.numa));
    spots.iter().map(turn).collect()
}

/// What of a node is asked most. Filter and Score walk over these, and look at rows only where they do not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Glance {
    /// Whether the node has a Device.
    pub(in super::super) has_device: bool,
    has_partitions: bool,
    /// Whether the GPUs have no other resources than the amounts below, and these are exact.
    is_summed: bool,
    /// Whether there is some of all three besides.
    has_all: bool,
    /// What is left of the GPU of which the most is left, in percent.
    most: u8,
    /// The sums over the GPUs.
    sums: Load,
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
    pub(in super::super) fn glance(&self) -> Glance {
        let sums = self.loads.as_ref().and_then(Loads::sum);
        Glance {
            has_device: self.device.is_some(),
            has_partitions: self.partitions.is_some() || self.honors_partitions,
            is_summed: sums.is_some(),
            has_all: sums.is_some_and(|sums| sums.has_all()),
            most: self.left.iter().fold(0, |most, left| most.max(*left)),
            sums: sums.unwrap_or_default(),
        }
    }

    /// Returns what the GPUs come to.
    pub(in super::super) fn gpu_sums(&self) -> Sums {
        let mut sums = Sums::default();
        self.gpus().for_each(|card| sums.add(&card));
        sums
    }

    /// Returns the main amounts of the GPUs, if these are all that they have.
    #[inline]
    pub(in super::super) fn loads(&self) -> Option<&Loads> {
        self.loads.as_ref()
    }

    /// Returns the turn of each GPU, if no GPU in use is unhealthy.
    #[inline]
    pub(in super::super) fn turns(&self) -> Option<&[u8]> {
        (self.is_noted && !self.turns.is_empty()).then_some(&self.turns)
    }

    /// Notes whether a pod has a part of a GPU.
    pub(super) fn note_use(&mut self, at: usize) {
        let is_used = self.counts[at] > 0;
        let Some(spot) = self.spots.get_mut(at).filter(|spot| spot.is_used != is_used) else { return };
        spot.is_used = is_used;
        let own = *spot;
        if !self.is_noted {
            return;
        }
        if !is_used || !own.is_healthy || self.turns.is_empty() {
            return self.note_turns();
        }
        // A turn of 0 says that the switch and the NUMA node are in use already.
        if own.is_placed && self.has_gpu_topology && self.turns[at] != 0 {
            for (turn, spot) in self.turns.iter_mut().zip(&self.spots) {
                *turn &= u8::from(spot.switch != own.switch) << 1 | u8::from(spot.numa != own.numa);
            }
        }
    }

    /// Finds out the turns anew.
    fn note_turns(&mut self) {
        self.turns.clear();
        if self.has_numbers && self.spots.iter().all(|spot| spot.is_healthy || !spot.is_used) {
            self.turns = turns(&self.spots, self.has_gpu_topology, |_| true);
        }
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
        for at in 0..self.n_gpus {
            let card = self.card(at);
            let is_whole = card.healthy && card.total.get(CORE) >= 100 && card.total.get(RATIO) >= 100;
            let (left, is_exact) = card.left();
            self.left.push(left);
            self.short_of_memory += u16::from(!is_exact);
            self.whole += u16::from(is_whole);
        }
        self.loads = Loads::of(self.cards[..self.n_gpus].iter().map(|card| &card.total), &self.used);
        if self.loads.is_some() {
            self.used[..self.n_gpus].fill(Amounts::default());
        }
        self.is_noted = true;
        self.note_turns();
    }

    /// Takes back what is used of each GPU, so that it can change to anything. What is left must be computed again.
    pub(super) fn forget_left(&mut self) {
        if let Some(loads) = self.loads.take() {
            (0..self.n_gpus).for_each(|at| self.used[at] = loads.used(at));
        }
        self.is_noted = false;
    }

    /// Sets what is used of a GPU, and keeps all this in step with it.
    pub(super) fn set_used(&mut self, at: usize, used: Amounts) {
        match self.loads.as_mut().and_then(|loads| loads.set_used(at, &used)) {
            Some(changed) => self.note_change(at, changed),
            None => {
                self.forget_left();
                self.used[at] = used;
            }
        }
    }

    /// Adds to what is used of a GPU, and does the same.
    pub(super) fn add_used(&mut self, at: usize, more: &Amounts) {
        match self.loads.as_mut().and_then(|loads| loads.add_used(at, more)) {
            Some(changed) => self.note_change(at, changed),
            None => {
                self.forget_left();
                self.used[at].add(more);
            }
        }
    }

    fn note_change(&mut self, at: usize, (was, now): (Load, Load)) {
        let (left, is_exact) = now.left();
        let was_exact = self.short_of_memory == 0 || was.left().1;
        self.left[at] = left;
        self.short_of_memory = self.short_of_memory + u16::from(!is_exact) - u16::from(!was_exact);
    }

    /// Returns whether a plain request fits, or what the node lacks, by what is left of each GPU; `None` when that does not tell,
    /// or when the request would not fit on the empty node.
    #[inline]
    pub(in super::super) fn fits_plainly(&self, plain: Plain) -> Option<Result<(), Lack>> {
        let has_partitions = self.partitions.is_some() || self.honors_partitions;
        if has_partitions && !plain.is_shared {
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
