//! Metrics of what diagnosis costs, by level, next to the time of attempts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pellucid_cycle::Snapshot;
use pellucid_model::time::Probe;
use pellucid_recording::switches::Flag;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::clock::Stopwatch;
use crate::metrics::{Label, gauges_by};

/// Total time spent on explanations for readers, in nanoseconds. They run in their own pool, not on the scheduling
/// thread.
#[derive(Clone, Debug, Default)]
pub struct Explained(Arc<AtomicU64>);

impl Explained {
    fn add(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Adds the time until the returned value is dropped, which also covers explanations that are abandoned.
    pub fn timed(&self) -> impl Drop + use<> {
        Timed { explained: self.clone(), stopwatch: Stopwatch::start() }
    }
}

struct Timed {
    explained: Explained,
    stopwatch: Stopwatch,
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.explained.add(self.stopwatch.elapsed());
    }
}

pub(crate) fn state(snapshot: &Snapshot, explained: &Explained, registry: &mut Registry) {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let levels: Family<Label, Counter<f64, AtomicU64>> = Family::default();
    let costs = snapshot.costs;
    for (level, nanos) in [("L0", costs.l0), ("L1", costs.l1), ("L2", explained.0.load(Ordering::Relaxed))] {
        levels.get_or_create_owned(&[("level", level)]).inc_by(seconds(nanos));
    }
    let help = "Time of the diagnosis, in seconds: L0 always on (estimated), L1 recorded by flags, L2 explained to readers";
    registry.register("pellucid_diagnosis_seconds", help, levels);
    let cycle: Counter<f64, AtomicU64> = Counter::default();
    cycle.inc_by(seconds(costs.cycle));
    registry.register("pellucid_cycle_seconds", "Time of attempts, L0 and L1 included, in seconds", cycle);
    let count = |flag| snapshot.switches.active(Some(flag), snapshot.published).len() as u64;
    let active = [Flag::Scores, Flag::Failures].map(|flag| (flag.as_str(), count(flag)));
    let help = "Recordings in force by flag, the raw value included";
    registry.register("pellucid_recordings_active", help, gauges_by("flag", active));
}
