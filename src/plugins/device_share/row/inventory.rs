//! What a node has, as its Device and its Node object say it, and what is used of its cards as far as the row does not know it.
//! Decisions about a part of an ordinary GPU need none of it, so it lies apart from the row.

use std::sync::Arc;

use pellucid_model::Name;

use super::super::device::{
    Device, DeviceInfo, DeviceType, Partition, PartitionPolicy, PartitionTable, built_in_partitions,
};
use super::card::{Card, Taken, switches};

/// Number of GPUs that partitions may name.
const MAX_GPUS: usize = 64;

/// An entry of the partition table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Entry {
    pub(in super::super) size: usize,
    /// The GPUs, one bit each by their order in the row.
    pub(in super::super) cards: u64,
    /// Whether each of them is there.
    pub(in super::super) is_there: bool,
    pub(in super::super) score: i64,
    pub(in super::super) bandwidth: i64,
}

/// What of a Node object matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct NodeFacts {
    pub(in super::super) policy: Option<PartitionPolicy>,
    /// Label `node.koordinator.sh/gpu-model`, of GPUs of NVIDIA; theirs are those of which nobody says who made them.
    pub(in super::super) nvidia_model: Option<Name>,
    /// What keeps the shares of a GPU apart there.
    pub(in super::super) isolation: Option<Name>,
}

/// What a node has.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Inventory {
    /// `None` while the node has no Device, or no Node object.
    pub(in super::super) device: Option<Arc<Device>>,
    /// `None` while there is no Node object.
    pub(in super::super) node: Option<NodeFacts>,
    /// By type, then minor.
    pub(super) cards: Vec<Card>,
    /// What pods have of each card. Of GPUs the row knows the number of pods, and what is used where these are main amounts.
    pub(super) taken: Vec<Taken>,
    /// Number of cards that the Device names.
    pub(super) n_known: usize,
    /// By size and score; `None` when the node has no table.
    pub(in super::super) partitions: Option<Vec<Entry>>,
    pub(in super::super) honors_partitions: bool,
    /// Virtual functions in use, by device and bus address.
    pub(super) functions: Vec<(DeviceType, i64, Name)>,
}

impl Inventory {
    /// Makes it of a Device and of what matters of a Node object, without pods. The partition table must be read.
    pub(super) fn of(device: Option<Arc<Device>>, node: Option<NodeFacts>) -> Self {
        let switches = device.as_deref().map(switches).unwrap_or_default();
        let infos = device.iter().flat_map(|device| device.devices.iter().enumerate());
        let cards: Vec<Card> = infos.map(|(at, info)| Card::of(at, info, &switches)).collect();
        let (n_known, taken) = (cards.len(), vec![Taken::default(); cards.len()]);
        Self { device, node, cards, taken, n_known, ..Self::default() }
    }

    /// Returns the number of GPUs, which come first.
    pub(super) fn n_gpus(&self) -> usize {
        self.cards.partition_point(|card| card.kind == DeviceType::Gpu)
    }

    /// Returns what the Device says about a card.
    pub(super) fn info(&self, card: &Card) -> Option<&DeviceInfo> {
        self.device.as_deref()?.devices.get(usize::from(card.info?))
    }

    /// Reads the table of partitions, whose entries name GPUs by position.
    pub(super) fn read_partitions(&mut self) {
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
        let gpus = &self.cards[..self.n_gpus()];
        let bit = |minor: &i64| {
            let known = gpus.iter().take(MAX_GPUS).position(|card| card.minor == *minor);
            known.map(|at| 1u64 << at)
        };
        let sized = table.iter().flat_map(|(size, all)| all.iter().map(move |partition| (*size, partition)));
        let entry = |(size, partition): (usize, &Partition)| Entry {
            size,
            cards: partition.minors.iter().filter_map(bit).fold(0, |set, bit| set | bit),
            is_there: partition.minors.iter().all(|minor| bit(minor).is_some()),
            score: partition.score,
            bandwidth: partition.bandwidth,
        };
        sized.map(entry).collect()
    }
}
