//! `pellucid explain pod`: one pod, from its verdict to what would help; on request its history and another node.

use clap::Args;
use pellucid_api::rest::explain::PodExplanation;
use pellucid_api::rest::history::PodHistory;

use super::out::Paint;
use super::server::{ObjectName, ServerArgs, node_name};
use super::watch::{self, WatchArgs};
use super::{brief, contrast_text, explain_text, fix_text, history};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pellucid explain pod shop/web-0\n  pellucid pod web-0 -n shop --brief")]
pub struct PodArgs {
    /// The pod: NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) pod: ObjectName,
    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// How much is said of a pod.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    /// Three lines: the verdict, never or not now, and the best fix
    #[arg(long, conflicts_with_all = ["versus", "history"])]
    pub(crate) brief: bool,
    /// Also why not this node
    #[arg(long, value_name = "NODE", value_parser = node_name)]
    pub(crate) versus: Option<String>,
    /// Also what happened to it so far
    #[arg(long)]
    pub(crate) history: bool,
}

pub(crate) fn run(pod: &ObjectName, how: &HowArgs) -> anyhow::Result<()> {
    watch::run(&how.watch, &how.server, || explained(pod, how))
}

fn explained(pod: &ObjectName, how: &HowArgs) -> anyhow::Result<String> {
    let (server, paint) = (&how.server, Paint::for_stdout());
    let name = server.full(pod)?;
    let path = format!("/apis/v1/explain/pods/{name}");
    let asked = match &how.versus {
        Some(node) => format!("{path}?versus={node}"),
        None => path.clone(),
    };
    let mut body = server.body(&asked)?;
    let history = how.history.then(|| server.body(&history::path(&name))).transpose()?;
    if server.is_for_programs() {
        if let (Some(body), Some(history)) = (body.as_object_mut(), history) {
            body.insert("history".to_owned(), history);
        }
        return server.value(&body);
    }
    let body: PodExplanation = server.understood(&asked, body)?;
    let is_pending = body.placement.is_none() && body.not_pending.is_none();
    if how.brief {
        return Ok(brief::pod(&body, is_pending.then(|| fix_text::ask(server, &path, 1))));
    }
    let mut text = explain_text::pod(&body, paint);
    if let Some(versus) = &body.versus {
        text += &format!("\n\n{}", contrast_text::contrast(versus, paint).trim_end());
    }
    if let Some(history) = history {
        let history: PodHistory = server.understood(&history::path(&name), history)?;
        text += &format!("\n\n{}", history::entries(&history, paint).trim_end());
    }
    let help = if is_pending { fix_text::of(server, &path, paint) } else { String::new() };
    Ok(format!("{text}\n{help}"))
}
