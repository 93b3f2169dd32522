//! `pellucid bench`: measures a scheduler through an API server.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use pellucid_client::out;
use pellucid_model::gang::Dialect;

use super::block_on;
use pellucid_app::bench::{self, BenchOptions, Mode};

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pellucid bench all --nodes 1000 --pods 2000\n  pellucid bench gangs --dialect native,unicore --gangs 200 --gang-size 8"
)]
pub(super) struct BenchArgs {
    /// What to measure
    #[arg(value_enum, default_value = "all")]
    mode: Mode,
    /// Cluster to measure on; without it a sandbox and a scheduler are started
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Scheduler to measure; another than pellucid needs --kubeconfig
    #[arg(long, value_name = "NAME", default_value = "pellucid")]
    scheduler_name: String,
    /// Namespace to create; everything in it is deleted at the end
    #[arg(long, value_name = "NAME", default_value = "pellucid-bench")]
    namespace: String,
    /// Nodes to create
    #[arg(long, value_name = "N", default_value = "1000", value_parser = at_least_one)]
    nodes: usize,
    /// Pods of each run
    #[arg(long, value_name = "N", default_value = "2000", value_parser = at_least_one)]
    pods: usize,
    /// Different requests among the pods
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    shapes: usize,
    /// Arrivals per second; by default half of what bindcap measured in the same round
    #[arg(long, value_name = "RATE", value_parser = rate, required_if_eq("mode", "arrivals"))]
    rate: Option<f64>,
    /// Runs that count
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_one)]
    runs: usize,
    /// Runs before them that do not count
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmup: usize,
    /// Bindings in flight of bindcap
    #[arg(long, value_name = "N", default_value = "128", value_parser = at_least_one)]
    concurrency: usize,
    /// Dialects of gangs; by default all, in `all` those that the API server has the kinds for
    #[arg(long = "dialect", value_name = "DIALECT", value_delimiter = ',', value_parser = dialect())]
    dialects: Vec<Dialect>,
    /// Gangs of each run
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one)]
    gangs: usize,
    /// Members of each gang, all of which it needs
    #[arg(long, value_name = "M", default_value = "10", value_parser = at_least_one)]
    gang_size: usize,
    /// Remove first what an earlier bench left behind: its nodes, and the namespace with its pods and PodGroups
    #[arg(long)]
    clean: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Json,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "a whole number of at least 1".into())
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    number.ok_or_else(|| "a number of pods per second above 0".into())
}

/// Parses the name of a dialect.
fn dialect() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(Dialect::ALL.map(Dialect::as_str)).try_map(|name| {
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.as_str() == name);
        found.ok_or("a dialect of gangs")
    })
}

/// Measures and prints the report.
pub(super) fn run(args: BenchArgs) -> anyhow::Result<()> {
    let is_own = args.kubeconfig.is_none();
    if is_own && args.scheduler_name != "pellucid" {
        anyhow::bail!(
            "--scheduler-name {} needs --kubeconfig: only pellucid can be started here",
            args.scheduler_name
        );
    }
    // This fails only if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let report = block_on(bench::bench(BenchOptions {
        mode: args.mode,
        kubeconfig: args.kubeconfig,
        scheduler_name: args.scheduler_name,
        namespace: args.namespace,
        nodes: args.nodes,
        pods: args.pods,
        shapes: args.shapes,
        rate: args.rate,
        runs: args.runs,
        warmup: args.warmup,
        concurrency: args.concurrency,
        dialects: args.dialects,
        gangs: args.gangs,
        gang_size: args.gang_size,
        clean: args.clean,
    }))??;
    match args.format {
        Format::Table => out::line(report.to_table().trim_end()),
        Format::Json => out::line(&report.to_json()?),
    }
}
