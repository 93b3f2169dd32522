//! The allocator: which cards of a node a pod gets, or what the node lacks. Filter (`fits`) and Reserve (`give`) ask nothing
//! else, and a test holds both to the general way, so what the filter accepts is what the pod gets.
//!
//! The order of preference is Koordinator's. GPUs: an entry of the partition table (`partition`), else the narrowest
//! scope of the topology that holds them all (`scope`), else card by card. Other devices: card by card, near those of the
//! primary type where the pod asks for joint allocation. Equal cards are taken in the order of their minors. Most pods want
//! a single GPU, whichever; `single` finds the same one for them without lists. `given` is what a pod has of the cards.

use std::sync::Arc;

use pellucid_framework::topology::NumaMask;
use pellucid_model::Name;
use pellucid_model::selector::LabelSelector;
use smallvec::SmallVec;

use super::allocation::Allocation;
use super::amounts::{Amounts, MEMORY};
use super::device::{DeviceType, VirtualFunction};
use super::gradient::Prospect;
use super::hints::{Exclusive, Strategy};
use super::request::{Part, Request};
use super::row::{Card, CardInUse, CardList, Row, Switches};

#[cfg(test)]
mod agreement;
mod given;
mod partition;
mod scope;
mod score;
mod single;
#[cfg(test)]
mod tests;

use given::filled;
pub(super) use given::{allocation, amounts};
pub(super) use score::{Scoring, Strategy as ScoringStrategy};

/// What a node lacks for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// What the pod wants to keep the shares of its GPU apart.
    Isolation,
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

/// Chooses the devices of a node for a request, and returns what the pod has of them.
pub(super) fn give(row: &Row, request: &Request, terms: &Terms<'_>) -> Result<Arc<Allocation>, Lack> {
    // Most pods want a part of any GPU: for them no list of choices is made.
    let plainly = || {
        let part = request.single().filter(|part| single::is_asked(row, part))?;
        let at = single::choose_plainly(&Attempt { row, request, terms })??;
        given::shared(row, (request, part), usize::from(at))
    };
    match plainly() {
        Some(what) => Ok(what),
        None => Ok(allocation(row, request, &allocate(row, request, terms)?)),
    }
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
    let of_node = attempt.row.node().and_then(|node| node.isolation.as_ref());
    if request.isolation.as_ref().is_some_and(|wanted| of_node != Some(wanted)) {
        return Err(Lack::Isolation);
    }
    for part in &request.parts {
        attempt.check_devices(part)?;
    }
    for part in &request.parts {
        attempt.check_functions(part)?;
    }
    let candidates: SmallVec<[CardList; 3]> =
        request.parts.iter().map(|part| attempt.candidates(part)).collect();
    let mut chosen: SmallVec<[Option<Choices>; 3]> = request.parts.iter().map(|_| None).collect();
    attempt.allocate_jointly(&candidates, &mut chosen)?;
    for (at, part) in request.parts.iter().enumerate() {
        if chosen[at].is_none() {
            chosen[at] = Some(attempt.choose(part, &candidates[at], Wanted::just(attempt.count(part)))?);
        }
    }
    Ok(chosen.into_iter().flatten().flatten().collect())
}

/// A card with its turn among those of its PCIe switch and what it is worth; the least is taken first.
type Ranked = (u16, i64, u16);

/// How many devices are wanted, and where best.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) least: usize,
    pub(super) most: usize,
    /// PCIe switches whose devices are preferred.
    pub(super) near: Switches,
}

impl Wanted {
    /// Wants a number of devices, wherever.
    fn just(count: usize) -> Self {
        Self { least: count, most: count, near: 0 }
    }
}

/// An attempt to serve a request from a row.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) row: &'a Row,
    pub(super) request: &'a Request,
    pub(super) terms: &'a Terms<'a>,
}

impl Attempt<'_> {
    /// Returns the number of devices that a part wants of the node. All of a type are also those that are not healthy, so
    /// that a pod with all devices does not start with a part of them.
    pub(super) fn count(&self, part: &Part) -> usize {
        if part.hint.strategy != Strategy::ApplyForAll {
            return part.count;
        }
        let is_meant = |card: &CardInUse<'_>| match &part.hint.selector {
            Some(_) => self.is_selected(part, card),
            None => self.is_there(card),
        };
        self.row.cards_of(&part.kind).filter(is_meant).count()
    }

    /// Returns the cards that may be taken at all, whatever is free of them.
    pub(super) fn candidates(&self, part: &Part) -> CardList {
        let is_candidate = |at: &usize| self.is_candidate(part, self.row.card(*at));
        self.row.of(&part.kind).filter(is_candidate).map(|at| at as u16).collect()
    }

    fn is_candidate(&self, part: &Part, card: CardInUse<'_>) -> bool {
        card.healthy
            && self.is_aligned(&card)
            && self.is_selected(part, &card)
            && part.hint.exclusive.is_none_or(|policy| !self.is_exclusive(card, policy))
    }

    /// Returns whether the pod's selector selects a card.
    fn is_selected(&self, part: &Part, card: &Card) -> bool {
        let selects = |s: &LabelSelector| self.row.info(card).is_some_and(|info| s.matches(&info.labels));
        part.hint.selector.as_ref().is_none_or(selects)
    }

    /// Returns whether the node has a card: its Device says so, or a pod's allocation.
    fn is_there(&self, card: &Card) -> bool {
        card.info.is_some() || !self.terms.is_empty
    }

    /// Returns whether a card is on a NUMA node that it may come from.
    fn is_aligned(&self, card: &Card) -> bool {
        match (self.terms.numa, card.numa) {
            (Some(mask), Some(numa)) => mask.contains(u32::from(numa)),
            _ => true,
        }
    }

    /// Returns whether another pod keeps the card, or its switch, to itself.
    fn is_exclusive(&self, card: CardInUse<'_>, policy: Exclusive) -> bool {
        if self.terms.is_empty {
            return false;
        }
        let keeps = |other: CardInUse<'_>| other.exclusive(policy) > 0;
        match policy {
            Exclusive::Device => keeps(card),
            Exclusive::Pcie => {
                let mut beside = self.row.cards_of(&card.kind).filter(|other| other.switch == card.switch);
                beside.any(keeps)
            }
        }
    }

    /// Checks that the node has devices of a type at all.
    fn check_devices(&self, part: &Part) -> Result<(), Lack> {
        let mut cards = self.row.cards_of(&part.kind);
        match cards.any(|card| self.is_there(&card)) && self.count(part) > 0 {
            true => Ok(()),
            false => Err(Lack::Devices(name(&part.kind))),
        }
    }

    /// Checks that devices have virtual functions at all, for a pod that wants some.
    fn check_functions(&self, part: &Part) -> Result<(), Lack> {
        let has_some = |card: &Card| self.row.info(card).is_some_and(|info| !info.vf_groups.is_empty());
        let lacks =
            part.hint.functions.is_some() && !self.row.cards_of(&part.kind).any(|card| has_some(&card));
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
        free.min_by(|(a, one), (b, other)| (&one.bus, a).cmp(&(&other.bus, b))).map(|(at, _)| at)
    }

    /// Returns whether a card has what a part wants of virtual functions.
    pub(super) fn has_function(&self, part: &Part, at: u16) -> bool {
        let wanted = part.hint.functions.as_ref();
        wanted.is_none_or(|wanted| self.free_function(&self.card(at), wanted).is_some())
    }

    /// Allocates the types that the pod wants beside each other.
    fn allocate_jointly(&self, candidates: &[CardList], chosen: &mut [Option<Choices>]) -> Result<(), Lack> {
        let Some(joint) = &self.request.hints.joint else { return Ok(()) };
        let place = |kind: &DeviceType| self.request.parts.iter().position(|part| part.kind == *kind);
        let Some(primary) = joint.types.first().and_then(place) else { return Ok(()) };
        let part = &self.request.parts[primary];
        let first = self.choose(part, &candidates[primary], Wanted::just(self.count(part)))?;
        let near = self.switches(&first);
        chosen[primary] = Some(first);
        for at in joint.types[1..].iter().filter_map(place) {
            let part = &self.request.parts[at];
            if chosen[at].is_some() {
                continue;
            }
            let most = part.count.max(near.count_ones() as usize);
            let least = if joint.same_pcie { most } else { part.count };
            chosen[at] = Some(self.choose(part, &candidates[at], Wanted { least, most, near })?);
        }
        let is_elsewhere = |others: &Choices| self.switches(others) != near;
        let violates = joint.same_pcie
            && joint.types.iter().filter_map(place).filter_map(|at| chosen[at].as_ref()).any(is_elsewhere);
        if violates { Err(Lack::Joint) } else { Ok(()) }
    }

    fn switches(&self, choices: &Choices) -> Switches {
        let cards = choices.iter().map(|choice| self.card(choice.card));
        cards.filter(|card| card.has_topology).fold(0, |set, card| set | 1 << card.switch)
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
            true => scope::choose(self, part, candidates),
            // A pod gets no more GPUs than it must have, wherever the other devices are.
            false => self.choose_cards(part, candidates, Wanted::just(wanted.least)),
        }
    }

    /// Chooses an entry of the partition table; `None` when there is none to keep.
    fn choose_partition(&self, part: &Part, candidates: &CardList) -> Result<Option<Choices>, Lack> {
        let must = self.row.honors_partitions() || self.request.hints.partition.is_some();
        let Some(table) = self.row.partitions() else {
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
        let mut ranked: SmallVec<[Ranked; 16]> = SmallVec::new();
        for at in candidates.iter().copied().filter(|at| self.fits(part, *at)) {
            ranked.push((0, -self.score(part, self.card(at)), at));
        }
        ranked.sort_unstable();
        if wanted.near != 0 {
            self.take_turns(wanted.near, &mut ranked);
        }
        let mut chosen = Choices::new();
        for (_, _, at) in ranked {
            let mut choice = Choice::of(at);
            if let Some(selector) = &part.hint.functions {
                choice.function = self.free_function(&self.card(at), selector);
                if choice.function.is_none() {
                    continue;
                }
            }
            chosen.push(choice);
            if chosen.len() == wanted.most {
                break;
            }
        }
        if chosen.len() >= wanted.least { Ok(chosen) } else { Err(Lack::Devices(name(&part.kind))) }
    }

    /// Ranks the best card of each of some switches first, then the second of each, and so on, so that every switch gets
    /// one; then all others.
    fn take_turns(&self, near: Switches, ranked: &mut [Ranked]) {
        let mut taken: SmallVec<[u8; 16]> = SmallVec::new();
        for (turn, _, at) in &mut *ranked {
            let card = self.card(*at);
            *turn = u16::MAX;
            if card.has_topology && near & (1 << card.switch) != 0 {
                *turn = taken.iter().filter(|switch| **switch == card.switch).count() as u16;
                taken.push(card.switch);
            }
        }
        ranked.sort_unstable();
    }

    pub(super) fn card(&self, at: u16) -> CardInUse<'_> {
        self.row.card(usize::from(at))
    }

    /// Returns what is free of a card.
    pub(super) fn free(&self, at: u16) -> Amounts {
        let card = self.card(at);
        if self.terms.is_empty { card.total } else { card.free() }
    }

    /// Returns whether one device's part of the request is free on a card. Of memory and its ratio only what is requested
    /// counts: what follows from it is rounded, and a percent that is free would be refused for a few bytes.
    pub(super) fn fits(&self, part: &Part, at: u16) -> bool {
        let card = self.card(at);
        let none = Amounts::default();
        let used = if self.terms.is_empty { &none } else { &card.taken.used };
        part.each.fits_beside(&card.total, used)
    }

    /// Returns an upper bound of the number of pods with this part that the node takes.
    pub(super) fn at_most(&self, part: &Part) -> u64 {
        let times = |at: &u16| {
            let free = self.free(*at);
            let named = part.each.iter().filter(|(_, amount)| *amount > 0);
            named
                .map(|(resource, amount)| (free.get(resource) / amount).unsigned_abs())
                .min()
                .unwrap_or(u64::MAX)
        };
        let parts = self.candidates(part).iter().map(times).fold(0, u64::saturating_add);
        parts / (self.count(part).max(1) as u64)
    }

    /// Returns whether a pod has a part of a GPU. As in Koordinator, one that is not healthy counts for nothing, unless the
    /// pod's selector or NUMA nodes leave it out.
    pub(super) fn is_used(&self, card: CardInUse<'_>) -> bool {
        let mut parts = self.request.parts.iter().filter(|part| part.kind == card.kind);
        let mut is_left = || {
            card.info.is_some() && self.is_aligned(&card) && parts.all(|part| self.is_selected(part, &card))
        };
        !self.terms.is_empty && card.taken.pods > 0 && (card.healthy || !is_left())
    }

    /// Scores a card.
    pub(super) fn score(&self, part: &Part, card: CardInUse<'_>) -> i64 {
        if let Some(prospect) = self.terms.prospect.as_ref().filter(|_| part.kind == DeviceType::Gpu) {
            let taken = card.percent(&filled(&part.each, card.total.get(MEMORY)));
            return -prospect.fragments_with(card.left().0, taken);
        }
        let none = Amounts::default();
        let used = if self.terms.is_empty { &none } else { &card.taken.used };
        self.terms.scoring.score(&part.each, &card.total, used)
    }
}

/// Returns the name of a type that pods request.
pub(super) fn name(kind: &DeviceType) -> &'static str {
    match kind {
        DeviceType::Gpu => "gpu",
        DeviceType::Rdma => "rdma",
        DeviceType::Fpga | DeviceType::Other(_) => "fpga",
    }
}
