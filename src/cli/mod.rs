//! The command line, with a file for each command that starts something.
//!
//! Commands about a running scheduler are clients of its REST API and a crate of their own, [`pellucid_client`]. Under the
//! name `kubectl-pellucid` the binary is `kubectl pellucid` and has only these. Exit codes: 0 success, 1 failure with a
//! message on stderr, 2 invalid command line, 3 when `simulate` finds that something would not fit.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pellucid_api::definitions::{DEFINITIONS, koordinator};
use pellucid_client::{Ask, out, probe};

mod bench;
mod demo;
mod replay;
pub mod run;
mod sandbox;
mod webhook;

/// A Kubernetes scheduler whose every decision can be read while it runs.
#[derive(Debug, Parser)]
#[command(name = "pellucid", version, about, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is read once")]
enum Command {
    /// Schedule the pods of a cluster
    Run(run::RunArgs),
    /// Schedule on a small built-in cluster and show what there is to see
    Demo(demo::DemoArgs),
    /// Serve a Kubernetes API from memory, for a machine without a cluster
    Sandbox(sandbox::Args),
    /// Schedule a trace of a real cluster and report what became of it
    Replay(replay::ReplayArgs),
    /// Serve the admission rules of quotas to an API server
    Webhook(webhook::WebhookArgs),
    /// Measure a scheduler through an API server, and what that server takes
    Bench(bench::BenchArgs),
    /// Ask a running scheduler
    #[command(flatten)]
    Ask(Ask),
    /// Print the OpenAPI document of the REST API
    #[command(after_help = "Example:\n  pellucid openapi > openapi.json")]
    Openapi,
    /// Print the custom resource definitions of gangs, for `kubectl apply -f -`
    #[command(
        after_help = "Examples:\n  pellucid crds | kubectl apply -f -\n  pellucid crds --koordinator | kubectl apply -f -"
    )]
    Crds {
        /// Print those of the kinds of Koordinator's plugins instead, for a cluster without Koordinator
        #[arg(long)]
        koordinator: bool,
    },
    /// Ask a health endpoint, for probes in images without a shell
    Probe(probe::ProbeArgs),
}

/// Runs the command of the command line and returns its exit code.
pub fn main() -> ExitCode {
    let done = if pellucid_client::is_kubectl_plugin() {
        pellucid_client::kubectl_plugin()
    } else {
        dispatch(Cli::parse().command)
    };
    done.unwrap_or_else(|error| {
        out::complain(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(&args)?,
        Command::Demo(args) => demo::run(&args)?,
        Command::Sandbox(args) => block_on(sandbox::run(args))??,
        Command::Replay(args) => replay::run(&args)?,
        Command::Webhook(args) => webhook::run(&args)?,
        Command::Bench(args) => bench::run(args)?,
        Command::Ask(ask) => return ask.run(),
        Command::Openapi => print_openapi()?,
        Command::Crds { koordinator: false } => out::line(DEFINITIONS.join("---\n").trim_end())?,
        Command::Crds { koordinator: true } => out::line(koordinator::ALL.join("---\n").trim_end())?,
        Command::Probe(args) => probe::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the document as a running scheduler serves it.
fn print_openapi() -> anyhow::Result<()> {
    let routes = pellucid_app::rest::routes::routes(&pellucid_plugins::registry());
    let document = pellucid_http::openapi(&routes, &pellucid_app::instance::version("").git_version)?;
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
