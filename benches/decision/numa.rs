//! NodeNUMAResource: what it costs plain pods, how fast pods with CPUs of their own are placed, and how long one pick takes.
//!
//! Pods of both kinds request the same on the same machines, and differ in the label that gives CPUs of their own.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs};
use pellucid::model::selector::Labels;
use pellucid::model::{CustomKindRef, Node, Pod, PodSpec};
use pellucid::plugins::node_numa_resource::cpus::accumulator::{
    AllocateStrategy, BindPolicy, ExclusivePolicy, Request, Taken, allocate,
};
use pellucid::plugins::node_numa_resource::cpus::set::CpuSet;
use pellucid::plugins::node_numa_resource::cpus::topology::{CpuInfo, CpuTopology};
use pellucid::plugins::node_numa_resource::{NAME, NODE_RESOURCE_TOPOLOGY};
use pellucid::plugins::registry;
use serde_json::{Value, json};

use super::micros;
use super::steady::{Stretch, in_turn};
use super::world::{NODES, node, now, place_batch, pod, scheduler_with};

/// Number of pods placed at a time.
const BATCH: usize = 10_000;
/// For how long each comparison runs.
const LONG: Duration = Duration::from_secs(15);

/// The CPUs of a machine of 2 sockets with 2 NUMA nodes of 16 cores with 2 threads; the threads of a core are 64 apart.
fn cpus() -> impl Iterator<Item = CpuInfo> {
    (0..128).map(|id| CpuInfo { id, core: id % 64, socket: id % 64 / 32, node: id % 64 / 16 })
}

fn machine(i: usize) -> Node {
    let mut made = node(i);
    (made.allocatable.milli_cpu, made.allocatable.memory) = (128_000, 512 << 30);
    made
}

fn topology(i: usize) -> Value {
    let cpu = |of: CpuInfo| json!({"id": of.id, "core": of.core, "socket": of.socket, "node": of.node});
    let detail = json!({"detail": cpus().map(cpu).collect::<Value>()}).to_string();
    let amounts = json!([{"name": "cpu", "allocatable": "32"}, {"name": "memory", "allocatable": "128Gi"}]);
    let zone = |n: usize| json!({"name": format!("node-{n}"), "type": "Node", "resources": amounts});
    json!({
        "metadata": {
            "name": node(i).name.as_str(), "uid": "u", "resourceVersion": "1",
            "annotations": {"node.koordinator.sh/cpu-topology": detail},
        },
        "zones": (0..4).map(zone).collect::<Value>(),
    })
}

/// Returns a pod that requests whole CPUs.
fn request(shape: usize, is_pinned: bool) -> PodSpec {
    let amounts = vec![
        ("cpu".into(), 2000 + 2000 * (shape as i64 % 5)),
        ("memory".into(), (1024 + 256 * (shape as i64 / 5)) << 20),
    ];
    let containers = vec![ContainerRequests::of(amounts)];
    let qos = if is_pinned { "LSR" } else { "LS" };
    PodSpec {
        requests: PodRequests::compute(&RequestInputs { containers, ..RequestInputs::default() }),
        priority: 9500,
        labels: Labels::new([("koordinator.sh/qosClass".into(), qos.into())]),
        n_containers: 1,
        ..PodSpec::default()
    }
}

/// A scheduler that places and deletes batches of pods.
struct Machines {
    scheduler: Scheduler,
    shapes: usize,
    batches: usize,
}

impl Machines {
    fn new(shapes: usize, is_enabled: bool) -> Self {
        let mut scheduler = scheduler_with(NAME, is_enabled);
        let nodes = (0..NODES).map(|i| Arc::new(machine(i))).collect();
        scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, now());
        let kind = CustomKindRef(&NODE_RESOURCE_TOPOLOGY);
        let decoder = Decoder::of(&registry());
        let report = |i| Arc::new(decoder.custom(kind, &topology(i)).expect("a topology that can be read"));
        if is_enabled {
            let objects = (0..NODES).map(report).collect();
            scheduler.apply(Input::CustomReset { kind, objects, quarantined: Vec::new() }, now());
        }
        Self { scheduler, shapes, batches: 0 }
    }

    /// Places one batch and takes it away again.
    fn place(&mut self, are_pinned: bool) -> Stretch {
        self.batches += 1;
        let name = |i: usize| format!("pod-{}-{i:05}", self.batches);
        let made = |i: usize| {
            let mut made = Pod::clone(&pod(&name(i), request(i % self.shapes, are_pinned)));
            made.labels = made.spec.labels.clone();
            Arc::new(made)
        };
        let pods = (0..BATCH).map(made).collect();
        let batch = place_batch(&mut self.scheduler, pods);
        assert_eq!(
            batch.holding,
            if are_pinned { BATCH } else { 0 },
            "these pods alone have CPUs of their own"
        );
        batch.placed
    }
}

/// Prints how long a pick takes on a machine of 128 CPUs of which 40 % are taken.
fn picks() {
    let machine = CpuTopology::of(&cpus().collect::<Vec<_>>()).expect("a machine without contradictions");
    let free = CpuSet::of((0..128).filter(|id| id * 7 % 10 >= 4));
    let taken = Taken { free, ..Taken::default() };
    println!("a pick on 128 CPUs, {} of them free; the aim is 5 us:", free.len());
    for (bind, n) in [
        (BindPolicy::FullPcpus, 8),
        (BindPolicy::SpreadByPcpus, 8),
        (BindPolicy::FullPcpus, 40),
        (BindPolicy::SpreadByPcpus, 33),
    ] {
        let strategy = AllocateStrategy::MostAllocated;
        let exclusive = ExclusivePolicy::None;
        let asked = Request { n, bind, exclusive, strategy, preferred: CpuSet::default() };
        let took = micros(100_000, || {
            _ = black_box(allocate(black_box(&machine), black_box(&taken), black_box(&asked)));
        });
        println!("  {n:>2} CPUs, {:<14} {took:>6.2} us", bind.as_str());
    }
}

pub(crate) fn print() {
    picks();
    for shapes in [1, 150] {
        println!("{shapes} shapes of pods on {NODES} nodes of 128 CPUs, lost pods/s:");
        let (mut without, mut with) = (Machines::new(shapes, false), Machines::new(shapes, true));
        println!("  {:.0} plain pods/s without the plugin", without.place(false).rate());
        println!("  {:.0} plain pods/s", with.place(false).rate());
        println!("  {:.0} pods/s with CPUs of their own", with.place(true).rate());
        in_turn("plain pods", LONG, |on| if on { &mut with } else { &mut without }.place(false));
        in_turn("CPUs of their own", LONG, |on| with.place(on));
    }
}

/// Returns what places a batch.
pub(crate) fn side(shapes: usize, is_enabled: bool, are_pinned: bool) -> Box<dyn FnMut() -> f64> {
    let mut machines = Machines::new(shapes, is_enabled);
    Box::new(move || machines.place(are_pinned).rate())
}
