//! The allocator: which cards of a node a pod gets, or what the node lacks. Filter and Reserve ask this function alone,
//! so what the filter accepts is what the pod gets.
//!
//! The order of preference is Koordinator's. GPUs: an entry of the partition table (`partition`), else the narrowest
//! scope of the topology that holds them all (`scope`), else card by card. Other devices: card by card, near those of the
//! primary type where the pod asks for joint allocation. Equal cards are taken in the order of their minors. Most pods want
//! a single GPU, whichever; `single` finds the same one for them without lists.

use pellucid_framework::topology::NumaMask;
use pellucid_model::Name;
use pellucid_model::selector::LabelSelector;
use smallvec::SmallVec;

use super::allocation::{Allocation, Given};
use super::amounts::{Amounts, MEMORY, RATIO};
use super::device::{DeviceType, VirtualFunction};
use super::gradient::Prospect;
use super::hints::{Exclusive, Strategy};
use super::request::{Part, Request};
use super::row::{Card, CardList, Row, Switches};

mod partition;
mod scope;
mod score;
mod single;
#[cfg(test)]
mod tests;

pub(super) use score::{Scoring, Strategy as ScoringStrategy};

/// What a node lacks for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// Healthy and selected devices of a type with enough free.
    Devices(&'static str),
    /// Devices of a type with virtual functions that are free and selected.
    Functions(&'static str),
    /// A partition table, although one must be kept.
    PartitionTable,
    /// Partitions of as many GPUs.
    PartitionSize,
    /// A partition that is free.
    Partition,
    /// The topology of its GPUs, although the pod wants a scope.
    Topology,
    /// Scopes are not searched for several shared GPUs.
    SharedScope,
    /// A scope with enough GPUs; any scope would do.
    Gpus,
    /// A scope with enough GPUs that is as narrow as the pod wants.
    ScopedGpus,
    /// Devices of the other types on the PCIe switches of the first.
    Joint,
}

/// What else the allocator goes by.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) scoring: &'a Scoring,
    /// The NUMA nodes that devices may come from; `None` for all. Devices without a NUMA node may always be taken.
    pub(super) numa: Option<NumaMask>,
    /// Whether the node counts as if no pod were on it.
    pub(super) is_empty: bool,
    /// Rates GPUs by what they leave of the node for typical pods, in place of `scoring`.
    pub(super) prospect: Option<Prospect<'a>>,
}

/// A card that is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Position in the row.
    pub(super) card: u16,
    /// A virtual function: the positions of its group and of itself in the group.
    function: Option<(u16, u16)>,
}

impl Choice {
    fn of(card: u16) -> Self {
        Self { card, function: None }
    }
}

pub(super) type Choices = SmallVec<[Choice; 8]>;

/// Chooses the devices of a node for a request.
pub(super) fn allocate(row: &Row, request: &Request, terms: &Terms<'_>) -> Result<Choices, Lack> {
    let attempt = Attempt { row, request, terms };
    if let Some(part) = request.single().filter(|part| single::is_asked(row, part)) {
        return single::choose(&attempt, part).map(|at| Choices::from_iter([Choice::of(at)]));
    }
    allocate_any(&attempt)
}

/// Returns whether [`allocate`] finds devices, or what the node lacks.
pub(super) fn fits(row: &Row, request: &Request, terms: &Terms<'_>) -> Result<(), Lack> {
    let attempt = Attempt { row, request, terms };
    match request.single().filter(|part| single::is_asked(row, part)) {
        Some(part) => single::fits(&attempt, part),
        None => allocate_any(&attempt).map(drop),
    }
}

/// Chooses the devices for any request.
fn allocate_any(attempt: &Attempt<'_>) -> Result<Choices, Lack> {
    let request = attempt.request;
    let mut candidates: SmallVec<[CardList; 3]> = SmallVec::new();
    for part in &request.parts {
        attempt.check_functions(part)?;
    }
    for part in &request.parts {
        candidates.push(attempt.candidates(part)?);
    }
    let mut chosen: SmallVec<[Option<Choices>; 3]> = request.parts.iter().map(|_| None).collect();
    attempt.allocate_jointly(&candidates, &mut chosen)?;
    for (at, part) in request.parts.iter().enumerate() {
        if chosen[at].is_none() {
            let count = count_of(part, &candidates[at]);
            chosen[at] =
                Some(attempt.choose(part, &candidates[at], Wanted { least: count, most: count, near: 0 })?);
        }
    }
    Ok(chosen.into_iter().flatten().flatten().collect())
}

/// Returns what the pod has of the node by these choices.
pub(super) fn allocation(row: &Row, request: &Request, choices: &Choices) -> Allocation {
    let given = |choice: &Choice| {
        let card = row.cards.get(usize::from(choice.card))?;
        card.info?;
        let function = choice.function.and_then(|(group, at)| {
            row.info(card)?.vf_groups.get(usize::from(group))?.functions.get(usize::from(at))
        });
        Some(Given {
            kind: card.kind.clone(),
            minor: card.minor,
            amounts: amounts(request, card),
            id: card.id.clone(),
            functions: function.map(|function| (function.minor, function.bus.clone())).into_iter().collect(),
        })
    };
    let exclusive = request.parts.iter().filter_map(|part| Some((part.kind.clone(), part.hint.exclusive?)));
    Allocation { given: choices.iter().filter_map(given).collect(), exclusive: exclusive.collect() }
}

/// Returns what a request takes of a card that is chosen for it.
pub(super) fn amounts(request: &Request, card: &Card) -> Amounts {
    let part = request.parts.iter().find(|part| part.kind == card.kind);
    part.map(|part| filled(&part.each, &card.total)).unwrap_or_default()
}

/// Returns the number of devices that a part wants of its candidates.
pub(super) fn count_of(part: &Part, candidates: &CardList) -> usize {
    match part.hint.strategy {
        Strategy::ApplyForAll if part.kind != DeviceType::Gpu => candidates.len(),
        _ => part.count,
    }
}

/// How many devices are wanted, and where best.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) least: usize,
    pub(super) most: usize,
    /// PCIe switches whose devices are preferred.
    pub(super) near: Switches,
}

/// An attempt to serve a request from a row.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) row: &'a Row,
    pub(super) request: &'a Request,
    pub(super) terms: &'a Terms<'a>,
}

impl Attempt<'_> {
    /// Returns the cards that may be taken at all, whatever is free of them. Fails when there can be none.
    pub(super) fn candidates(&self, part: &Part) -> Result<CardList, Lack> {
        let cards = self.row.of(&part.kind);
        let known = |at: &usize| self.row.cards[*at].info.is_some();
        let is_gpu = part.kind == DeviceType::Gpu;
        if is_gpu && !cards.clone().any(|at| known(&at)) {
            return Err(Lack::Devices(name(&part.kind)));
        }
        let is_candidate = |at: &usize| self.is_candidate(part, &self.row.cards[*at]);
        let all: CardList = cards.filter(is_candidate).map(|at| at as u16).collect();
        if all.is_empty() && !is_gpu { Err(Lack::Devices(name(&part.kind))) } else { Ok(all) }
    }

    fn is_candidate(&self, part: &Part, card: &Card) -> bool {
        let selects = |selector: &Option<LabelSelector>, card: &Card| {
            selector.as_ref().is_none_or(|s| self.row.info(card).is_some_and(|info| s.matches(&info.labels)))
        };
        card.healthy
            && self.is_aligned(card)
            && selects(&part.hint.selector, card)
            && part.hint.functions.as_ref().is_none_or(|wanted| self.functions(card, wanted).next().is_some())
            && part.hint.exclusive.is_none_or(|policy| !self.is_exclusive(card, policy))
    }

    /// Returns whether a card is on a NUMA node that it may come from.
    fn is_aligned(&self, card: &Card) -> bool {
        match (self.terms.numa, card.numa) {
            (Some(mask), Some(numa)) => mask.contains(u32::from(numa)),
            _ => true,
        }
    }

    /// Returns whether another pod keeps the card, or its switch, to itself.
    fn is_exclusive(&self, card: &Card, policy: Exclusive) -> bool {
        if self.terms.is_empty {
            return false;
        }
        let keeps = |other: &Card| other.exclusive(policy) > 0;
        match policy {
            Exclusive::Device => keeps(card),
            Exclusive::Pcie => {
                let cards = &self.row.cards[self.row.of(&card.kind)];
                cards.iter().filter(|other| other.switch == card.switch).any(keeps)
            }
        }
    }

    /// Checks that devices have virtual functions at all, for a pod that wants some.
    fn check_functions(&self, part: &Part) -> Result<(), Lack> {
        let has_some = |card: &Card| self.row.info(card).is_some_and(|info| !info.vf_groups.is_empty());
        let lacks = part.hint.functions.is_some()
            && part.kind != DeviceType::Gpu
            && !self.row.cards[self.row.of(&part.kind)].iter().any(has_some);
        if lacks { Err(Lack::Functions(name(&part.kind))) } else { Ok(()) }
    }

    /// Iterates over the virtual functions of a card that are selected, in use or not.
    fn functions<'a>(
        &'a self,
        card: &'a Card,
        wanted: &'a LabelSelector,
    ) -> impl Iterator<Item = ((u16, u16), &'a VirtualFunction)> {
        let groups = self.row.info(card).into_iter().flat_map(|info| info.vf_groups.iter().enumerate());
        let selected = groups.filter(|(_, group)| wanted.matches(&group.labels));
        selected.flat_map(|(at, group)| {
            let all = group.functions.iter().enumerate();
            all.map(move |(n, function)| ((at as u16, n as u16), function))
        })
    }

    fn free_function(&self, card: &Card, wanted: &LabelSelector) -> Option<(u16, u16)> {
        let is_free = |bus: &Name| self.terms.is_empty || !self.row.is_function_used(card, bus);
        let free = self.functions(card, wanted).filter(|(_, function)| is_free(&function.bus));
        free.min_by_key(|(at, function)| (function.minor, *at)).map(|(at, _)| at)
    }

    /// Allocates the types that the pod wants beside each other.
    fn allocate_jointly(&self, candidates: &[CardList], chosen: &mut [Option<Choices>]) -> Result<(), Lack> {
        let Some(joint) = &self.request.hints.joint else { return Ok(()) };
        let place = |kind: &DeviceType| self.request.parts.iter().position(|part| part.kind == *kind);
        let Some(primary) = joint.types.first().and_then(place) else { return Ok(()) };
        let count = count_of(&self.request.parts[primary], &candidates[primary]);
        let wanted = Wanted { least: count, most: count, near: 0 };
        let first = self.choose(&self.request.parts[primary], &candidates[primary], wanted)?;
        let near = self.switches(&first);
        chosen[primary] = Some(first);
        for at in joint.types[1..].iter().filter_map(place) {
            let part = &self.request.parts[at];
            // All devices of a type are not near anything.
            if chosen[at].is_some() || part.hint.strategy == Strategy::ApplyForAll {
                continue;
            }
            let most = part.count.max(near.count_ones() as usize);
            let least = if joint.same_pcie { most } else { part.count };
            let others = self.choose(part, &candidates[at], Wanted { least, most, near })?;
            if joint.same_pcie && self.switches(&others) != near {
                return Err(Lack::Joint);
            }
            chosen[at] = Some(others);
        }
        Ok(())
    }

    fn switches(&self, choices: &Choices) -> Switches {
        choices.iter().fold(0, |set, choice| set | 1 << self.row.cards[usize::from(choice.card)].switch)
    }

    fn choose(&self, part: &Part, candidates: &CardList, wanted: Wanted) -> Result<Choices, Lack> {
        if part.kind != DeviceType::Gpu {
            return self.choose_cards(part, candidates, wanted);
        }
        if !part.is_shared {
            match self.choose_partition(part, candidates) {
                Ok(Some(chosen)) => return Ok(chosen),
                Ok(None) => {}
                Err(lack) => return Err(lack),
            }
        }
        let is_multiple = part.is_shared && part.count > 1;
        if part.hint.scope.is_some() {
            if !self.row.has_gpu_topology {
                return Err(Lack::Topology);
            }
            if is_multiple {
                return Err(Lack::SharedScope);
            }
        }
        match self.row.has_gpu_topology && !is_multiple {
            true => scope::choose(self, part, candidates, wanted),
            false => self.choose_cards(part, candidates, wanted),
        }
    }

    /// Chooses an entry of the partition table; `None` when there is none to keep.
    fn choose_partition(&self, part: &Part, candidates: &CardList) -> Result<Option<Choices>, Lack> {
        let must = self.row.honors_partitions || self.request.hints.partition.is_some();
        let Some(table) = &self.row.partitions else {
            return if must { Err(Lack::PartitionTable) } else { Ok(None) };
        };
        let cards = partition::choose(self, part, candidates, table);
        match cards {
            Ok(cards) => Ok(Some(cards.into_iter().map(Choice::of).collect())),
            Err(lack) if must => Err(lack),
            Err(_) => Ok(None),
        }
    }

    /// Chooses the best cards one by one.
    pub(super) fn choose_cards(
        &self,
        part: &Part,
        candidates: &[u16],
        wanted: Wanted,
    ) -> Result<Choices, Lack> {
        let mut ranked: SmallVec<[(bool, i64, u16); 16]> = SmallVec::new();
        for at in candidates.iter().copied().filter(|at| self.fits(part, *at)) {
            let card = self.card(at);
            let is_far = wanted.near & (1 << card.switch) == 0;
            ranked.push((is_far, -self.score(part, card), at));
        }
        ranked.sort_unstable();
        let mut chosen = Choices::new();
        let mut lacks_function = false;
        for (_, _, at) in ranked {
            let mut choice = Choice::of(at);
            if let Some(selector) = &part.hint.functions {
                choice.function = self.free_function(self.card(at), selector);
                if choice.function.is_none() && part.kind != DeviceType::Gpu {
                    lacks_function = true;
                    continue;
                }
            }
            chosen.push(choice);
            if chosen.len() == wanted.most {
                break;
            }
        }
        match chosen.len() >= wanted.least {
            true => Ok(chosen),
            false if lacks_function => Err(Lack::Functions(name(&part.kind))),
            false => Err(Lack::Devices(name(&part.kind))),
        }
    }

    pub(super) fn card(&self, at: u16) -> &Card {
        &self.row.cards[usize::from(at)]
    }

    /// Returns what is free of a card.
    pub(super) fn free(&self, card: &Card) -> Amounts {
        if self.terms.is_empty { card.total } else { card.total.less(&card.used) }
    }

    /// Returns whether one device's part of the request is free on a card.
    pub(super) fn fits(&self, part: &Part, at: u16) -> bool {
        let card = self.card(at);
        let none = Amounts::default();
        let used = if self.terms.is_empty { &none } else { &card.used };
        filled(&part.each, &card.total).fits_beside(&card.total, used)
    }

    /// Returns an upper bound of the number of pods with this part that the node takes.
    pub(super) fn at_most(&self, part: &Part) -> u64 {
        let Ok(candidates) = self.candidates(part) else { return 0 };
        let times = |at: &u16| {
            let card = self.card(*at);
            let (wanted, free) = (filled(&part.each, &card.total), self.free(card));
            let named = wanted.iter().filter(|(_, amount)| *amount > 0);
            named
                .map(|(resource, amount)| (free.get(resource) / amount).unsigned_abs())
                .min()
                .unwrap_or(u64::MAX)
        };
        let parts = candidates.iter().map(times).fold(0, u64::saturating_add);
        parts / (count_of(part, &candidates).max(1) as u64)
    }

    /// Returns whether a pod has a part of a card.
    pub(super) fn is_used(&self, card: &Card) -> bool {
        !self.terms.is_empty && card.pods > 0
    }

    /// Scores a card.
    pub(super) fn score(&self, part: &Part, card: &Card) -> i64 {
        if let Some(prospect) = self.terms.prospect.as_ref().filter(|_| part.kind == DeviceType::Gpu) {
            let taken = card.percent(&filled(&part.each, &card.total));
            return -prospect.fragments_with(card.left().0, taken);
        }
        let none = Amounts::default();
        let used = if self.terms.is_empty { &none } else { &card.used };
        self.terms.scoring.score(&part.each, &card.total, used)
    }
}

/// Returns what a request takes of a card: of memory and its ratio, the one that is not requested follows from the other.
/// Both are rounded down as Koordinator does, in floating point.
pub(super) fn filled(each: &Amounts, card: &Amounts) -> Amounts {
    let (mut made, all) = (*each, card.get(MEMORY));
    match (each.has(MEMORY), each.has(RATIO)) {
        (true, false) if all > 0 => made.set(RATIO, (each.get(MEMORY) as f64 / all as f64 * 100.0) as i64),
        (true, false) => made.set(RATIO, 0),
        (false, true) => {
            let ratio = each.get(RATIO);
            let memory = all.checked_mul(ratio).map_or_else(
                || i64::try_from(i128::from(all) * i128::from(ratio) / 100).unwrap_or(i64::MAX),
                |hundredfold| hundredfold / 100,
            );
            made.set(MEMORY, memory);
        }
        _ => {}
    }
    made
}

/// Returns the name of a type that pods request.
pub(super) fn name(kind: &DeviceType) -> &'static str {
    match kind {
        DeviceType::Gpu => "gpu",
        DeviceType::Rdma => "rdma",
        DeviceType::Fpga | DeviceType::Other(_) => "fpga",
    }
}
