//! Follows one run: books each pod that was placed, and takes the numbers of the study.

use std::time::Duration;

use super::super::{TraceNode, TracePod};
use super::arrivals::Arrivals;
use super::fragments::{Typical, fragments};
use super::ledger::CardLedger;
use super::report::RunResult;

/// Arrivals at which fragmentation is taken, in percent of the cluster's GPUs.
pub(super) const FRAGMENTS_AT: u64 = 80;

/// One run of a study.
pub struct PackingRun<'a> {
    typical: &'a [Typical],
    ledger: CardLedger,
    capacity_milli: u64,
    arrived_milli: u64,
    result: RunResult,
    took: Duration,
    took_placed: Duration,
}

impl<'a> PackingRun<'a> {
    /// Begins a run with empty nodes.
    pub fn new(seed: u64, nodes: &[TraceNode], arrivals: &Arrivals, typical: &'a [Typical]) -> Self {
        Self {
            typical,
            ledger: CardLedger::new(nodes),
            capacity_milli: arrivals.capacity_milli,
            arrived_milli: 0,
            result: RunResult { seed, capacity_milli: arrivals.capacity_milli, ..RunResult::default() },
            took: Duration::ZERO,
            took_placed: Duration::ZERO,
        }
    }

    /// Records that a pod arrived and was tried. `place` is its node and its annotation, `None` when it failed; `took`
    /// is what the decision took.
    pub fn record(&mut self, pod: &TracePod, place: Option<(&str, &str)>, took: Duration) {
        self.arrived_milli += pod.all_gpu_milli();
        self.took += took;
        self.result.pods += 1;
        match place {
            Some((node, allocated)) => {
                self.result.allocated_milli += pod.all_gpu_milli();
                self.took_placed += took;
                self.ledger.book(pod, node, allocated);
            }
            None => self.result.failed += 1,
        }
        let is_due = 100 * self.arrived_milli >= FRAGMENTS_AT * self.capacity_milli;
        if is_due && self.result.fragments_percent.is_none() {
            self.result.fragments_percent = self.fragments_percent();
        }
    }

    /// Returns which part of the idle GPUs is fragments, in percent; `None` when nothing is idle.
    fn fragments_percent(&self) -> Option<f64> {
        let idle: u64 = self.ledger.nodes().flat_map(|room| room.left()).sum();
        let weights: u64 = self.typical.iter().map(|typical| typical.count).sum();
        let sum: u64 = self.ledger.nodes().map(|room| fragments(room, self.typical)).sum();
        (idle * weights > 0).then(|| 100.0 * sum as f64 / (idle * weights) as f64)
    }

    /// Ends the run.
    pub fn finish(mut self) -> RunResult {
        let mean = |took: Duration, n: usize| took / u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        self.result.per_pod = mean(self.took, self.result.pods);
        self.result.per_placed = mean(self.took_placed, self.result.pods - self.result.failed);
        self.result.faults = self.ledger.faults;
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrivals;
    use super::super::testing::{node, pod};
    use super::super::typical_pods;
    use super::*;

    #[test]
    fn a_run_counts_what_was_placed_and_what_failed() {
        let (nodes, pods) = ([node("a", 1)], [pod("p", 1, 600), pod("q", 1, 600)]);
        let typical = typical_pods(&pods);
        let drawn = arrivals(&nodes, &pods, 130, 1).expect("they request GPUs");
        assert_eq!(drawn.pods.len(), 2);
        let mut run = PackingRun::new(7, &nodes, &drawn, &typical);
        let given = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60","koordinator.sh/gpu-memory-ratio":"60"}}]}"#;
        run.record(&drawn.pods[0], Some(("a", given)), Duration::from_micros(4));
        run.record(&drawn.pods[1], None, Duration::from_micros(2));
        let result = run.finish();
        assert_eq!((result.pods, result.failed, result.per_pod), (2, 1, Duration::from_micros(3)));
        assert_eq!(result.allocated_percent(), 60.0);
        assert_eq!(result.fragments_percent, Some(100.0), "40 % are left, which no such pod can use");
        assert_eq!(result.faults, [""; 0]);
    }
}
