//! DeviceShare: what it costs pods without devices, and what a share of a card costs a pod.
//!
//! Nodes have eight cards each. Pods of both kinds request the same CPU and memory in as many shapes, and differ in the share.
//! A small pod without a share hardly changes the score of its node, so that the next one often goes there too, and fewer nodes
//! have changed when its shape is tried again. Large pods change it with a share and without: both are spread alike.
//!
//! A share is compared with no share, and with the same request where the plugin is off and nobody knows of cards: there it is
//! counted against the sum that the node offers, as any extended resource.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs};
use pellucid::model::{CustomKindRef, Name, Node, PodSpec};
use pellucid::plugins::device_share::{DEVICE, NAME};
use pellucid::plugins::registry;
use serde_json::{Value, json};

use super::steady::{Stretch, in_turn};
use super::world::{node, now, place_batch, pod, scheduler_on};

const NODES: usize = 1_000;
/// Number of cards of a node.
const CARDS: i64 = 8;
/// Memory of a card, in bytes.
const MEMORY: i64 = 80 << 30;
/// Number of pods placed at a time.
const BATCH: usize = 10_000;
/// Number of different requests.
const SHAPES: usize = 20;
/// For how long each comparison runs.
const LONG: Duration = Duration::from_secs(20);
const CORE: &str = "koordinator.sh/gpu-core";
const RATIO: &str = "koordinator.sh/gpu-memory-ratio";
const BYTES: &str = "koordinator.sh/gpu-memory";

/// Returns a node that offers what its cards come to.
fn machine(i: usize) -> Node {
    let mut made = node(i);
    (made.allocatable.milli_cpu, made.allocatable.memory) = (128_000, 1 << 40);
    let amounts = [(CORE, 100 * CARDS), (BYTES, MEMORY * CARDS), (RATIO, 100 * CARDS)];
    made.allocatable.scalars = amounts.map(|(name, amount)| (Name::new(name), amount)).into();
    made
}

fn device(i: usize) -> Value {
    let card = |minor: i64| {
        json!({
            "type": "gpu", "id": format!("GPU-{i}-{minor}"), "minor": minor, "health": true,
            "resources": {CORE: 100, BYTES: MEMORY.to_string(), RATIO: 100},
            "topology": {"socketID": minor / 4, "nodeID": minor / 4, "pcieID": format!("pci-{}", minor / 2), "busID": ""},
        })
    };
    json!({
        "metadata": {"name": node(i).name.as_str(), "uid": "u", "resourceVersion": "1"},
        "spec": {"devices": (0..CARDS).map(card).collect::<Value>()},
    })
}

/// Returns a pod with a share of a card, 10 to 48 percent, or without one. A large one takes at least two percent of a node.
fn request(shape: usize, has_share: bool, is_large: bool) -> PodSpec {
    let n = shape as i64;
    let (milli_cpu, mebibytes) = if is_large { (2600, 21 << 10) } else { (500, 1024) };
    let mut amounts: Vec<(Name, i64)> =
        vec![("cpu".into(), milli_cpu + 50 * n), ("memory".into(), (mebibytes + 64 * n) << 20)];
    if has_share {
        amounts.extend([(CORE.into(), 10 + 2 * n), (RATIO.into(), 10 + 2 * n)]);
    }
    let containers = vec![ContainerRequests::of(amounts)];
    PodSpec {
        requests: PodRequests::compute(&RequestInputs { containers, ..RequestInputs::default() }),
        n_containers: 1,
        ..PodSpec::default()
    }
}

/// A scheduler that places and deletes batches of pods.
struct Rigs {
    scheduler: Scheduler,
    /// Whether it knows of cards.
    is_enabled: bool,
    batches: usize,
}

impl Rigs {
    fn new(is_enabled: bool) -> Self {
        let mut scheduler = scheduler_on(NAME, is_enabled, (0..NODES).map(machine));
        let kind = CustomKindRef(&DEVICE);
        let decoder = Decoder::of(&registry());
        let report = |i| Arc::new(decoder.custom(kind, &device(i)).expect("a Device that can be read"));
        if is_enabled {
            let objects = (0..NODES).map(report).collect();
            scheduler.apply(Input::CustomReset { kind, objects, quarantined: Vec::new() }, now());
        }
        Self { scheduler, is_enabled, batches: 0 }
    }

    /// Places one batch and takes it away again.
    fn place(&mut self, have_shares: bool, are_large: bool) -> Stretch {
        self.batches += 1;
        let name = |i: usize| format!("pod-{}-{i:05}", self.batches);
        let pods = (0..BATCH).map(|i| pod(&name(i), request(i % SHAPES, have_shares, are_large))).collect();
        let batch = place_batch(&mut self.scheduler, pods);
        assert_eq!(
            batch.holding,
            if have_shares && self.is_enabled { BATCH } else { 0 },
            "these pods alone have a part of a card"
        );
        batch.placed
    }
}

pub(crate) fn print() {
    println!("{BATCH} pods of {SHAPES} shapes on {NODES} nodes of {CARDS} cards, lost pods/s:");
    let (mut without, mut with) = (Rigs::new(false), Rigs::new(true));
    println!("  {:.0} pods/s without devices and without the plugin", without.place(false, false).rate());
    println!("  {:.0} pods/s without devices", with.place(false, false).rate());
    println!("  {:.0} pods/s with a share of a card", with.place(true, false).rate());
    in_turn("pods without devices", LONG, |on| if on { &mut with } else { &mut without }.place(false, false));
    for (size, are_large) in [("", false), (", spread alike", true)] {
        for (beside, is_counted) in [("", false), (", beside the same request without cards", true)] {
            in_turn(&format!("a share of a card{size}{beside}"), LONG, |on| match on {
                true => with.place(true, are_large),
                false => without.place(is_counted, are_large),
            });
        }
    }
}

/// Returns what places a batch, with shares and the plugin, or with the plugin off and shares that are counted or none.
pub(crate) fn side(is_enabled: bool, have_shares: bool, are_large: bool) -> Box<dyn FnMut() -> f64> {
    let mut rigs = Rigs::new(is_enabled);
    Box::new(move || rigs.place(have_shares, are_large).rate())
}
