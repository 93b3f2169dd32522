//! Reservation: how many pods a second find their place in the room of 10,000 reservations, and what pods without one lose.
//!
//! Each node has two reservations. The owners are known by a label, and each has as many reservations as pods.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::selector::Labels;
use pellucid::model::time::NoProbe;
use pellucid::model::{CustomKindRef, Pod, PodKey};
use pellucid::plugins::registry;
use pellucid::plugins::reservation::{NAME, RESERVATION};
use pellucid::recording::Outcome;
use serde_json::json;

use super::steady::{Stretch, in_turn};
use super::world::{NODES, node, now, pod, scheduler_with, spec};

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
        let pods: Vec<Arc<Pod>> = (0..n).map(|i| self.pod(i, are_owners)).collect();
        let keys: Vec<PodKey> = pods.iter().map(|pod| pod.key.clone()).collect();
        pods.into_iter().for_each(|pod| self.scheduler.apply(Input::PodApplied(pod), now()));
        let start = Instant::now();
        let mut count = 0;
        while let Some(step) = self.scheduler.step(now(), &NoProbe) {
            assert!(matches!(step.verdict.outcome, Outcome::Placed(_)), "every pod fits");
            count += 1;
            if count % 64 == 0 {
                drop(self.scheduler.take_effects());
            }
        }
        let took = start.elapsed();
        drop(self.scheduler.take_effects());
        assert_eq!(count, n);
        if are_owners {
            let cluster = self.scheduler.cluster();
            let records = keys.iter().filter_map(|key| cluster.pod(cluster.find_pod(key)?));
            assert_eq!(records.filter(|record| !record.holds.is_empty()).count(), n, "each stands in one");
        }
        keys.into_iter().for_each(|key| self.scheduler.apply(Input::PodDeleted(key), now()));
        Stretch { pods: n, took }
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
    for (each, what) in [(0, "without reservations"), (1, "with them, to as many placed pods")] {
        let (mut without, mut with) = (Loaded::new(None), Loaded::new(Some(each)));
        if each > 0 {
            without.add_placed_pods();
        }
        println!("pods that own none, {what}, lost pods/s:");
        in_turn("Reservation on", LONG, |on| if on { &mut with } else { &mut without }.place(false, BATCH));
    }
}
