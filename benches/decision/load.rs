//! LoadAwareScheduling: what it costs, and what NodeMetrics that arrive meanwhile cost.
//!
//! Reports are decoded beforehand, because watches do that on threads of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::time::NoProbe;
use pellucid::model::{CustomKindRef, CustomObject, PodKey};
use pellucid::plugins::load_aware_scheduling::{NAME, NODE_METRIC};
use pellucid::plugins::registry;
use serde_json::json;

use super::steady::{Stretch, in_turn};
use super::world::{NODES, node, now, pod, scheduler_with, spec};

/// How often a NodeMetric arrives: 100 a second, as from 5,000 nodes that report every 50 s.
const REPORT_EVERY: Duration = Duration::from_millis(10);
/// Number of pods placed at a time.
const BATCH: usize = 10_000;
/// For how long each comparison runs.
const LONG: Duration = Duration::from_secs(20);

/// A scheduler that places and deletes batches of pods while nodes report.
struct Loaded {
    scheduler: Scheduler,
    shapes: usize,
    batches: usize,
    reports: Vec<Arc<CustomObject>>,
    next: usize,
}

/// Returns a report of a node. Two reports of one node differ in what the node uses.
fn report(i: usize, version: usize) -> Arc<CustomObject> {
    let updated = now().wall.as_secs() as i64 - (i % 30) as i64;
    let usage = json!({"cpu": format!("{}m", 1_000 + 37 * ((i + version) % 90)), "memory": "4Gi"});
    let manifest = json!({
        "apiVersion": "slo.koordinator.sh/v1alpha1",
        "kind": "NodeMetric",
        "metadata": {"name": node(i).name.as_str(), "uid": "u", "resourceVersion": format!("{i}.{version}")},
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {
            "updateTime": pellucid::framework::manifest::format_moment(updated),
            "nodeMetric": {"nodeUsage": {"resources": usage}},
        },
    });
    let object = Decoder::of(&registry()).custom(CustomKindRef(&NODE_METRIC), &manifest);
    Arc::new(object.expect("a report that can be read"))
}

impl Loaded {
    fn new(shapes: usize, is_enabled: bool) -> Self {
        let mut scheduler = scheduler_with(NAME, is_enabled);
        let objects = (0..NODES).map(|i| report(i, 0)).collect();
        let kind = CustomKindRef(&NODE_METRIC);
        scheduler.apply(Input::CustomReset { kind, objects, quarantined: Vec::new() }, now());
        let reports = (0..2 * NODES).map(|i| report(i % NODES, 1 + i / NODES)).collect();
        Self { scheduler, shapes, batches: 0, reports, next: 0 }
    }

    /// Places one batch. `reports` says whether nodes report meanwhile.
    fn place(&mut self, reports: bool) -> Stretch {
        self.batches += 1;
        let name = |i: usize| format!("pod-{}-{i:05}", self.batches);
        for i in 0..BATCH {
            self.scheduler.apply(Input::PodApplied(pod(&name(i), spec(i % self.shapes))), now());
        }
        let keys: Vec<PodKey> = (0..BATCH).map(|i| PodKey::new("default", &name(i))).collect();
        let start = Instant::now();
        let (mut due, mut count) = (REPORT_EVERY, 0);
        while self.scheduler.step(now(), &NoProbe).is_some() {
            count += 1;
            if count % 64 == 0 {
                drop(self.scheduler.take_effects());
                while reports && start.elapsed() >= due {
                    self.report();
                    due += REPORT_EVERY;
                }
            }
        }
        let took = start.elapsed();
        drop(self.scheduler.take_effects());
        assert_eq!(count, BATCH);
        for key in keys {
            self.scheduler.apply(Input::PodDeleted(key), now());
        }
        Stretch { pods: BATCH, took }
    }

    fn report(&mut self) {
        let object = self.reports[self.next % self.reports.len()].clone();
        self.next += 1;
        self.scheduler.apply(Input::CustomApplied(object), now());
    }
}

pub(crate) fn print() {
    for shapes in [1, 150] {
        println!("{shapes} shapes of pods on {NODES} nodes, lost pods/s:");
        let (mut without, mut with) = (Loaded::new(shapes, false), Loaded::new(shapes, true));
        for side in [&mut without, &mut with] {
            println!("  {:.0} pods/s", side.place(false).rate());
        }
        in_turn("LoadAwareScheduling on", LONG, |on| if on { &mut with } else { &mut without }.place(false));
        in_turn("100 NodeMetrics/s", LONG, |on| with.place(on));
    }
}
