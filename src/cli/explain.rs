//! `pellucid explain`: the stored verdict of a pod, all pending pods, and the verdict on a gang.

use clap::{Args, Subcommand};
use pellucid_api::rest::explain::{PendingPods, PodExplanation};
use pellucid_api::rest::gang_explain::GangExplanation;

use super::out::Paint;
use super::server::{PodName, ServerArgs};
use super::{explain_text, gang_text};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// What to explain.
    #[command(subcommand)]
    pub what: What,
}

/// What can be explained.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Why a pod is on its node, or on none
    Pod {
        /// The pod: NAMESPACE/NAME, or NAME in namespace default
        #[arg(value_name = "NAMESPACE/NAME")]
        pod: PodName,
        /// The scheduler.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Why a gang is placed, or not: numbers, root cause, who is in the way, members
    Gang {
        /// The gang: NAMESPACE/NAME, or NAME in namespace default
        #[arg(value_name = "NAMESPACE/NAME")]
        gang: PodName,
        /// The scheduler.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Every pending pod with its reason
    Pods {
        /// The scheduler.
        #[command(flatten)]
        server: ServerArgs,
    },
}

/// Explains.
pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    match &args.what {
        What::Pod { pod, server } => {
            let path = format!("/apis/v1/explain/pods/{}/{}", pod.namespace, pod.name);
            server.show(&path, |body: &PodExplanation| explain_text::pod(body, paint))
        }
        What::Gang { gang, server } => {
            let path = format!("/apis/v1/explain/gangs/{}/{}", gang.namespace, gang.name);
            server.show(&path, |body: &GangExplanation| gang_text::gang(body, paint))
        }
        What::Pods { server } => {
            server.show("/apis/v1/explain/pods", |body: &PendingPods| explain_text::pending(body, paint))
        }
    }
}
