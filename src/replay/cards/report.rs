//! Sums up the runs of a study in a table: a row per seed, then mean and deviation.

use std::fmt;
use std::time::Duration;

use super::super::words::{columns, grouped};
use super::run::FRAGMENTS_AT;

/// Faults that are printed in full.
const FAULTS: usize = 20;

/// The result of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// Seed of arrivals and of the order of equal nodes.
    pub seed: u64,
    /// Pods that arrived.
    pub pods: usize,
    /// Pods for which there was no node.
    pub failed: usize,
    /// GPUs that pods have, in thousandths.
    pub allocated_milli: u64,
    /// GPUs of the cluster, in thousandths.
    pub capacity_milli: u64,
    /// Which part of the idle GPUs was fragments at 80 % of arrivals, in percent; `None` when so much never arrived.
    pub fragments_percent: Option<f64>,
    /// Mean time of a decision.
    pub per_pod: Duration,
    /// Mean time of a decision that placed its pod.
    pub per_placed: Duration,
    /// What the audit of the cards found; must be empty.
    pub faults: Vec<String>,
}

impl RunResult {
    /// Returns the allocated GPUs in percent of the cluster's.
    pub fn allocated_percent(&self) -> f64 {
        100.0 * self.allocated_milli as f64 / self.capacity_milli.max(1) as f64
    }
}

/// The result of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PackingReport {
    /// What was done, for the first line.
    pub title: String,
    /// Results by seed.
    pub runs: Vec<RunResult>,
}

impl PackingReport {
    /// Returns whether the audit found nothing.
    pub fn is_good(&self) -> bool {
        self.runs.iter().all(|run| run.faults.is_empty())
    }

    fn values(&self, of: impl Fn(&RunResult) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(of).collect()
    }
}

/// Returns the mean and the sample deviation.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (n - 1.0).max(1.0)).sqrt()))
}

impl fmt::Display for PackingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        let fragments = format!("fragments at {FRAGMENTS_AT} %");
        let mut table = columns(["allocated", &fragments, "failed", "pods", "per pod", "seed"]);
        let percent = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.2} %"));
        let micros = |value: f64| format!("{value:.1} µs");
        for run in &self.runs {
            table.add_row([
                percent(Some(run.allocated_percent())),
                percent(run.fragments_percent),
                grouped(run.failed as u64),
                grouped(run.pods as u64),
                micros(run.per_pod.as_nanos() as f64 / 1000.0),
                run.seed.to_string(),
            ]);
        }
        let spreads = [
            spread(&self.values(|run| Some(run.allocated_percent()))),
            spread(&self.values(|run| run.fragments_percent)),
            spread(&self.values(|run| Some(run.failed as f64))),
            spread(&self.values(|run| Some(run.pods as f64))),
            spread(&self.values(|run| Some(run.per_pod.as_nanos() as f64 / 1000.0))),
        ];
        for (name, at) in [("mean", 0), ("deviation", 1)] {
            let value = |column: usize| spreads[column].map(|(mean, deviation)| [mean, deviation][at]);
            let count = |column| value(column).map_or_else(String::new, |value| format!("{value:.0}"));
            table.add_row([
                percent(value(0)),
                percent(value(1)),
                count(2),
                count(3),
                value(4).map_or_else(String::new, micros),
                name.to_owned(),
            ]);
        }
        writeln!(f, "{}\n", table.trim_fmt())?;
        if let Some((micros, _)) = spreads[4].filter(|(micros, _)| *micros > 0.0) {
            let placed = self.values(|run| Some(run.per_placed.as_nanos() as f64 / 1000.0));
            let placed = spread(&placed).map_or(0.0, |(mean, _)| mean);
            let rate = |micros: f64| grouped((1e6 / micros.max(0.001)) as u64);
            let (all, placed) = (rate(micros), rate(placed));
            writeln!(f, "{all} decisions/s on one core; {placed}/s of those that placed their pod")?;
        }
        let faults: Vec<&String> = self.runs.iter().flat_map(|run| &run.faults).collect();
        if faults.is_empty() {
            return write!(
                f,
                "No card gives away more than it has, and none is shared with a pod that has it for itself alone: checked \
                 from the annotations, independently."
            );
        }
        for fault in faults.iter().take(FAULTS) {
            writeln!(f, "GIVEN TWICE OR NOT AS REQUESTED: {fault}")?;
        }
        write!(f, "{} faults", faults.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64, allocated_milli: u64) -> RunResult {
        RunResult {
            seed,
            pods: 10_812,
            failed: 2000,
            allocated_milli,
            capacity_milli: 10_000,
            fragments_percent: Some(30.0),
            per_pod: Duration::from_nanos(11_250),
            per_placed: Duration::from_nanos(10_000),
            faults: Vec::new(),
        }
    }

    #[test]
    fn the_report_reads_like_this() {
        let report = PackingReport { title: "Two runs".into(), runs: vec![run(42, 9500), run(43, 9600)] };
        let expected = "Two runs

 allocated  fragments at 80 %  failed    pods  per pod  seed
   95.00 %            30.00 %   2,000  10,812  11.2 µs  42
   96.00 %            30.00 %   2,000  10,812  11.2 µs  43
   95.50 %            30.00 %    2000   10812  11.2 µs  mean
    0.71 %             0.00 %       0       0   0.0 µs  deviation

88,888 decisions/s on one core; 100,000/s of those that placed their pod
No card gives away more than it has, and none is shared with a pod that has it for itself alone: checked from the annotations, independently.";
        assert_eq!(report.to_string(), expected);
        assert!(report.is_good());
    }

    #[test]
    fn a_fault_stands_out() {
        let runs = vec![RunResult { faults: vec!["p on a: there is no card 2".into()], ..run(1, 0) }];
        let report = PackingReport { title: String::new(), runs };
        assert!(!report.is_good());
        assert!(report.to_string().contains("GIVEN TWICE OR NOT AS REQUESTED: p on a: there is no card 2"));
    }
}
