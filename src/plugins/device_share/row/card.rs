//! A card of a node as its Device describes it, and what pods have of it.

use std::ops::Deref;

use pellucid_model::Name;
use pellucid_plugin_helper::scored::percent;

use super::super::amounts::{Amounts, CORE, MEMORY, RATIO};
use super::super::device::{Device, DeviceInfo, DeviceType};
use super::super::hints::Exclusive;

/// Number of PCIe switches that are told apart; further ones count as one.
const MAX_SWITCHES: usize = 127;
/// Number of NUMA nodes that are told apart.
const MAX_NUMA: u8 = 127;

/// A card of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Card {
    pub(in super::super) kind: DeviceType,
    pub(in super::super) minor: i64,
    /// What there is; nothing of a card that is not healthy or not known.
    pub(in super::super) total: Amounts,
    /// Position in the Device; `None` when the Device has no such card.
    pub(in super::super) info: Option<u16>,
    pub(in super::super) healthy: bool,
    /// Number of the PCIe switch; cards without topology share the number 0.
    pub(in super::super) switch: u8,
    /// Number of the NUMA node, if it is known.
    pub(in super::super) numa: Option<u8>,
    pub(in super::super) has_topology: bool,
}

impl Card {
    /// Makes a card of which nothing is known.
    pub(super) fn new(kind: DeviceType, minor: i64) -> Self {
        Self {
            kind,
            minor,
            total: Amounts::default(),
            info: None,
            healthy: false,
            switch: 0,
            numa: None,
            has_topology: false,
        }
    }

    /// Makes the card at a position of the Device. `switches` are those of the Device.
    pub(super) fn of(at: usize, info: &DeviceInfo, switches: &[(i64, Name)]) -> Self {
        let switch = info.topology.as_ref().and_then(|topology| {
            switches.iter().position(|(numa, pcie)| (*numa, pcie) == (topology.numa, &topology.pcie))
        });
        Self {
            total: if info.healthy { info.resources } else { Amounts::default() },
            info: u16::try_from(at).ok(),
            healthy: info.healthy,
            switch: switch.map_or(0, |at| (at + 1).min(MAX_SWITCHES) as u8),
            numa: info.topology.as_ref().and_then(|topology| u8::try_from(topology.numa).ok()),
            has_topology: info.topology.is_some(),
            ..Self::new(info.kind.clone(), info.minor)
        }
    }

    /// Returns whether the card's switch and NUMA node are told apart from others by number.
    pub(super) fn is_told_apart(&self) -> bool {
        usize::from(self.switch) < MAX_SWITCHES && self.numa.is_none_or(|numa| numa < MAX_NUMA)
    }

    /// Returns which part of the card amounts are, in percent, rounded up.
    pub(in super::super) fn percent(&self, amounts: &Amounts) -> u8 {
        let memory = match self.total.get(MEMORY) {
            ..=0 => 0,
            all => ((i128::from(amounts.get(MEMORY)) * 100 + i128::from(all) - 1) / i128::from(all)) as i64,
        };
        amounts.get(CORE).max(amounts.get(RATIO)).max(memory).clamp(0, 100) as u8
    }
}

/// Returns the PCIe switches of a node, by NUMA node and id.
pub(super) fn switches(device: &Device) -> Vec<(i64, Name)> {
    let topologies = device.devices.iter().filter_map(|info| info.topology.as_ref());
    let mut all: Vec<(i64, Name)> =
        topologies.map(|topology| (topology.numa, topology.pcie.clone())).collect();
    all.sort();
    all.dedup();
    all
}

/// What pods have of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Taken {
    pub(in super::super) used: Amounts,
    /// Number of allocations on the card.
    pub(in super::super) pods: u16,
    /// Number of allocations that do not share the device, and the switch.
    pub(super) exclusive: [u16; 2],
}

/// A card, and what pods have of it.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct CardInUse<'a> {
    pub(super) card: &'a Card,
    pub(in super::super) taken: Taken,
}

impl Deref for CardInUse<'_> {
    type Target = Card;
    fn deref(&self) -> &Card {
        self.card
    }
}

impl CardInUse<'_> {
    /// Returns what is free of each of the card's resources.
    pub(in super::super) fn free(&self) -> Amounts {
        self.total.less(&self.taken.used)
    }

    /// Returns what is left of the card in percent: the least of computing power, memory and its ratio; and whether that
    /// is not for want of memory alone.
    pub(in super::super) fn left(&self) -> (u8, bool) {
        if !self.healthy || self.info.is_none() {
            return (0, true);
        }
        let left = |resource| self.total.left_of(resource, &self.taken.used);
        let memory = match self.total.get(MEMORY) {
            ..=0 => 100,
            all => percent(left(MEMORY), all),
        };
        let percent = left(CORE).min(left(RATIO));
        (percent.min(memory).clamp(0, 100) as u8, percent <= memory)
    }

    /// Returns how many allocations do not share the device or the switch.
    pub(in super::super) fn exclusive(&self, policy: Exclusive) -> u16 {
        self.taken.exclusive[policy as usize]
    }
}
