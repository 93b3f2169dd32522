//! ElasticQuota: what 1,000 quotas cost, when 10,000 pods of 200 of them are placed, and what one more pod of a quota costs.
//!
//! The pods are of a few kinds, and each quota has some of every kind: without quotas as many shapes as kinds, with them one
//! for each kind in each quota.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::kubernetes::decode::Decoder;
use pellucid::model::selector::Labels;
use pellucid::model::{CustomKindRef, Pod};
use pellucid::plugins::elastic_quota::{ELASTIC_QUOTA, NAME};
use pellucid::plugins::registry;
use serde_json::json;

use super::steady::{Stretch, in_turn};
use super::world::{NODES, now, place_batch, pod, scheduler_with, spec};

const QUOTAS: usize = 1_000;
/// Quotas that have pods.
const USED: usize = 200;
/// Kinds of pods by what they request.
const KINDS: usize = 20;
/// Number of pods placed at a time.
const BATCH: usize = 10_000;
/// For how long the comparison runs.
const LONG: Duration = Duration::from_secs(20);
const LABEL: &str = "quota.scheduling.koordinator.sh/name";

struct Loaded {
    scheduler: Scheduler,
    batches: usize,
}

impl Loaded {
    fn new(is_enabled: bool) -> Self {
        let mut scheduler = scheduler_with(NAME, is_enabled);
        let kind = CustomKindRef(&ELASTIC_QUOTA);
        let decoder = Decoder::of(&registry());
        let quota = |i: usize| {
            // Twenty parents, and below each forty-nine leaves.
            let parent = (!i.is_multiple_of(50))
                .then(|| json!({"quota.scheduling.koordinator.sh/parent": format!("q{}", i / 50 * 50)}));
            let manifest = json!({
                "metadata": {
                    "name": format!("q{i}"), "namespace": "quotas", "uid": "u", "resourceVersion": "1", "labels": parent,
                },
                "spec": {"min": {"cpu": 10, "memory": "10Gi"}, "max": {"cpu": 100_000, "memory": "100000Gi"}},
            });
            Arc::new(decoder.custom(kind, &manifest).expect("a quota that can be read"))
        };
        if is_enabled {
            let objects = (0..QUOTAS).map(quota).collect();
            scheduler.apply(Input::CustomReset { kind, objects, quarantined: Vec::new() }, now());
        }
        Self { scheduler, batches: 0 }
    }

    /// Makes a pod of a quota.
    fn pod(&self, i: usize) -> Arc<Pod> {
        // Leaves of the first parents.
        let (of, name) = (i % USED, format!("pod-{}-{i:05}", self.batches));
        let mut made = Pod::clone(&pod(&name, spec(i / USED % KINDS)));
        let quota = format!("q{}", of + of / 49 + 1);
        made.labels = Labels::new([(LABEL.into(), quota.as_str().into())]);
        let labels = made.labels.clone();
        Arc::make_mut(&mut made.spec).labels = labels;
        Arc::new(made)
    }

    /// Places one batch, and returns how long its pods took to arrive too.
    fn place(&mut self) -> (Stretch, Duration) {
        self.batches += 1;
        let pods = (0..BATCH).map(|i| self.pod(i)).collect();
        let batch = place_batch(&mut self.scheduler, pods);
        (batch.placed, batch.arrived)
    }

    /// Returns how long it takes to work the shares out again after one pod came and went.
    fn change(&mut self) -> Duration {
        self.batches += 1;
        let changed = 1_000;
        let start = Instant::now();
        for i in 0..changed {
            let pod = self.pod(i);
            let key = pod.key.clone();
            self.scheduler.apply(Input::PodApplied(pod), now());
            self.scheduler.tick(now());
            self.scheduler.apply(Input::PodDeleted(key), now());
            self.scheduler.tick(now());
        }
        start.elapsed() / changed as u32 / 2
    }
}

pub(crate) fn print() {
    println!(
        "{QUOTAS} quotas, {BATCH} pods of {KINDS} kinds in {USED} of them on {NODES} nodes, lost pods/s:"
    );
    let (mut without, mut with) = (Loaded::new(false), Loaded::new(true));
    for (side, name) in [(&mut without, "without"), (&mut with, "with")] {
        let (stretch, arrived) = side.place();
        println!("  {name}: {:.0} pods/s, arrival {:.1} ms", stretch.rate(), arrived.as_secs_f64() * 1e3);
    }
    in_turn("ElasticQuota on", LONG, |on| if on { with.place().0 } else { without.place().0 });
    for (side, name) in [(&mut without, "without"), (&mut with, "with")] {
        println!("  a pod that comes or goes, {name}: {:.1} µs", side.change().as_secs_f64() * 1e6);
    }
}
