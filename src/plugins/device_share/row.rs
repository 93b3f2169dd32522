//! The cards of one node as the allocator sees them: a flat array by type and minor, with what is used of each.
//!
//! A row is made of a Device and of the allocations of the pods on the node. A card that only an allocation names is part
//! of it, without anything to give. Invariant: what is used of a card is the sum of the allocations. `glance` knows what most
//! requests ask of the GPUs without a look at the cards.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::{Name, PodId, PodKey};
use pellucid_plugin_helper::scored::percent;
use smallvec::SmallVec;

use super::allocation::{Allocation, Given};
use super::amounts::{Amounts, CORE, MEMORY, RATIO};
use super::device::{Device, DeviceInfo, DeviceType, PartitionPolicy, PartitionTable, built_in_partitions};
use super::hints::Exclusive;

mod glance;

pub(super) use glance::{Glance, Sums, Weighed, turns};
use glance::{Load, Spot};

/// Number of PCIe switches that are told apart; further ones count as one.
const MAX_SWITCHES: usize = 127;
/// Number of NUMA nodes that are told apart.
const MAX_NUMA: u8 = 127;
/// Number of GPUs that partitions may name.
const MAX_GPUS: usize = 64;

/// A set of PCIe switches of a node, by number.
pub(super) type Switches = u128;

/// A card of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) kind: DeviceType,
    pub(super) minor: i64,
    /// What there is; nothing of a card that is not healthy or not known.
    pub(super) total: Amounts,
    pub(super) used: Amounts,
    /// Position in the Device; `None` when the Device has no such card.
    pub(super) info: Option<u16>,
    pub(super) healthy: bool,
    /// Number of the PCIe switch; cards without topology share the number 0.
    pub(super) switch: u8,
    /// Number of the NUMA node, if it is known.
    pub(super) numa: Option<u8>,
    pub(super) has_topology: bool,
    /// Number of allocations on the card.
    pub(super) pods: u16,
    /// Allocations that do not share the device, and the switch.
    exclusive: [u16; 2],
}

impl Card {
    fn new(kind: DeviceType, minor: i64) -> Self {
        Self {
            kind,
            minor,
            total: Amounts::default(),
            used: Amounts::default(),
            info: None,
            healthy: false,
            switch: 0,
            numa: None,
            has_topology: false,
            pods: 0,
            exclusive: [0; 2],
        }
    }

    /// Returns what is left of the card in percent: the least of computing power, memory and its ratio; and whether that
    /// is not for want of memory alone.
    pub(super) fn left(&self) -> (u8, bool) {
        self.left_beside(&self.used)
    }

    #[inline]
    fn left_beside(&self, used: &Amounts) -> (u8, bool) {
        if !self.healthy || self.info.is_none() {
            return (0, true);
        }
        let left = |resource| self.total.left_of(resource, used);
        let memory = match self.total.get(MEMORY) {
            ..=0 => 100,
            all => percent(left(MEMORY), all),
        };
        let percent = left(CORE).min(left(RATIO));
        (percent.min(memory).clamp(0, 100) as u8, percent <= memory)
    }

    /// Returns which part of the card amounts are, in percent, rounded up.
    pub(super) fn percent(&self, amounts: &Amounts) -> u8 {
        let memory = match self.total.get(MEMORY) {
            ..=0 => 0,
            all => ((i128::from(amounts.get(MEMORY)) * 100 + i128::from(all) - 1) / i128::from(all)) as i64,
        };
        amounts.get(CORE).max(amounts.get(RATIO)).max(memory).clamp(0, 100) as u8
    }

    /// Returns how many allocations do not share the device or the switch.
    pub(super) fn exclusive(&self, policy: Exclusive) -> u16 {
        self.exclusive[policy as usize]
    }
}

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
    pub(super) cards: Vec<Card>,
    pub(super) pods: Vec<PodOnCards>,
    /// The ids of the devices, by position in the Device.
    pub(super) ids: Arc<[Name]>,
    /// By size and score; `None` when the node has no table.
    pub(super) partitions: Option<Vec<Entry>>,
    pub(super) honors_partitions: bool,
    /// Whether the places of all GPUs are known.
    pub(super) has_gpu_topology: bool,
    /// What is left of each GPU, in percent: a request for no more of its computing power and memory fits. In the order
    /// of the GPUs; 0 of those that are not healthy.
    pub(super) left: SmallVec<[u8; 16]>,
    /// The main amounts of each GPU.
    loads: SmallVec<[Load; 8]>,
    /// Number of GPUs with amounts that are not ordinary.
    extraordinary: usize,
    /// The turn of each GPU for a pod that wants one; empty where that is not known without the pod.
    turns: SmallVec<[u8; 8]>,
    /// Number of GPUs whose memory alone is what they have too little of.
    short_of_memory: usize,
    /// Number of GPUs that take whole requests when no pod is on them.
    whole: usize,
    pub(super) gpu_sums: Sums,
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
        self.cards.clear();
        self.functions.clear();
        self.is_noted = false;
        let ids = || device.iter().flat_map(|device| &device.devices).map(|info| &info.id);
        if !ids().eq(self.ids.iter()) {
            self.ids = ids().cloned().collect();
        }
        let switches = device.as_deref().map(switches).unwrap_or_default();
        for (at, info) in device.iter().flat_map(|device| device.devices.iter().enumerate()) {
            self.cards.push(card(at, info, &switches));
        }
        self.count_gpus();
        let is_told_apart = |card: &Card| {
            usize::from(card.switch) < MAX_SWITCHES && card.numa.is_none_or(|numa| numa < MAX_NUMA)
        };
        self.has_numbers = self.gpus().iter().all(is_told_apart);
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

    /// Returns the GPUs.
    #[inline]
    pub(super) fn gpus(&self) -> &[Card] {
        &self.cards[..self.n_gpus]
    }

    /// Follows a card that came for an allocation alone, or went with it: others stand elsewhere now.
    fn cards_changed(&mut self) {
        self.count_gpus();
        self.read_partitions();
        self.is_noted = false;
    }

    fn count_gpus(&mut self) {
        self.n_gpus = self.cards.partition_point(|card| card.kind == DeviceType::Gpu);
        // Scopes would leave a GPU out whose place is not known.
        let mut known = self.gpus().iter().filter(|card| card.info.is_some()).peekable();
        self.has_gpu_topology = known.peek().is_some() && known.all(|card| card.has_topology);
        self.spots = self.gpus().iter().map(Spot::of).collect();
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
        // A card that was there for the allocation alone goes with it.
        let is_needed = |card: &Card| card.info.is_some() || card.pods > 0;
        if !self.cards.iter().all(is_needed) {
            self.cards.retain(is_needed);
            self.cards_changed();
        }
    }

    /// Returns the row as if of each card nothing were free but what is left of an allocation.
    pub(super) fn within(&self, room: &Allocation) -> Self {
        let mut row = self.clone();
        for card in &mut row.cards {
            let own = room.given.iter().filter(|given| given.minor == card.minor && given.kind == card.kind);
            let mut left = Amounts::default();
            own.for_each(|given| left.add(&given.amounts));
            let free = card.total.less(&card.used);
            let left =
                Amounts::of(free.iter().map(|(resource, free)| (resource, free.min(left.get(resource)))));
            card.used = card.total.less(&left);
        }
        row.is_noted = false;
        row
    }

    fn count(&mut self, what: &Allocation, begins: bool) {
        for given in &what.given {
            let at = self.find_or_insert(given);
            let card = &mut self.cards[at];
            let change = |number: &mut u16| {
                *number = if begins { number.saturating_add(1) } else { number.saturating_sub(1) };
            };
            change(&mut card.pods);
            let is_used = card.pods > 0;
            for (_, policy) in what.exclusive.iter().filter(|(kind, _)| *kind == given.kind) {
                change(&mut card.exclusive[*policy as usize]);
            }
            for (_, bus) in &given.functions {
                let key = (given.kind.clone(), given.minor, bus.clone());
                if begins {
                    self.functions.push(key);
                } else if let Some(at) = self.functions.iter().position(|known| *known == key) {
                    self.functions.swap_remove(at);
                }
            }
            let before = self.cards[at].used;
            match begins {
                true => self.cards[at].used.add(&given.amounts),
                false => self.sum_up(at),
            }
            if given.kind == DeviceType::Gpu {
                self.note_change(at, &before);
                self.set_used(at, is_used);
            }
        }
    }

    /// Notes whether a pod has a part of a GPU.
    fn set_used(&mut self, gpu: usize, is_used: bool) {
        let Some(spot) = self.spots.get_mut(gpu).filter(|spot| spot.is_used != is_used) else { return };
        spot.is_used = is_used;
        if self.is_noted {
            self.note_turns();
        }
    }

    /// Computes what is used of a card from the allocations that are left. Amounts saturate, so they cannot be
    /// subtracted.
    fn sum_up(&mut self, at: usize) {
        let card = &mut self.cards[at];
        card.used = Amounts::default();
        for given in self.pods.iter().flat_map(|pod| &pod.what.given) {
            if given.minor == card.minor && given.kind == card.kind {
                card.used.add(&given.amounts);
            }
        }
    }

    fn find_or_insert(&mut self, given: &Given) -> usize {
        let is_it = |card: &Card| card.minor == given.minor && card.kind == given.kind;
        // Most GPUs stand at their minors.
        if let Some(at) =
            usize::try_from(given.minor).ok().filter(|at| self.cards.get(*at).is_some_and(is_it))
        {
            return at;
        }
        let order = |card: &Card| card.kind.cmp(&given.kind).then(card.minor.cmp(&given.minor));
        match self.cards.binary_search_by(order) {
            Ok(at) => at,
            Err(at) => {
                self.cards.insert(at, Card::new(given.kind.clone(), given.minor));
                self.cards_changed();
                at
            }
        }
    }
}

fn card(at: usize, info: &DeviceInfo, switches: &[(i64, Name)]) -> Card {
    let switch = info.topology.as_ref().and_then(|topology| {
        switches.iter().position(|(numa, pcie)| (*numa, pcie) == (topology.numa, &topology.pcie))
    });
    Card {
        total: if info.healthy { info.resources } else { Amounts::default() },
        info: u16::try_from(at).ok(),
        healthy: info.healthy,
        switch: switch.map_or(0, |at| (at + 1).min(MAX_SWITCHES) as u8),
        numa: info.topology.as_ref().and_then(|topology| u8::try_from(topology.numa).ok()),
        has_topology: info.topology.is_some(),
        ..Card::new(info.kind.clone(), info.minor)
    }
}

/// Returns the PCIe switches of a node, by NUMA node and id.
fn switches(device: &Device) -> Vec<(i64, Name)> {
    let topologies = device.devices.iter().filter_map(|info| info.topology.as_ref());
    let mut all: Vec<(i64, Name)> =
        topologies.map(|topology| (topology.numa, topology.pcie.clone())).collect();
    all.sort();
    all.dedup();
    all
}

/// Positions of cards in a row.
pub(super) type CardList = SmallVec<[u16; 16]>;
