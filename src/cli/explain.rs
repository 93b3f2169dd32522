//! `pellucid explain`: explains a pod, a gang, a node, or all pending pods.

use clap::{Args, Subcommand};
use pellucid_api::rest::explain::{PendingPods, PodExplanation};
use pellucid_api::rest::gang_explain::GangExplanation;
use serde_json::Value;

use super::out::Paint;
use super::server::{ObjectName, ServerArgs, node_name};
use super::{explain_text, fix_text, gang_text, node_text};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(super) struct ExplainArgs {
    /// A pod, as `explain pod` takes it
    #[arg(value_name = "NAMESPACE/NAME")]
    pub pod: Option<ObjectName>,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(subcommand)]
    pub what: Option<ExplainTarget>,
}

/// What can be explained.
#[derive(Debug, Subcommand)]
pub(super) enum ExplainTarget {
    /// Why a pod is on its node, or on none, and what would help
    Pod {
        /// The pod: NAMESPACE/NAME, or NAME
        #[arg(value_name = "NAMESPACE/NAME")]
        pod: ObjectName,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Why a gang is placed, or not: numbers, root cause, who is in the way, members, what would help
    Gang {
        /// The gang: NAMESPACE/NAME, or NAME
        #[arg(value_name = "NAMESPACE/NAME")]
        gang: ObjectName,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Which pending pods a node would take, which it refuses and why, and what lies idle on it
    Node {
        /// The node
        #[arg(value_name = "NAME", value_parser = node_name)]
        node: String,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Every pending pod with its reason
    Pods {
        #[command(flatten)]
        server: ServerArgs,
    },
}

pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    match (&args.what, &args.pod) {
        (Some(ExplainTarget::Pod { pod, server }), _) => explain_pod(pod, server, paint),
        (Some(ExplainTarget::Gang { gang, server }), _) => {
            let path = format!("/apis/v1/explain/gangs/{}", server.full(gang)?);
            server.show(&path, |body: &GangExplanation| {
                let help =
                    if gang_text::is_good(body) { String::new() } else { fix_text::of(server, &path, paint) };
                format!("{}\n{help}", gang_text::gang(body, paint))
            })
        }
        (Some(ExplainTarget::Node { node, server }), _) => {
            let path = format!("/apis/v1/explain/nodes/{node}");
            server.show(&path, |body| node_text::node(node, body, paint))
        }
        (Some(ExplainTarget::Pods { server }), _) => server.show_narrowed(
            "/apis/v1/explain/pods",
            |body| narrow(body, server),
            |body: &PendingPods| explain_text::pending(body, paint),
        ),
        (None, Some(pod)) => explain_pod(pod, &args.server, paint),
        (None, None) => anyhow::bail!("nothing to explain: name a pod, or one of pod, gang, node, pods"),
    }
}

fn explain_pod(pod: &ObjectName, server: &ServerArgs, paint: Paint) -> anyhow::Result<()> {
    let path = format!("/apis/v1/explain/pods/{}", server.full(pod)?);
    server.show(&path, |body: &PodExplanation| {
        let is_pending = body.placement.is_none() && body.not_pending.is_none();
        let help = if is_pending { fix_text::of(server, &path, paint) } else { String::new() };
        format!("{}\n{help}", explain_text::pod(body, paint))
    })
}

/// Removes the pods outside the requested namespace.
fn narrow(body: &mut Value, server: &ServerArgs) {
    server.narrow(body, "pods");
    let left = body["pods"].as_array().map(Vec::len);
    if let (Some(left), Some(count)) = (left, body.get_mut("count")) {
        *count = left.into();
    }
}
