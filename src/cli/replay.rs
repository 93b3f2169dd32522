//! `pellucid replay`: schedules a trace and reports the result.
//!
//! This file handles the command line and the trace; `app::replay` schedules it. The formats differ so much that each
//! has its own options; an option of another format is rejected, not ignored.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use pellucid_client::manifests::documents;
use pellucid_client::out;
use pellucid_client::text::count;
use pellucid_replay::{Format, GangJob, Pace, QuotaFile, SyntheticNodes, Trace, read_jobs, read_openb, span};

use super::block_on;
use crate::playback::dump as replay_dump;
use crate::playback::gangs::{GangReplayOptions, replay_gangs};
use crate::playback::packing::{PackingOptions, Strategy, study};
use crate::playback::{ReplayOptions, replay};
use pellucid_app::log::telemetry;
use pellucid_app::rest::dump;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid replay --format openb --nodes nodes.csv --pods pods.csv")]
pub(super) struct ReplayArgs {
    /// Decide again about a pod of this file, which GET /apis/v1/snapshot handed out, and compare; needs --pod
    #[arg(long, value_name = "FILE", requires = "pod", conflicts_with_all = ["format", "pods", "nodes", "synthetic_nodes",
          "speedup", "through_api", "decisions", "limit", "seed"])]
    pub snapshot: Option<PathBuf>,
    /// The pod of the snapshot
    #[arg(long, value_name = "NS/NAME", requires = "snapshot")]
    pub pod: Option<String>,
    /// How to print what came of a snapshot's pod
    #[arg(short = 'o', long, value_name = "FORM", requires = "snapshot")]
    pub output: Option<Output>,
    /// Format of the trace: openb (pods, none leaves) or philly (gangs that come, run and go)
    #[arg(long, required_unless_present = "snapshot")]
    pub format: Option<Format>,
    /// openb: the list of nodes
    #[arg(long, value_name = "FILE")]
    pub nodes: Option<PathBuf>,
    /// philly: N equal nodes with G GPUs each, for example 64x8gpu
    #[arg(long, value_name = "NxGgpu")]
    pub synthetic_nodes: Option<SyntheticNodes>,
    /// The list of pods, created one by one in this order; of philly the list of jobs
    #[arg(long, value_name = "FILE", required_unless_present = "snapshot")]
    pub pods: Option<PathBuf>,
    /// philly: ElasticQuotas (YAML or JSON) for the jobs. A job belongs to the quota that lists its model in annotation
    /// pellucid.dev/users, the others are dealt by turns
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub quotas: Option<PathBuf>,
    /// philly: how many seconds of the trace go by in a second, for example 10000
    #[arg(long, value_name = "N", value_parser = speedup)]
    pub speedup: Option<f64>,
    /// Go through the HTTP API of a sandbox instead of straight to the decisions; philly needs it
    #[arg(long)]
    pub through_api: bool,
    /// openb: write where each pod went, one line per pod: name, tab, node or -
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,
    /// openb: study how well GPUs are packed card by card, with DeviceShare and this strategy
    #[arg(long, value_name = "STRATEGY", conflicts_with_all = ["through_api", "decisions", "seed"])]
    pub strategy: Option<Strategy>,
    /// With --strategy: pods arrive until they request this much of the cluster's GPUs, in percent
    #[arg(long, value_name = "PERCENT", requires = "strategy", default_value_t = 130,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub arrival: u32,
    /// With --strategy: number of runs, each with arrivals of its own in another order
    #[arg(long, value_name = "N", requires = "strategy", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// With --strategy fragmentation-gradient: count typical pods over those that arrived, not over the whole trace
    #[arg(long, requires = "strategy")]
    pub count_typical: bool,
    /// With --strategy fragmentation-gradient: fill nodes up with N typical pods to rate them
    #[arg(long, value_name = "N", requires = "strategy", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub lookahead: u32,
    /// With --strategy: of nodes with equal scores, prefer the fuller one
    #[arg(long, requires = "strategy")]
    pub best_fit: bool,
    /// With --strategy: N pods arrive in a second, and those of a second are taken from the queue largest first
    #[arg(long, value_name = "N", requires = "strategy", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Orders nodes of equal score; the same seed gives the same decisions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Replay only the first N pods; of philly the N jobs that were submitted first
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

fn speedup(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "is not a number".to_owned())?;
    // Beyond this, a week of the trace takes less than a microsecond.
    match (1e-6..=1e12).contains(&number) {
        true => Ok(number),
        false if number > 0.0 => Err("must be between 0.000001 and 1000000000000".into()),
        false => Err("must be above 0".into()),
    }
}

impl ReplayArgs {
    /// Reads a trace of the format `openb`. The files are checked completely, even if `--limit` cuts the trace.
    fn trace(&self) -> anyhow::Result<Trace> {
        self.refuse("--synthetic-nodes", self.synthetic_nodes.map(|nodes| nodes.to_string()))?;
        self.refuse("--speedup", self.speedup.map(|speedup| speedup.to_string()))?;
        self.refuse("--quotas", self.quotas.as_ref().map(|file| file.display().to_string()))?;
        let nodes = self.nodes.as_ref().ok_or_else(|| self.needs("--nodes FILE", "the list of nodes"))?;
        let mut trace = read_openb(nodes, self.pods())?;
        not_empty(nodes, trace.nodes.len(), "nodes")?;
        not_empty(self.pods(), trace.pods.len(), "pods")?;
        trace.pods.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(trace)
    }

    /// Reads a trace of the format `philly`, and the options for its replay.
    fn jobs(&self) -> anyhow::Result<(Vec<GangJob>, GangReplayOptions)> {
        self.refuse("--nodes", self.nodes.as_ref().map(|file| file.display().to_string()))?;
        self.refuse("--decisions", self.decisions.as_ref().map(|file| file.display().to_string()))?;
        self.refuse("--strategy", self.strategy.map(|strategy| format!("{strategy:?}").to_lowercase()))?;
        let needs = |flag, why| self.needs(flag, why);
        anyhow::ensure!(
            self.through_api,
            needs("--through-api", "its jobs end, and only an API server makes pods run and end")
        );
        let nodes = self.synthetic_nodes.ok_or_else(|| {
            needs(
                "--synthetic-nodes NxGgpu",
                "it has no list of nodes; for example --synthetic-nodes 64x8gpu",
            )
        })?;
        let speedup = self
            .speedup
            .ok_or_else(|| needs("--speedup N", "it is weeks long; for example --speedup 10000"))?;
        let mut jobs = read_jobs(self.pods())?;
        not_empty(self.pods(), jobs.len(), "jobs")?;
        let in_file = |problem| {
            anyhow::anyhow!("{}: {problem}", self.quotas.as_deref().unwrap_or(Path::new("")).display())
        };
        let quotas = self.quotas.as_deref().map(read_quotas).transpose()?;
        quotas.as_ref().map_or(Ok(()), |quotas| quotas.check_users(&jobs)).map_err(in_file)?;
        jobs.truncate(self.limit.unwrap_or(usize::MAX));
        anyhow::ensure!(!jobs.is_empty(), "--limit 0 leaves nothing to replay");
        if let Some(job) = jobs.iter().find(|job| job.workers as u64 > nodes.all_gpus()) {
            let (name, workers, gpus) = (&job.name, job.workers, nodes.all_gpus());
            anyhow::bail!(
                "--synthetic-nodes {nodes}: {name} needs {workers} GPUs at once, and there are {gpus}"
            );
        }
        quotas.as_ref().map_or(Ok(()), |quotas| quotas.assign(&jobs).map(drop)).map_err(in_file)?;
        Ok((jobs, GangReplayOptions { nodes, pace: Pace { speedup }, seed: self.seed, quotas }))
    }

    /// Returns the file of pods. The command line requires it with every format.
    fn pods(&self) -> &Path {
        self.pods.as_deref().unwrap_or(Path::new(""))
    }

    fn format_name(&self) -> &'static str {
        self.format.map_or("", Format::as_str)
    }

    fn refuse(&self, flag: &str, value: Option<String>) -> anyhow::Result<()> {
        match value {
            Some(value) => {
                anyhow::bail!("{flag} {value} means nothing to --format {}", self.format_name())
            }
            None => Ok(()),
        }
    }

    fn needs(&self, flag: &str, why: &str) -> anyhow::Error {
        anyhow::anyhow!("--format {} needs {flag}: {why}", self.format_name())
    }
}

fn read_quotas(file: &Path) -> anyhow::Result<QuotaFile> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let documents = documents(&text, &name)?;
    QuotaFile::read(documents).map_err(|problem| anyhow::anyhow!("{name}: {problem}"))
}

fn not_empty(file: &Path, n: usize, what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(n > 0, "{}: there are no {what} in it", file.display());
    Ok(())
}

/// Replays a trace or a decision. Fails if the result is not good.
pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let is_good = match args.format {
        None => return run_dump(args),
        Some(Format::Openb) => run_pods(args)?,
        Some(Format::Philly) => run_gangs(args)?,
    };
    anyhow::ensure!(is_good, "the replay is not as it must be: see above");
    Ok(())
}

/// Repeats the decision about one pod of a dump. Fails if it differs.
fn run_dump(args: &ReplayArgs) -> anyhow::Result<()> {
    let (Some(file), Some(pod)) = (&args.snapshot, &args.pod) else {
        anyhow::bail!("--snapshot FILE and --pod NS/NAME go together");
    };
    let replayed = replay_dump::replay(&dump::read(file)?, pod)?;
    match args.output {
        Some(Output::Json) => out::line(&serde_json::to_string_pretty(&replayed)?)?,
        Some(Output::Text) | None => out::line(&replayed.to_string())?,
    }
    anyhow::ensure!(replayed.equal, "the decision is not the recorded one: see above");
    Ok(())
}

fn run_pods(args: &ReplayArgs) -> anyhow::Result<bool> {
    let trace = args.trace()?;
    let (_log, _guard) = telemetry::init(0)?;
    if let Some(strategy) = args.strategy {
        let options = PackingOptions {
            strategy,
            counts_typical: args.count_typical,
            lookahead: args.lookahead,
            best_fit: args.best_fit,
            rate: args.rate,
            arrival: args.arrival,
            seeds: args.seeds,
        };
        let report = study(&trace, options)?;
        out::line(&report.to_string())?;
        return Ok(report.is_good());
    }
    let options =
        ReplayOptions { through_api: args.through_api, decisions: args.decisions.clone(), seed: args.seed };
    let report = block_on(replay(trace, options))??;
    out::line(&report.to_string())?;
    Ok(report.is_good())
}

fn run_gangs(args: &ReplayArgs) -> anyhow::Result<bool> {
    let (jobs, options) = args.jobs()?;
    let (_log, _guard) = telemetry::init(0)?;
    out::line(&plan(&jobs, &options))?;
    let report = block_on(replay_gangs(jobs, options))??;
    out::line(&format!("\n{report}"))?;
    Ok(report.is_good())
}

/// Describes the replay, with the shortest time that it takes.
fn plan(jobs: &[GangJob], options: &GangReplayOptions) -> String {
    let (nodes, pace) = (options.nodes, options.pace);
    let workers: usize = jobs.iter().map(|job| job.workers).sum();
    let submitted = jobs.iter().map(|job| job.submitted_at);
    let arrivals = submitted.clone().max().unwrap_or_default() - submitted.min().unwrap_or_default();
    format!(
        "{} with {} on {} with {}: {} of arrivals takes {} at --speedup {}",
        count(jobs.len(), "job"),
        count(workers, "worker"),
        count(nodes.nodes as usize, "node"),
        count(nodes.gpus as usize, "GPU"),
        span(arrivals),
        span(pace.wall(arrivals)),
        pace.speedup
    )
}
