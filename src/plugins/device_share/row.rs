//! The cards of one node as the allocator sees them: a flat array by type and minor, with what is used of each.
//!
//! A row is made of a Device and of the allocations of the pods on the node. A card that only an allocation names is part
//! of it, without anything to give. Invariant: what is used of a card is the sum of the allocations. `card` is a card as the Device
//! describes it, with what pods have of it. `loads` has what most requests ask of the GPUs, and `glance` what they ask of the node:
//! a decision needs no look at the cards, which lie far away.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::{Name, PodId, PodKey};
use smallvec::SmallVec;

use super::allocation::{Allocation, Given};
use super::amounts::Amounts;
use super::device::{Device, DeviceInfo, DeviceType, PartitionPolicy, PartitionTable, built_in_partitions};

mod card;
mod glance;
mod loads;

pub(super) use card::{Card, CardInUse};
use card::{Taken, switches};
use glance::Spot;
pub(super) use glance::{Glance, Sums, turns};
use loads::Loads;
pub(super) use loads::{ByPair, Pair, Weighed};

/// Number of GPUs that partitions may name.
const MAX_GPUS: usize = 64;

/// A set of PCIe switches of a node, by number.
pub(super) type Switches = u128;

/// An entry of the partition table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) size: usize,
    /// The GPUs, one bit each by their order in the row.
    pub(super) cards: u64,
    /// Whether each of them is there.
    pub(super) is_there: bool,
    pub(super) score: i64,
    pub(super) bandwidth: i64,
}

/// What of a Node object matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeFacts {
    pub(super) policy: Option<PartitionPolicy>,
    /// Label `node.koordinator.sh/gpu-model`, of GPUs of NVIDIA; theirs are those of which nobody says who made them.
    pub(super) nvidia_model: Option<Name>,
    /// What keeps the shares of a GPU apart there.
    pub(super) isolation: Option<Name>,
}

/// An allocation of a pod on the node. The pod's name is in its record ([`key`](Self::key)): a copy would cost a look at the
/// name, which lies far away, at every decision.
#[derive(Clone, Debug)]
pub(super) struct PodOnCards {
    pub(super) id: PodId,
    pub(super) what: Arc<Allocation>,
}

impl PodOnCards {
    /// Returns the pod's name, which every pod with a hold has.
    pub(super) fn key(&self, view: View<'_>) -> PodKey {
        view.cluster().pod(self.id).map(|record| record.pod.key.clone()).unwrap_or_default()
    }
}

/// The cards of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// `None` while the node has no Device, or no Node object.
    pub(super) device: Option<Arc<Device>>,
    /// `None` while there is no Node object.
    pub(super) node: Option<NodeFacts>,
    /// By type, then minor.
    cards: Vec<Card>,
    /// What is used of each card; nothing of GPUs, where `loads` says it.
    used: Vec<Amounts>,
    /// Number of allocations on each card.
    counts: SmallVec<[u16; 8]>,
    /// Number of allocations on each card that do not share the device, and the switch.
    exclusive: Vec<[u16; 2]>,
    /// Number of cards that the Device names.
    n_known: usize,
    /// Whether the GPUs are those of the Device, and stand at their minors.
    is_in_order: bool,
    pub(super) pods: SmallVec<[PodOnCards; 8]>,
    /// By size and score; `None` when the node has no table.
    pub(super) partitions: Option<Vec<Entry>>,
    pub(super) honors_partitions: bool,
    /// Whether the places of all GPUs are known.
    pub(super) has_gpu_topology: bool,
    /// What is left of each GPU, in percent: a request for no more of its computing power and memory fits. In the order
    /// of the GPUs; 0 of those that are not healthy.
    pub(super) left: SmallVec<[u8; 16]>,
    /// The main amounts of the GPUs, where these are all.
    loads: Option<Loads>,
    /// The turn of each GPU for a pod that wants one; empty where that is not known without the pod.
    turns: SmallVec<[u8; 8]>,
    /// Number of GPUs whose memory alone is what they have too little of.
    short_of_memory: u16,
    /// Number of GPUs that take whole requests when no pod is on them.
    whole: u16,
    /// Whether all of this holds for the cards as they are, and can be kept in step with the allocations.
    is_noted: bool,
    n_gpus: usize,
    /// By GPU.
    spots: SmallVec<[Spot; 8]>,
    /// Whether the GPUs' switches and NUMA nodes are told apart by number.
    pub(super) has_numbers: bool,
    /// Virtual functions in use, by device and bus address.
    functions: Vec<(DeviceType, i64, Name)>,
}

impl Row {
    /// Returns whether nothing is known of the node's devices.
    pub(super) fn is_empty(&self) -> bool {
        self.device.is_none() && self.node.is_none() && self.pods.is_empty()
    }

    /// Computes everything anew from the Device, the Node and the allocations.
    pub(super) fn rebuild(&mut self) {
        let device = self.device.clone();
        self.forget_left();
        self.cards.clear();
        self.used.clear();
        self.counts.clear();
        self.exclusive.clear();
        self.functions.clear();
        let switches = device.as_deref().map(switches).unwrap_or_default();
        for (at, info) in device.iter().flat_map(|device| device.devices.iter().enumerate()) {
            self.cards.push(Card::of(at, info, &switches));
        }
        self.n_known = self.cards.len();
        self.used.resize(self.n_known, Amounts::default());
        self.counts.resize(self.n_known, 0);
        self.exclusive.resize(self.n_known, [0; 2]);
        self.count_gpus();
        self.has_numbers = self.cards[..self.n_gpus].iter().all(Card::is_told_apart);
        for pod in std::mem::take(&mut self.pods) {
            self.count(&pod.what, true);
            self.pods.push(pod);
        }
        self.read_partitions();
    }

    /// Reads the table of partitions, whose entries name GPUs by position.
    fn read_partitions(&mut self) {
        let device = self.device.as_deref();
        let facts = self.node.as_ref();
        let own = device.and_then(|device| device.partitions.as_ref());
        // Who writes the table says whether it must be kept.
        let policy = match own {
            Some(_) => device.and_then(|device| device.policy),
            None => facts.and_then(|facts| facts.policy),
        };
        self.honors_partitions = policy == Some(PartitionPolicy::Honor);
        let model = device.and(facts).and_then(|facts| facts.nvidia_model.as_deref());
        let table = own.cloned().or_else(|| model.and_then(built_in_partitions));
        self.partitions = table.map(|table| self.entries(&table));
    }

    fn entries(&self, table: &PartitionTable) -> Vec<Entry> {
        let gpus = self.of(&DeviceType::Gpu);
        let bit = |minor: &i64| {
            let known = self.cards[gpus.clone()].iter().take(MAX_GPUS).position(|card| card.minor == *minor);
            known.map(|at| 1u64 << at)
        };
        let sized = table.iter().flat_map(|(size, all)| all.iter().map(move |partition| (*size, partition)));
        let entry = |(size, partition): (usize, &super::device::Partition)| Entry {
            size,
            cards: partition.minors.iter().filter_map(bit).fold(0, |set, bit| set | bit),
            is_there: partition.minors.iter().all(|minor| bit(minor).is_some()),
            score: partition.score,
            bandwidth: partition.bandwidth,
        };
        sized.map(entry).collect()
    }

    /// Returns whether devices that are allocated beside others take no part in the node's score.
    pub(super) fn is_well_planned(&self) -> bool {
        self.device.as_deref().is_some_and(|device| device.is_well_planned)
    }

    /// Returns whether GPUs are chosen one by one, whatever their links.
    pub(super) fn is_plain(&self) -> bool {
        self.partitions.is_none() && !self.honors_partitions && !self.has_gpu_topology
    }

    /// Returns where the GPUs stand.
    #[inline]
    pub(super) fn spots(&self) -> &[Spot] {
        &self.spots
    }

    /// Returns a card.
    #[inline]
    pub(super) fn card(&self, at: usize) -> CardInUse<'_> {
        let loads = self.loads.as_ref().filter(|_| at < self.n_gpus);
        let used = loads.map_or_else(|| self.used[at], |loads| loads.used(at));
        CardInUse {
            card: &self.cards[at],
            taken: Taken { used, pods: self.counts[at], exclusive: self.exclusive[at] },
        }
    }

    /// Iterates over the cards, by type and minor.
    pub(super) fn cards(&self) -> impl Iterator<Item = CardInUse<'_>> {
        (0..self.cards.len()).map(|at| self.card(at))
    }

    /// Iterates over the cards of a type.
    pub(super) fn cards_of(&self, kind: &DeviceType) -> impl Iterator<Item = CardInUse<'_>> {
        self.of(kind).map(|at| self.card(at))
    }

    /// Iterates over the GPUs.
    pub(super) fn gpus(&self) -> impl ExactSizeIterator<Item = CardInUse<'_>> {
        (0..self.n_gpus).map(|at| self.card(at))
    }

    /// Returns the memory of a GPU of the Device that stands at its minor, in bytes, if that is known without a look at the card.
    pub(super) fn memory_in_order(&self, at: usize) -> Option<i64> {
        self.loads.as_ref().filter(|_| self.is_in_order && at < self.n_gpus).map(|loads| loads.memory(at))
    }

    /// Follows a card that came for an allocation alone, or went with it: others stand elsewhere now.
    fn cards_changed(&mut self) {
        self.count_gpus();
        self.read_partitions();
    }

    fn count_gpus(&mut self) {
        self.n_gpus = self.cards.partition_point(|card| card.kind == DeviceType::Gpu);
        // Scopes would leave a GPU out whose place is not known.
        let gpus = &self.cards[..self.n_gpus];
        let mut known = gpus.iter().filter(|card| card.info.is_some()).peekable();
        self.has_gpu_topology = known.peek().is_some() && known.all(|card| card.has_topology);
        self.spots = self.gpus().map(|card| Spot::of(&card)).collect();
        let is_at = |(at, card): (usize, &Card)| {
            card.info.is_some_and(|info| usize::from(info) == at) && card.minor == at as i64
        };
        self.is_in_order = gpus.iter().enumerate().all(is_at);
    }

    /// Returns the positions of the cards of a type.
    pub(super) fn of(&self, kind: &DeviceType) -> std::ops::Range<usize> {
        if *kind == DeviceType::Gpu {
            // They come first.
            return 0..self.n_gpus;
        }
        let start = self.cards.partition_point(|card| card.kind < *kind);
        let end = self.cards.partition_point(|card| card.kind <= *kind);
        start..end
    }

    /// Returns what the Device says about a card.
    pub(super) fn info(&self, card: &Card) -> Option<&DeviceInfo> {
        self.device.as_deref()?.devices.get(usize::from(card.info?))
    }

    /// Returns whether a virtual function of a card is in use.
    pub(super) fn is_function_used(&self, card: &Card, bus: &Name) -> bool {
        let is_it = |(kind, minor, used): &(DeviceType, i64, Name)| {
            *minor == card.minor && used == bus && *kind == card.kind
        };
        self.functions.iter().any(is_it)
    }

    /// Returns how many virtual functions of a card are in use.
    pub(super) fn functions_used(&self, card: &Card) -> usize {
        let is_of = |(kind, minor, _): &&(DeviceType, i64, Name)| *minor == card.minor && *kind == card.kind;
        self.functions.iter().filter(is_of).count()
    }

    /// Adds the allocation of a pod.
    pub(super) fn add(&mut self, pod: PodOnCards) {
        self.count(&pod.what, true);
        self.pods.push(pod);
    }

    /// Removes the allocation of a pod.
    pub(super) fn remove(&mut self, id: PodId) {
        let Some(at) = self.pods.iter().rposition(|pod| pod.id == id) else { return };
        let pod = self.pods.swap_remove(at);
        self.count(&pod.what, false);
        if self.cards.len() > self.n_known {
            self.drop_unneeded();
        }
    }

    /// Removes the cards that were there for an allocation alone, which has gone.
    fn drop_unneeded(&mut self) {
        let is_unneeded = |row: &Self, at: usize| row.cards[at].info.is_none() && row.counts[at] == 0;
        while let Some(at) = (0..self.cards.len()).find(|at| is_unneeded(self, *at)) {
            self.forget_left();
            self.cards.remove(at);
            self.used.remove(at);
            self.counts.remove(at);
            self.exclusive.remove(at);
            self.cards_changed();
        }
    }

    /// Returns the row as if of each card nothing were free but what is left of an allocation.
    pub(super) fn within(&self, room: &Allocation) -> Self {
        let mut row = self.clone();
        row.forget_left();
        for (card, used) in row.cards.iter().zip(&mut row.used) {
            let own = room.given.iter().filter(|given| given.minor == card.minor && given.kind == card.kind);
            let mut left = Amounts::default();
            own.for_each(|given| left.add(&given.amounts));
            let free = card.total.less(used);
            let left =
                Amounts::of(free.iter().map(|(resource, free)| (resource, free.min(left.get(resource)))));
            *used = card.total.less(&left);
        }
        row
    }

    // Most pods have a part of a GPU and nothing else. What other pods have is counted in separate functions, so that these need no
    // registers here.
    fn count(&mut self, what: &Allocation, begins: bool) {
        for given in &what.given {
            let at = self.known_gpu(given).unwrap_or_else(|| self.find_or_insert(given));
            if !what.exclusive.is_empty() || !given.functions.is_empty() {
                self.count_uses(what, (given, at), begins);
            }
            match given.kind == DeviceType::Gpu {
                true => self.count_gpu(at, &given.amounts, begins),
                false => self.count_other(at, &given.amounts, begins),
            }
        }
    }

    #[inline(never)]
    fn count_gpu(&mut self, at: usize, amounts: &Amounts, begins: bool) {
        count_one(&mut self.counts[at], begins);
        match begins {
            true => self.add_used(at, amounts),
            false => self.set_used(at, self.sum_of(at)),
        }
        self.note_use(at);
    }

    #[inline(never)]
    fn count_other(&mut self, at: usize, amounts: &Amounts, begins: bool) {
        count_one(&mut self.counts[at], begins);
        match begins {
            true => self.used[at].add(amounts),
            false => self.used[at] = self.sum_of(at),
        }
    }

    /// Counts what an allocation says of a card besides its amounts.
    #[inline(never)]
    fn count_uses(&mut self, what: &Allocation, (given, at): (&Given, usize), begins: bool) {
        for (_, policy) in what.exclusive.iter().filter(|(kind, _)| *kind == given.kind) {
            count_one(&mut self.exclusive[at][*policy as usize], begins);
        }
        for (_, bus) in &given.functions {
            let key = (given.kind.clone(), given.minor, bus.clone());
            if begins {
                self.functions.push(key);
            } else if let Some(at) = self.functions.iter().position(|known| *known == key) {
                self.functions.swap_remove(at);
            }
        }
    }

    /// Computes what is used of a card from the allocations that are left. Amounts saturate, so they cannot be
    /// subtracted.
    fn sum_of(&self, at: usize) -> Amounts {
        let (card, mut used) = (&self.cards[at], Amounts::default());
        for given in self.pods.iter().flat_map(|pod| &pod.what.given) {
            if given.minor == card.minor && given.kind == card.kind {
                used.add(&given.amounts);
            }
        }
        used
    }

    /// Returns the position of a GPU that stands at its minor.
    fn known_gpu(&self, given: &Given) -> Option<usize> {
        let minor = usize::try_from(given.minor).ok();
        minor.filter(|at| self.is_in_order && *at < self.n_gpus && given.kind == DeviceType::Gpu)
    }

    #[inline(never)]
    fn find_or_insert(&mut self, given: &Given) -> usize {
        let order = |card: &Card| card.kind.cmp(&given.kind).then(card.minor.cmp(&given.minor));
        match self.cards.binary_search_by(order) {
            Ok(at) => at,
            Err(at) => {
                self.forget_left();
                self.cards.insert(at, Card::new(given.kind.clone(), given.minor));
                self.used.insert(at, Amounts::default());
                self.counts.insert(at, 0);
                self.exclusive.insert(at, [0; 2]);
                self.cards_changed();
                at
            }
        }
    }
}

fn count_one(number: &mut u16, begins: bool) {
    *number = if begins { number.saturating_add(1) } else { number.saturating_sub(1) };
}

/// Positions of cards in a row.
pub(super) type CardList = SmallVec<[u16; 16]>;
