//! The command line: one file per command, and what the commands share.
//!
//! Commands about a running scheduler ([`Ask`] and `probe`) are plain HTTP clients of its REST API and know nothing else
//! of it. Under the name `kubectl-pellucid` the binary is `kubectl pellucid` and has only these commands. Exit codes: 0
//! success, 1 failure with a message on stderr, 2 invalid command line, 3 when `simulate` finds that something would not
//! fit.

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use pellucid_api::definitions::DEFINITIONS;

mod age;
mod bench;
mod brief;
mod client;
mod contrast_text;
mod demo;
mod events;
mod evictions;
mod explain;
mod explain_gang;
mod explain_pod;
mod explain_text;
mod filters;
mod fix_text;
mod flags;
mod gang_text;
mod gangs;
mod history;
mod manifests;
mod node_text;
mod nodes;
mod out;
mod pending_text;
mod pods;
mod probe;
mod queue;
mod queue_text;
mod replay;
mod replicas;
pub mod run;
mod sandbox;
mod scores;
mod server;
mod shadow;
mod simulate;
mod simulate_text;
mod suggestions;
mod table;
mod text;
mod trust;
mod wakeups;
mod watch;

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
    /// Measure a scheduler through an API server, and what that server takes
    Bench(bench::BenchArgs),
    /// Ask a running scheduler
    #[command(flatten)]
    Ask(Ask),
    /// Print the OpenAPI document of the REST API
    #[command(after_help = "Example:\n  pellucid openapi > openapi.json")]
    Openapi,
    /// Print the custom resource definitions of gangs, for `kubectl apply -f -`
    #[command(after_help = "Example:\n  pellucid crds | kubectl apply -f -")]
    Crds,
    /// Ask a health endpoint, for probes in images without a shell
    Probe(probe::ProbeArgs),
}

/// The commands that ask a running scheduler.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is read once")]
enum Ask {
    /// Say why pods are where they are, or nowhere
    Explain(explain::ExplainArgs),
    /// Explain one pod, as `explain pod`
    Pod(explain_pod::PodArgs),
    /// Explain one gang, as `explain gang`
    Gang(explain_gang::GangArgs),
    /// Explain one node, as `explain node`
    Node(explain::NodeArgs),
    /// List the gangs with their members by stage
    Gangs(gangs::GangsArgs),
    /// List the nodes, with how many of the pending pods each would take
    Nodes(nodes::NodesArgs),
    /// List what waits, by stage and controller, or say who is ahead of a pod or gang
    Queue(queue::QueueArgs),
    /// Say what would make a pod fit, or give a gang its quorum
    Suggestions(suggestions::SuggestionsArgs),
    /// Say what happened to a pod, also after it is gone
    History(history::HistoryArgs),
    /// Print what happens to pods and gangs, line by line
    Events(events::EventsArgs),
    /// List who was evicted for whom, for what, and what became of it
    Evictions(evictions::EvictionsArgs),
    /// Say what a pod waits for, and which events did not help it
    Wakeups(wakeups::WakeupsArgs),
    /// Show the recorded score table of a pod
    Scores(scores::ScoresArgs),
    /// Say what would become of pods, gangs and changes of the cluster; nothing changes
    Simulate(simulate::SimulateArgs),
    /// Compare the decisions of the shadowed scheduler with ours (run --shadow-of)
    Shadow(shadow::ShadowArgs),
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

/// Exit code of a simulation in which something would not fit.
const DOES_NOT_FIT: u8 = 3;

/// Runs the command of the command line and returns its exit code.
pub fn main() -> ExitCode {
    let done = if program() == PLUGIN {
        let matches = renamed(Plugin::command()).get_matches();
        Plugin::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).ask.run()
    } else {
        dispatch(Cli::parse().command)
    };
    done.unwrap_or_else(|error| {
        out::complain(&format!("error: {error:#}"));
        ExitCode::FAILURE
    })
}

/// Returns a command whose examples begin as users of the kubectl plugin type them, and so do its subcommands'.
fn renamed(command: clap::Command) -> clap::Command {
    let examples = command.get_after_help().map(|help| help.to_string());
    let command = command.mut_subcommands(renamed);
    match examples {
        Some(examples) => command.after_help(examples.replace("  pellucid ", &format!("  {PLUGIN} "))),
        None => command,
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(&args)?,
        Command::Demo(args) => demo::run(&args)?,
        Command::Sandbox(args) => block_on(sandbox::run(args))??,
        Command::Replay(args) => replay::run(&args)?,
        Command::Bench(args) => bench::run(args)?,
        Command::Ask(ask) => return ask.run(),
        Command::Openapi => print_openapi()?,
        Command::Crds => out::line(DEFINITIONS.join("---\n").trim_end())?,
        Command::Probe(args) => probe::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Ask {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Explain(args) => explain::run(&args)?,
            Self::Pod(args) => explain_pod::run(&args.pod, &args.how)?,
            Self::Gang(args) => explain_gang::run(&args)?,
            Self::Node(args) => explain::node(&args)?,
            Self::Gangs(args) => gangs::run(&args)?,
            Self::Nodes(args) => nodes::run(&args)?,
            Self::Queue(args) => queue::run(&args)?,
            Self::Suggestions(args) => args.server().print(&suggestions::run(&args)?)?,
            Self::History(args) => args.server.print(&history::run(&args)?)?,
            Self::Events(args) => events::run(&args)?,
            Self::Evictions(args) => args.server.print(&evictions::run(&args)?)?,
            Self::Wakeups(args) => args.server.print(&wakeups::run(&args)?)?,
            Self::Scores(args) => args.server.print(&scores::run(&args)?)?,
            Self::Shadow(args) => args.server.print(&shadow::run(&args)?)?,
            Self::Simulate(args) => {
                let (text, fits) = simulate::run(&args)?;
                args.server.print(&text)?;
                return Ok(if fits { ExitCode::SUCCESS } else { ExitCode::from(DOES_NOT_FIT) });
            }
            Self::Flags(args) => args.server.print(&flags::run(&args)?)?,
        }
        Ok(ExitCode::SUCCESS)
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
