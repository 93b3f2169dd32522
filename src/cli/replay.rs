//! `pellucid replay`: schedules a trace and reports.
//!
//! This file reads the command line and the trace; scheduling it is the app's.

use std::path::PathBuf;

use clap::Args;

use super::{out, runtime};
use crate::app::replay::{ReplayOptions, replay};
use crate::app::telemetry;
use crate::replay::{Format, Trace, read};

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Format of the trace: openb
    #[arg(long)]
    pub format: Format,
    /// The list of nodes
    #[arg(long, value_name = "FILE")]
    pub nodes: PathBuf,
    /// The list of pods; they are created one by one in this order, and none leaves
    #[arg(long, value_name = "FILE")]
    pub pods: PathBuf,
    /// Go through the HTTP API of a sandbox instead of straight to the decisions
    #[arg(long)]
    pub through_api: bool,
    /// Write where each pod went, one line per pod: name, tab, node or -
    #[arg(long, value_name = "FILE")]
    pub decisions: Option<PathBuf>,
    /// Orders nodes of equal score; the same seed gives the same decisions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Replay only the first N pods
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

impl ReplayArgs {
    /// Reads the trace, as far as it is to be replayed. The files are checked whole.
    pub fn trace(&self) -> anyhow::Result<Trace> {
        let mut trace = read(self.format, &self.nodes, &self.pods)?;
        for (file, n, what) in
            [(&self.nodes, trace.nodes.len(), "nodes"), (&self.pods, trace.pods.len(), "pods")]
        {
            anyhow::ensure!(n > 0, "{}: there are no {what} in it", file.display());
        }
        trace.pods.truncate(self.limit.unwrap_or(usize::MAX));
        Ok(trace)
    }
}

/// Replays.
pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<()> {
    let trace = args.trace()?;
    let (_log, _guard) = telemetry::init(0)?;
    let options =
        ReplayOptions { through_api: args.through_api, decisions: args.decisions.clone(), seed: args.seed };
    let report = runtime()?.block_on(replay(trace, options))?;
    out::line(&report.to_string())?;
    anyhow::ensure!(report.is_good(), "the replay is not as it must be: see above");
    Ok(())
}
