//! What happens in the random histories of `lives`.

use proptest::prelude::*;

/// Number of nodes.
pub(crate) const NODES: usize = 3;
/// Number of pods.
pub(crate) const PODS: usize = 8;
/// Pools of licences.
pub(crate) const POOLS: [&str; 2] = ["mesher", "solver"];
/// Quotas.
pub(crate) const QUOTAS: [&str; 2] = ["team-a", "team-b"];

/// A random change; indices are taken modulo the number of elements.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// A node with this CPU in thousandths, and thresholds of its own.
    Node(usize, u64, bool),
    NodeGone(usize),
    /// A pod that asks for seats of a pool.
    Pod {
        at: usize,
        milli: u64,
        pool: usize,
        seats: usize,
    },
    PodGone(usize),
    /// Requests of a bound pod change in place.
    Resized(usize, u64),
    /// A pool with these seats, and a lease in seconds, 0 for none.
    Pool(usize, u64, u64),
    PoolGone(usize),
    /// What a node uses, in thousandths, and how many seconds ago.
    Report(usize, u64, u64),
    ReportGone(usize),
    /// What CPUs and NUMA nodes a node has, and which CPU is reserved.
    Machine(usize, usize),
    MachineGone(usize),
    /// A quota with min and max of CPU, in thousandths; the second may be below the first.
    Quota(usize, u64, u64, bool),
    QuotaGone(usize),
    /// The Device of a node, with cards of which one may be unhealthy (the number of cards for none).
    Device(usize, usize, usize),
    DeviceGone(usize),
    Steps(usize),
    Wait(u64),
    /// The API server carries out an order, and says so or not.
    Bound(usize, bool),
    Refused(usize),
    /// The watch shows a pod as it is.
    Shown(usize),
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        2 => (0..NODES, 1..5u64, any::<bool>()).prop_map(|(i, cpu, own)| Node(i, cpu * 1_000, own)),
        1 => (0..NODES).prop_map(NodeGone),
        6 => (0..PODS, 1..8u64, 0..3usize, 1..4usize)
            .prop_map(|(at, milli, pool, seats)| Pod { at, milli: milli * 100, pool, seats }),
        2 => (0..PODS).prop_map(PodGone),
        1 => (0..PODS, 1..8u64).prop_map(|(i, milli)| Resized(i, milli * 100)),
        3 => (0..POOLS.len(), 0..6u64, 0..3u64).prop_map(|(i, seats, lease)| Pool(i, seats, lease * 20)),
        1 => (0..POOLS.len()).prop_map(PoolGone),
        3 => (0..NODES, 0..4_000u64, 0..130u64).prop_map(|(i, milli, age)| Report(i, milli, age)),
        1 => (0..NODES).prop_map(ReportGone),
        3 => (0..NODES, 0..9usize).prop_map(|(i, reserved)| Machine(i, reserved)),
        1 => (0..NODES).prop_map(MachineGone),
        3 => (0..QUOTAS.len(), 0..10u64, 0..20u64, any::<bool>())
            .prop_map(|(i, min, max, below)| Quota(i, min * 100, max * 100, below)),
        1 => (0..QUOTAS.len()).prop_map(QuotaGone),
        4 => (0..NODES, 1..4usize, 0..4usize).prop_map(|(i, cards, sick)| Device(i, cards, sick)),
        1 => (0..NODES).prop_map(DeviceGone),
        6 => (1..4usize).prop_map(Steps),
        3 => (0..40u64).prop_map(Wait),
        5 => (0..PODS, any::<bool>()).prop_map(|(i, reports)| Bound(i, reports)),
        1 => (0..PODS).prop_map(Refused),
        4 => (0..PODS).prop_map(Shown),
    ]
}
