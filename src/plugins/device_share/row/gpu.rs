//! A GPU as most decisions see it: half a line of the processor's cache, beside the other GPUs of its node.

use smallvec::SmallVec;

use super::super::amounts::Amounts;
use super::Card;

/// What a decision asks of a GPU, and what it changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Gpu {
    /// What pods have of its main amounts, in the order of [`MAIN`](super::loads::MAIN); 0 unless the row knows them all.
    pub(super) used: [f64; 3],
    /// Which of them pods name, a bit each.
    pub(super) named: u8,
    /// Its turn for a pod that wants one GPU, if the row knows the turns: the least is taken first.
    pub(in super::super) turn: u8,
    /// Number of the PCIe switch; GPUs without topology share the number 0.
    pub(in super::super) switch: u8,
    /// Number of the NUMA node and 1 more; 0 where it is not known.
    pub(super) numa: u8,
    pub(in super::super) is_healthy: bool,
    /// Whether the Device says where it is.
    pub(super) is_placed: bool,
    /// Number of allocations on it.
    pub(super) pods: u16,
}

impl Gpu {
    /// Makes it without pods.
    pub(super) fn of(card: &Card) -> Self {
        Self {
            used: [0.0; 3],
            named: 0,
            turn: 0,
            switch: card.switch,
            numa: card.numa.map_or(0, |numa| numa.saturating_add(1)),
            is_healthy: card.healthy,
            is_placed: card.has_topology,
            pods: 0,
        }
    }

    /// Returns what pods have of its main amounts.
    #[inline]
    pub(super) fn used(&self) -> Amounts {
        Amounts::first(self.named, self.used.map(|amount| amount as i64))
    }
}

/// Returns the turn of each GPU for a pod that wants one: the least is taken first. GPUs of a PCIe switch that is in use have the
/// first, then those of a NUMA node that is. Both must be told apart by number. `counts` says whether one in use counts.
pub(in super::super) fn turns(
    gpus: &[Gpu],
    has_topology: bool,
    counts: impl Fn(usize) -> bool,
) -> SmallVec<[u8; 8]> {
    let (mut switches, mut numa) = (0_u128, 0_u128);
    let in_use = gpus.iter().enumerate().filter(|(_, gpu)| gpu.pods > 0 && gpu.is_placed && has_topology);
    for (_, gpu) in in_use.filter(|(at, _)| counts(*at)) {
        switches |= 1 << gpu.switch;
        numa |= 1 << gpu.numa;
    }
    let has = |set: u128, number: u8| set >> number & 1 == 1;
    let turn = |gpu: &Gpu| u8::from(!has(switches, gpu.switch)) << 1 | u8::from(!has(numa, gpu.numa));
    gpus.iter().map(turn).collect()
}
