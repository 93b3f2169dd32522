//! The commands that ask a running scheduler, one file per command, and what they share.
//!
//! They are plain HTTP clients of its REST API: of the scheduler they know the bodies in `pellucid_api::rest` and nothing
//! else, so a change in a plugin compiles none of this again. Start at [`Ask`]. [`probe`] is one of them that only the full
//! binary has; [`out`], [`text`] and [`manifests`] serve the other commands too. What starts a scheduler or a cluster is not
//! here: that is `cli`.

use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

mod age;
mod brief;
mod client;
mod contrast_text;
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
pub mod manifests;
mod node_text;
mod nodes;
pub mod out;
mod pending_text;
mod pods;
pub mod probe;
mod queue;
mod queue_text;
mod queues;
mod quotas;
mod replicas;
mod reservations;
mod scores;
mod server;
mod shadow;
mod simulate;
mod simulate_text;
mod suggestions;
mod table;
pub mod text;
mod trust;
mod wakeups;
mod watch;

/// The commands that ask a running scheduler.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is read once")]
pub enum Ask {
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
    /// List kube-batch's Queues with what each deserves and holds, or explain the share of one
    Queues(queues::QueuesArgs),
    /// List the quotas as a tree with what each may use, or explain the share of one
    Quotas(quotas::QuotasArgs),
    /// List the reservations with what is left of each, or explain one
    Reservations(reservations::ReservationsArgs),
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

/// Returns whether the user started the binary as a kubectl plugin.
#[must_use]
pub fn is_kubectl_plugin() -> bool {
    program() == PLUGIN
}

/// Runs the command line of the kubectl plugin, which has [`Ask`] alone.
///
/// # Errors
/// Those of [`Ask::run`]. An invalid command line ends the process.
pub fn kubectl_plugin() -> anyhow::Result<ExitCode> {
    let matches = renamed(Plugin::command()).get_matches();
    Plugin::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()).ask.run()
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

impl Ask {
    /// Asks, prints the answer, and returns the exit code.
    ///
    /// # Errors
    /// No answer, one that says no, or one that cannot be printed.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Explain(args) => explain::run(&args)?,
            Self::Pod(args) => explain_pod::run(&args.pod, &args.how)?,
            Self::Gang(args) => explain_gang::run(&args)?,
            Self::Node(args) => explain::node(&args)?,
            Self::Gangs(args) => gangs::run(&args)?,
            Self::Nodes(args) => nodes::run(&args)?,
            Self::Queue(args) => queue::run(&args)?,
            Self::Queues(args) => args.server.print(&queues::run(&args)?)?,
            Self::Quotas(args) => args.server.print(&quotas::run(&args)?)?,
            Self::Reservations(args) => args.server.print(&reservations::run(&args)?)?,
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
