//! The command line: one file per command, and what the commands share.
//!
//! Commands about a running scheduler (`explain`, `gangs`, `queue`, `scores`, `simulate`, `flags`, `probe`) are plain
//! HTTP clients of its REST API and know nothing else of it. Under the name `kubectl-pellucid` the binary is `kubectl
//! pellucid` and has only these commands. Exit codes: 0 success, 1 failure with a message on stderr, 2 invalid command
//! line.

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pellucid_api::definitions::DEFINITIONS;

mod client;
mod demo;
mod explain;
mod explain_text;
mod fix_text;
mod flags;
mod gang_text;
mod gangs;
mod manifests;
mod node_text;
mod out;
mod probe;
mod queue;
mod replay;
pub mod run;
mod sandbox;
mod scores;
mod server;
mod simulate;
mod simulate_text;
mod text;

/// A Kubernetes scheduler whose every decision can be read while it runs.
#[derive(Debug, Parser)]
#[command(name = "pellucid", version, about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Schedule the pods of a cluster
    Run(run::RunArgs),
    /// Schedule on a small built-in cluster and show what there is to see
    Demo(demo::DemoArgs),
    /// Serve a Kubernetes API from memory, for a machine without a cluster
    Sandbox(sandbox::Args),
    /// Schedule a trace of a real cluster and report what became of it
    Replay(replay::ReplayArgs),
    /// Ask a running scheduler
    #[command(flatten)]
    Ask(Ask),
    /// Print the OpenAPI document of the REST API
    Openapi,
    /// Print the custom resource definitions of gangs, for `kubectl apply -f -`
    Crds,
    /// Ask a health endpoint, for probes in images without a shell
    Probe(probe::ProbeArgs),
}

/// The commands that ask a running scheduler.
#[derive(Debug, Subcommand)]
enum Ask {
    /// Say why pods are where they are, or nowhere
    Explain(explain::ExplainArgs),
    /// List the gangs with their members by stage
    Gangs(gangs::GangsArgs),
    /// List the pods and gangs that wait, in their order, or say who is ahead of one
    Queue(queue::QueueArgs),
    /// Show the recorded score table of a pod
    Scores(scores::ScoresArgs),
    /// Say what would become of pods, gangs and changes of the cluster; nothing changes
    Simulate(simulate::SimulateArgs),
    /// Show or set the runtime switches of a running scheduler
    Flags(flags::FlagsArgs),
}

/// Ask the scheduler Pellucid why pods are where they are, or nowhere.
#[derive(Debug, Parser)]
#[command(name = "kubectl-pellucid", bin_name = PLUGIN, version, about, propagate_version = true, max_term_width = 100)]
struct Plugin {
    #[command(subcommand)]
    ask: Ask,
}

/// The command line that users type when the binary is a kubectl plugin.
const PLUGIN: &str = "kubectl pellucid";

/// Returns the name under which the user started the binary, for hints.
fn program() -> &'static str {
    let name = std::env::args_os().next();
    let stem = name.as_deref().and_then(|name| Path::new(name).file_stem());
    if stem.is_some_and(|stem| stem == "kubectl-pellucid") { PLUGIN } else { "pellucid" }
}

/// Runs the command of the command line and returns its exit code.
pub fn main() -> ExitCode {
    let command = if program() == PLUGIN { Command::Ask(Plugin::parse().ask) } else { Cli::parse().command };
    match dispatch(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            out::complain(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Sandbox(args) => block_on(sandbox::run(args))?,
        Command::Replay(args) => replay::run(&args),
        Command::Ask(Ask::Explain(args)) => explain::run(&args),
        Command::Ask(Ask::Gangs(args)) => gangs::run(&args),
        Command::Ask(Ask::Queue(args)) => queue::run(&args),
        Command::Ask(Ask::Scores(args)) => scores::run(&args),
        Command::Ask(Ask::Simulate(args)) => simulate::run(&args),
        Command::Ask(Ask::Flags(args)) => flags::run(&args),
        Command::Openapi => print_openapi(),
        Command::Crds => out::line(DEFINITIONS.join("---\n").trim_end()),
        Command::Probe(args) => probe::run(&args),
    }
}

/// Prints the document as a running scheduler serves it.
fn print_openapi() -> anyhow::Result<()> {
    let routes = crate::app::rest::routes::routes(&pellucid_plugins::registry());
    let document = pellucid_http::openapi(&routes, &crate::app::instance::version().git_version)?;
    out::line(&serde_json::to_string_pretty(&document)?)
}

/// How long reads of disconnected clients may delay the exit, after everything else has ended.
const LAST_READS: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs a command that serves or uses a cluster on a multi-threaded runtime. The scheduling thread is not part of it.
fn block_on<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_READS);
    Ok(done)
}
