//! `pellucid explain`: explains a pod, a gang, a node, or lists all that is pending.

use clap::{Args, Subcommand};

use super::filters::AskedList;
use super::out::Paint;
use super::server::{ObjectName, ServerArgs, node_name};
use super::watch::{self, WatchArgs};
use super::{explain_gang, explain_pod, gangs, node_text, nodes, pods};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  pellucid explain pods\n  pellucid explain pod shop/web-0 --versus node-7"
)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub(crate) pod: OptionalPod,
    #[command(subcommand)]
    pub(crate) what: Option<ExplainTarget>,
}

/// A pod whose name may be absent, because a subcommand stands in its place.
#[derive(Debug, Args)]
pub(crate) struct OptionalPod {
    /// A pod, as `explain pod` takes it
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) pod: Option<ObjectName>,
    #[command(flatten)]
    pub(crate) how: explain_pod::HowArgs,
}

/// What can be explained.
#[derive(Debug, Subcommand)]
pub(crate) enum ExplainTarget {
    /// Why a pod is on its node, or on none, and what would help
    Pod(explain_pod::PodArgs),
    /// Why a gang is placed, or not: numbers, root cause, who is in the way, members, what would help
    Gang(explain_gang::GangArgs),
    /// Which pending pods a node would take, which it refuses and why, and what lies idle on it
    Node(NodeArgs),
    /// The pending pods by controller with their reasons
    Pods(PodsArgs),
    /// The gangs with their members by stage
    Gangs(gangs::GangsArgs),
    /// The nodes, with how many of the pending pods each would take
    Nodes(nodes::NodesArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pellucid explain node node-7\n  pellucid node node-7 --watch")]
pub struct NodeArgs {
    /// The node
    #[arg(value_name = "NAME", value_parser = node_name)]
    pub(crate) node: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  pellucid explain pods --reason InsufficientResource --owner Deployment/web --all"
)]
pub(crate) struct PodsArgs {
    #[command(flatten)]
    pub(crate) asked: AskedList,
}

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    match (&args.what, &args.pod.pod) {
        (Some(ExplainTarget::Pod(args)), _) => explain_pod::run(&args.pod, &args.how),
        (Some(ExplainTarget::Gang(args)), _) => explain_gang::run(args),
        (Some(ExplainTarget::Node(args)), _) => node(args),
        (Some(ExplainTarget::Pods(args)), _) => args.asked.run(pods::list),
        (Some(ExplainTarget::Gangs(args)), _) => gangs::run(args),
        (Some(ExplainTarget::Nodes(args)), _) => nodes::run(args),
        (None, Some(pod)) => explain_pod::run(pod, &args.pod.how),
        (None, None) => anyhow::bail!("nothing to explain: name a pod, or one of pod, gang, node, pods"),
    }
}

pub(crate) fn node(args: &NodeArgs) -> anyhow::Result<()> {
    let path = format!("/apis/v1/explain/nodes/{}", args.node);
    watch::run(&args.watch, &args.server, || {
        args.server.show(&path, |body| node_text::node(&args.node, body, Paint::for_stdout()))
    })
}
