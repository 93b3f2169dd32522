//! What a bench measured, as JSON and as a table of the same numbers.

use std::fmt::Write as _;

use pellucid_model::gang::Dialect;
use serde::Serialize;

use crate::bench::BenchOptions;
use crate::bench::arithmetic::{Spread, spread};
use crate::bench::children::Usage;

/// Version of the JSON; a field that goes or changes its meaning raises it.
const VERSION: u32 = 1;

/// Kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "dialect", rename_all = "lowercase")]
pub(super) enum Kind {
    Bindcap,
    Drain,
    Arrivals,
    Gangs(#[serde(serialize_with = "dialect_name")] Dialect),
}

fn dialect_name<S: serde::Serializer>(dialect: &Dialect, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(dialect.as_str())
}

/// One run.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    #[serde(flatten)]
    pub kind: Kind,
    /// Arrivals per second that were asked for.
    pub rate: Option<f64>,
    pub pods_per_second: f64,
    /// Quantiles of the time from creation to bound, of gangs from that of the last member until all are; zero of bindcap and
    /// of a drain.
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// What a bench measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    version: u32,
    scheduler_name: String,
    nodes: usize,
    pods: usize,
    shapes: usize,
    concurrency: usize,
    gangs: usize,
    gang_size: usize,
    pub(super) runs: Vec<Run>,
    /// What the scheduler used, if the bench started it.
    pub(super) scheduler: Option<Usage>,
}

impl Report {
    pub(super) fn new(options: &BenchOptions) -> Self {
        Self {
            version: VERSION,
            scheduler_name: options.scheduler_name.clone(),
            nodes: options.nodes,
            pods: options.pods,
            shapes: options.shapes,
            concurrency: options.concurrency,
            gangs: options.gangs,
            gang_size: options.gang_size,
            runs: Vec::new(),
            scheduler: None,
        }
    }

    fn spread(&self, kind: Kind, of: impl Fn(&Run) -> f64) -> Option<Spread> {
        let values: Vec<f64> = self.runs.iter().filter(|run| run.kind == kind).map(of).collect();
        (!values.is_empty()).then(|| spread(&values))
    }

    /// Returns the report as JSON, with the runs and their spreads.
    pub fn to_json(&self) -> anyhow::Result<String> {
        let mut json = serde_json::to_value(self)?;
        let all = self.rows().into_iter().map(|(name, unit, spread)| {
            serde_json::json!({"name": name, "unit": unit, "median": spread.median, "min": spread.min, "max": spread.max})
        });
        json["results"] = all.collect();
        Ok(serde_json::to_string_pretty(&json)?)
    }

    /// Returns the report as a Markdown table.
    pub fn to_table(&self) -> String {
        let Self { scheduler_name, nodes, pods, shapes, gangs, gang_size, .. } = self;
        let of = if *shapes == 1 { "shape" } else { "shapes" };
        let mut text = format!("{scheduler_name}: {nodes} nodes");
        // Writing to a string cannot fail.
        let is_of_gangs = |run: &Run| matches!(run.kind, Kind::Gangs(_));
        if !self.runs.iter().all(is_of_gangs) {
            let _ = write!(text, ", {pods} pods of {shapes} {of}");
        }
        if self.runs.iter().any(is_of_gangs) {
            let _ = write!(text, ", {gangs} gangs of {gang_size}");
        }
        text += "\n\n";
        text += "| what | unit | median | min | max |\n|---|---|---:|---:|---:|\n";
        for (name, unit, Spread { median, min, max }) in self.rows() {
            let _ = writeln!(text, "| {name} | {unit} | {median:.1} | {min:.1} | {max:.1} |");
        }
        if let Some(Usage { peak_memory_bytes, cpu_seconds }) = self.scheduler {
            let mib = peak_memory_bytes as f64 / f64::from(1 << 20);
            let _ =
                writeln!(text, "\nscheduler: {mib:.0} MiB at most, {cpu_seconds:.1} s of CPU in all runs");
        }
        text
    }

    /// Returns name, unit and spread of each result.
    fn rows(&self) -> Vec<(String, &'static str, Spread)> {
        let cap = self.spread(Kind::Bindcap, |run| run.pods_per_second);
        let drain = self.spread(Kind::Drain, |run| run.pods_per_second);
        let share = cap.zip(drain).filter(|(cap, _)| cap.median > 0.0).map(|(cap, drain)| {
            let percent = |rate: f64| rate / cap.median * 100.0;
            Spread { median: percent(drain.median), min: percent(drain.min), max: percent(drain.max) }
        });
        let arrivals = |of: fn(&Run) -> f64| self.spread(Kind::Arrivals, of);
        let rows = [
            ("bindcap", "pods/s", cap),
            ("drain", "pods/s", drain),
            ("drain, share of bindcap", "%", share),
            ("arrivals", "pods/s", arrivals(|run| run.pods_per_second)),
            ("arrivals, create to bound p50", "ms", arrivals(|run| run.p50_ms)),
            ("arrivals, create to bound p99", "ms", arrivals(|run| run.p99_ms)),
            ("arrivals, create to bound max", "ms", arrivals(|run| run.max_ms)),
        ];
        let rows = rows.into_iter().filter_map(|(name, unit, spread)| Some((name.to_owned(), unit, spread?)));
        rows.chain(self.rows_of_gangs()).collect()
    }

    /// Returns the rows of each dialect that was measured.
    fn rows_of_gangs(&self) -> Vec<(String, &'static str, Spread)> {
        let mut rows = Vec::new();
        for dialect in Dialect::ALL {
            let spread = |of: fn(&Run) -> f64| self.spread(Kind::Gangs(dialect), of);
            let Some(rate) = spread(|run| run.pods_per_second) else { continue };
            let dialect = dialect.as_str();
            rows.push((format!("gangs {dialect}"), "pods/s", rate));
            let quantiles = [
                ("p50", spread(|run| run.p50_ms)),
                ("p99", spread(|run| run.p99_ms)),
                ("max", spread(|run| run.max_ms)),
            ];
            rows.extend(quantiles.into_iter().filter_map(|(quantile, spread)| {
                Some((format!("gangs {dialect}, last create to all bound {quantile}"), "ms", spread?))
            }));
        }
        rows
    }
}
