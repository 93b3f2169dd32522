//! What most requests ask of the GPUs of a node, kept in step with its allocations, so that Filter, Score and Reserve need
//! not look at cards: what is left of each, where each stands, and their sums; and of a node what fits a cache line.
//!
//! Whatever this does not tell, the allocator knows.

use pellucid_plugin_helper::scored::EXACT;
use smallvec::SmallVec;

use super::super::allocator::{Lack, Scoring, ScoringStrategy, name};
use super::super::amounts::{Amounts, CORE, MEMORY, RATIO, Resource};
use super::super::device::DeviceType;
use super::super::request::Plain;
use super::{Card, Row};

/// What most GPUs have, in the order of [`Load`].
const MAIN: [Resource; 3] = [CORE, MEMORY, RATIO];

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
    pub(in super::super) fn add(&mut self, card: &Card) {
        self.total.add(&card.total);
        self.used.add_taken(&card.total, &card.used);
    }
}

/// The amounts of a GPU that are asked most, of all GPUs of a node beside each other: where a request is for nothing but
/// percent, these are all that says which of them scores best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Load {
    total: [i64; 3],
    used: [i64; 3],
}

impl Load {
    fn of(card: &Card) -> Self {
        let of = |amounts: &Amounts| MAIN.map(|resource| amounts.get(resource));
        Self { total: of(&card.total), used: of(&card.used) }
    }

    /// Returns whether there is some of all three, and so little that it is divided without an error.
    #[inline]
    fn is_ordinary(&self) -> bool {
        self.total.iter().all(|total| (1..EXACT).contains(total))
            && self.used.iter().all(|used| (0..EXACT).contains(used))
    }

    /// Scores the GPU as [`Scoring::score`] does, if it has no other resources. `is_ordinary` may be false although it is.
    #[inline(always)]
    pub(in super::super) fn score(&self, scoring: &Scoring, weighed: &Weighed, is_ordinary: bool) -> i64 {
        match &weighed.pair {
            Some(pair) if is_ordinary => pair.score(self),
            _ => self.score_any(scoring, weighed),
        }
    }

    /// Scores the GPU by any weights, and where sums may overflow.
    #[inline(never)]
    fn score_any(&self, scoring: &Scoring, weighed: &Weighed) -> i64 {
        let of = |(slot, weight, amount): &(usize, i64, i64)| {
            (*weight, self.total[*slot], self.used[*slot].saturating_add(*amount))
        };
        scoring.mean(weighed.all.iter().map(of))
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
    pub(super) fn of(card: &Card) -> Self {
        Self {
            switch: card.switch,
            numa: card.numa.map_or(0, |numa| numa.saturating_add(1)),
            is_healthy: card.healthy,
            is_placed: card.has_topology,
            is_used: card.pods > 0,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Glance {
    /// Whether the node has a Device.
    pub(in super::super) has_device: bool,
    has_partitions: bool,
    /// Whether the GPUs have no other resources than the amounts below.
    is_summed: bool,
    /// Whether these are ordinary amounts.
    is_ordinary: bool,
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
        self.is_summed.then(|| self.sums.score(scoring, weighed, self.is_ordinary))
    }
}

/// Of a request for GPUs, by what cards and nodes are scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Weighed {
    /// Slots of [`Load`], weights and amounts.
    all: SmallVec<[(usize, i64, i64); 3]>,
    pair: Option<Pair>,
}

/// The same where it is two of weight 1 and of ordinary amounts, as by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// Slots of [`Load`], and amounts.
    of: [(usize, i64); 2],
    strategy: ScoringStrategy,
}

impl Pair {
    /// Scores ordinary amounts.
    #[inline(always)]
    fn score(&self, load: &Load) -> i64 {
        let with = |(slot, amount): (usize, i64)| (load.total[slot], load.used[slot] + amount);
        self.strategy.mean_of_two(with(self.of[0]), with(self.of[1]))
    }
}

impl Weighed {
    /// Returns what a request is scored by.
    pub(in super::super) fn new(scoring: &Scoring, each: &Amounts) -> Self {
        let slot = |resource: &Resource| MAIN.iter().position(|main| main == resource);
        let of = |(resource, weight): &(Resource, i64)| Some((slot(resource)?, *weight, each.get(*resource)));
        let all: SmallVec<[_; 3]> = scoring.weights.iter().filter_map(of).collect();
        let pair = match all[..] {
            [(a, 1, of_a), (b, 1, of_b)] if [of_a, of_b].iter().all(|of| (0..EXACT).contains(of)) => {
                Some(Pair { of: [(a, of_a), (b, of_b)], strategy: scoring.strategy })
            }
            _ => None,
        };
        Self { all, pair }
    }
}

impl Row {
    /// Returns what of the node is asked most.
    pub(in super::super) fn glance(&self) -> Glance {
        let Sums { total, used } = &self.gpu_sums;
        let sums = Load {
            total: MAIN.map(|resource| total.get(resource)),
            used: MAIN.map(|resource| used.get(resource)),
        };
        Glance {
            has_device: self.device.is_some(),
            has_partitions: self.partitions.is_some() || self.honors_partitions,
            is_summed: self.has_main_alone(),
            is_ordinary: sums.is_ordinary(),
            most: self.left.iter().copied().max().unwrap_or(0),
            sums,
        }
    }

    /// Returns whether no GPU has other resources than those of [`MAIN`].
    #[inline]
    fn has_main_alone(&self) -> bool {
        self.gpu_sums.total.iter().all(|(resource, _)| MAIN.contains(&resource))
    }

    /// Returns the amounts of the GPUs, if these are all that they have.
    #[inline]
    pub(in super::super) fn loads(&self) -> Option<&[Load]> {
        (self.is_noted && self.has_main_alone()).then_some(&self.loads)
    }

    /// Returns whether the amounts of every GPU are ordinary.
    #[inline]
    pub(in super::super) fn has_ordinary_loads(&self) -> bool {
        self.extraordinary == 0
    }

    /// Returns the turn of each GPU, if no GPU in use is unhealthy.
    #[inline]
    pub(in super::super) fn turns(&self) -> Option<&[u8]> {
        (self.is_noted && !self.turns.is_empty()).then_some(&self.turns)
    }

    /// Finds out the turns anew after a GPU has come into use, or out of it.
    pub(super) fn note_turns(&mut self) {
        self.turns.clear();
        if self.has_numbers && self.spots.iter().all(|spot| spot.is_healthy || !spot.is_used) {
            self.turns = turns(&self.spots, self.has_gpu_topology, |_| true);
        }
    }

    /// Computes what is left of each GPU, and of all, unless it is known.
    pub(in super::super) fn note_left(&mut self) {
        if self.is_noted {
            return;
        }
        self.left.clear();
        self.loads.clear();
        (self.short_of_memory, self.whole, self.extraordinary) = (0, 0, 0);
        self.gpu_sums = Sums::default();
        for card in &self.cards[..self.n_gpus] {
            let (left, is_exact) = card.left();
            self.left.push(left);
            let load = Load::of(card);
            self.loads.push(load);
            self.extraordinary += usize::from(!load.is_ordinary());
            self.short_of_memory += usize::from(!is_exact);
            let is_whole = card.healthy && card.total.get(CORE) >= 100 && card.total.get(RATIO) >= 100;
            self.whole += usize::from(is_whole);
            self.gpu_sums.add(card);
        }
        // A sum that is too large for a number cannot be kept in step.
        self.is_noted = self.gpu_sums.total.iter().all(|(_, total)| total < i64::MAX);
        self.note_turns();
    }

    /// Keeps what is left in step with a change of what is used of a card.
    pub(super) fn note_change(&mut self, at: usize, before: &Amounts) {
        let Some(left) = self.left.get_mut(at).filter(|_| self.is_noted) else { return };
        let card = &self.cards[at];
        let ((now, is_exact), (_, was_exact)) = (card.left_beside(&card.used), card.left_beside(before));
        *left = now;
        let (load, was) = (Load::of(card), self.loads[at]);
        self.loads[at] = load;
        self.extraordinary =
            self.extraordinary + usize::from(!load.is_ordinary()) - usize::from(!was.is_ordinary());
        self.short_of_memory = self.short_of_memory + usize::from(!is_exact) - usize::from(!was_exact);
        self.gpu_sums.used.exchange_taken(&card.total, before, &card.used);
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
        let is_certain = plain.is_even && self.short_of_memory == 0 && count <= self.whole;
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
