//! Reservation: how many pods a second find their place in the room of 10,000 reservations, and what pods without one lose.
//!
//! Each node has two reservations. The owners are known by a label, and each has as many reservations as pods.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::selector::Labels;
use pellucid::model::{CustomKindRef, Pod};
use pellucid::plugins::registry;
use pellucid::plugins::reservation::{NAME, RESERVATION};
use serde_json::json;

use super::steady::{Stretch, in_turn};
use super::world::{NODES, node, now, place_batch, pod, scheduler_with, spec};

const RESERVATIONS: usize = 10_000;
/// Number of pods placed at a time.
const BATCH: usize = 10_000;
/// For how long a comparison runs.
const LONG: Duration = Duration::from_secs(15);

struct Loaded {
    scheduler: Scheduler,
    /// Number of reservations that have the same pods as owners.
    each: usize,
    batches: usize,
}

impl Loaded {
    /// Makes it without the plugin (`each` is `None`), or with reservations of which as many as `each` says have equal
    /// owners; 0: without reservations.
    fn new(each: Option<usize>) -> Self {
        let mut scheduler = scheduler_with(NAME, each.is_some());
        let each = each.unwrap_or(0);
        let kind = CustomKindRef(&RESERVATION);
        let decoder = Decoder::of(&registry());
        let reservation = |i: usize| {
            let requests = json!({"cpu": "1", "memory": "1Gi"});
            let manifest = json!({
                "metadata": {
                    "name": format!("r{i:05}"), "uid": format!("r{i:05}"), "resourceVersion": "1",
                    "creationTimestamp": "2023-11-14T22:13:20Z",
                },
                "spec": {
                    "owners": [{"labelSelector": {"matchLabels": {"app": format!("app-{}", i / each)}}}],
                    "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}},
                    "allocateOnce": false, "ttl": "0s",
                },
                "status": {
                    "phase": "Available", "nodeName": format!("node-{:04}", i % NODES), "allocatable": requests,
                },
            });
            Arc::new(decoder.custom(kind, &manifest).expect("a reservation that can be read"))
        };
        if each > 0 {
            let objects = (0..RESERVATIONS).map(reservation).collect();
            scheduler.apply(Input::CustomReset { kind, objects, quarantined: Vec::new() }, now());
        }
        Self { scheduler, each, batches: 0 }
    }

    /// Places pods, of which those with a label own reservations, and takes them away again.
    fn place(&mut self, are_owners: bool, n: usize) -> Stretch {
        self.batches += 1;
        let pods = (0..n).map(|i| self.pod(i, are_owners)).collect();
        let batch = place_batch(&mut self.scheduler, pods);
        assert_eq!(batch.holding, if are_owners { n } else { 0 }, "each owner stands in one");
        batch.placed
    }

    /// Places pods that see nodes without any reservation, and takes them away again.
    fn place_ignoring(&mut self, n: usize) -> Stretch {
        self.batches += 1;
        let labels = Labels::new([("scheduling.koordinator.sh/reservation-ignored".into(), "true".into())]);
        let made = |i: usize| {
            let mut made = Pod::clone(&self.pod(i, false));
            made.labels = labels.clone();
            Arc::make_mut(&mut made.spec).labels = labels.clone();
            Arc::new(made)
        };
        let pods = (0..n).map(made).collect();
        place_batch(&mut self.scheduler, pods).placed
    }

    /// Adds placed pods where reservations would be, of their size.
    fn add_placed_pods(&mut self) {
        for i in 0..RESERVATIONS {
            let mut spec = spec(0);
            (spec.requests.list.milli_cpu, spec.requests.list.memory) = (1000, 1 << 30);
            let mut made = Pod::clone(&pod(&format!("placed-{i:05}"), spec));
            made.node_name = Some(node(i % NODES).name);
            self.scheduler.apply(Input::PodApplied(Arc::new(made)), now());
        }
    }

    fn pod(&self, i: usize, is_owner: bool) -> Arc<Pod> {
        let mut made = Pod::clone(&pod(&format!("pod-{}-{i:05}", self.batches), spec(0)));
        let app = if is_owner { format!("app-{}", i / self.each) } else { "none".to_owned() };
        made.labels = Labels::new([("app".into(), app.as_str().into())]);
        Arc::new(made)
    }
}

pub(crate) fn print() {
    println!("{RESERVATIONS} reservations on {NODES} nodes");
    for (each, n) in [(1, BATCH), (10, BATCH), (100, 2_000)] {
        let mut loaded = Loaded::new(Some(each));
        let best = (0..3).map(|_| loaded.place(true, n).rate()).fold(0.0, f64::max);
        println!("  owners of {each} each: {best:.0} pods/s");
    }
    let mut loaded = Loaded::new(Some(1));
    let best = (0..3).map(|_| loaded.place_ignoring(1_000).rate()).fold(0.0, f64::max);
    println!("  pods that ignore them: {best:.0} pods/s");
    for (each, what) in [(0, "without reservations"), (1, "with them, to as many placed pods")] {
        let (mut without, mut with) = (Loaded::new(None), Loaded::new(Some(each)));
        if each > 0 {
            without.add_placed_pods();
        }
        println!("pods that own none, {what}, lost pods/s:");
        in_turn("Reservation on", LONG, |on| if on { &mut with } else { &mut without }.place(false, BATCH));
    }
}

/// Returns what places a batch of pods that own none.
pub(crate) fn side(each: Option<usize>) -> Box<dyn FnMut() -> f64> {
    let mut loaded = Loaded::new(each);
    Box::new(move || loaded.place(false, BATCH).rate())
}
