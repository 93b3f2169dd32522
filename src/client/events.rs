//! `pellucid events`: what happens to pods and gangs, line by line; with `-f` as it happens.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use clap::Args;
use pellucid_api::rest::history::FeedLine;

use super::out;
use super::server::{Output, ServerArgs};
use super::text::clean;

const PATH: &str = "/apis/v1/events";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pellucid events -n shop --kind Refused,Evicted\n  pellucid events -f --pod web-"
)]
pub struct EventsArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Stay, and print what happens from now on
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The last so many lines; 0 for all that are recorded
    #[arg(long, value_name = "LINES", default_value_t = 50)]
    pub(crate) tail: usize,
    /// Only pods whose name begins so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) pod: Option<String>,
    /// Only gangs whose name begins so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) gang: Option<String>,
    /// Only this node
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only these kinds, with commas, such as Refused,Placed,Evicted
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) kind: Vec<String>,
}

pub(crate) fn run(args: &EventsArgs) -> anyhow::Result<()> {
    let mut kept: VecDeque<String> = VecDeque::new();
    let (mut cursor, is_prose) = (0, !args.server.is_for_programs());
    args.server
        .lines(PATH, false, |text| {
            if let Some(line) = args.line(text, &mut cursor)? {
                kept.push_back(line);
            }
            if args.tail > 0 && kept.len() > args.tail {
                kept.pop_front();
            }
            Ok(ControlFlow::Continue(()))
        })
        .map(drop)?;
    for line in &kept {
        if out::page(line, is_prose)?.is_break() {
            return Ok(());
        }
    }
    if !args.follow {
        return Ok(());
    }
    let path = format!("{PATH}?follow=true&since={cursor}");
    let end = args.server.lines(&path, true, |text| match args.line(text, &mut cursor)? {
        Some(line) => out::page(&line, is_prose),
        None => Ok(ControlFlow::Continue(())),
    })?;
    anyhow::ensure!(end.is_break(), "the feed has ended: the scheduler has stopped");
    Ok(())
}

impl EventsArgs {
    /// Returns a line of the feed as it is printed, or `None` when a filter leaves it out. Moves the cursor.
    fn line(&self, text: &str, cursor: &mut u64) -> anyhow::Result<Option<String>> {
        let event: FeedLine = serde_json::from_str(text)
            .map_err(|error| anyhow::anyhow!("a line of the feed is not understood: {error}"))?;
        *cursor = event.id.unwrap_or(*cursor);
        if !self.wants(&event) {
            return Ok(None);
        }
        Ok(Some(match self.server.output {
            Output::Table => shown(&event),
            Output::Json => text.to_owned(),
            Output::Yaml => format!("---\n{}", serde_saphyr::to_string(&event)?.trim_end()),
        }))
    }

    /// Returns whether no filter leaves an event out. Marks of gaps are never left out.
    fn wants(&self, event: &FeedLine) -> bool {
        let is_of = |key: &Option<String>, prefix: &Option<String>| {
            prefix.as_ref().is_none_or(|prefix| {
                key.as_ref().is_some_and(|key| {
                    let name = key.split_once('/').map_or(key.as_str(), |(_, name)| name);
                    name.starts_with(prefix.as_str()) || key.starts_with(prefix.as_str())
                })
            })
        };
        if event.id.is_none() {
            return true;
        }
        let subject = event.pod.as_ref().or(event.gang.as_ref());
        subject.map_or(self.server.namespace.is_none(), |key| self.server.wants(key))
            && is_of(&event.pod, &self.pod)
            && is_of(&event.gang, &self.gang)
            && self.node.as_ref().is_none_or(|node| event.node.as_ref() == Some(node))
            && (self.kind.is_empty() || self.kind.contains(&event.kind))
    }
}

/// Formats an event: when, what, whom, where, how often, in words.
fn shown(event: &FeedLine) -> String {
    let at = event.at.as_deref().unwrap_or("-");
    let subject = event.pod.as_ref().or(event.gang.as_ref()).or(event.object.as_ref());
    let subject = subject.map_or("-", String::as_str);
    let mut text = format!("{at}  {:<12} {subject}", event.kind);
    if let (Some(from), Some(to)) = (event.from, event.to) {
        text += &format!("  entries {from} to {to} are lost");
    }
    text += &event.node.as_ref().map(|node| format!("  on {node}")).unwrap_or_default();
    text +=
        &event.count.filter(|count| *count > 1).map(|count| format!("  ({count} times)")).unwrap_or_default();
    if !event.message.is_empty() {
        text += &format!("  {}", event.message);
    }
    clean(&text)
}

#[cfg(test)]
mod tests {
    use super::super::server::testing::args;
    use super::*;

    #[test]
    fn events_are_filtered_and_marks_are_kept() {
        let events = |pod: Option<&str>, kind: &[&str]| EventsArgs {
            server: args(Some("a")),
            follow: false,
            tail: 0,
            pod: pod.map(str::to_owned),
            gang: None,
            node: None,
            kind: kind.iter().map(|kind| (*kind).to_owned()).collect(),
        };
        let refused = r#"{"id": 7, "at": "2026-01-02T03:04:05Z", "kind": "Refused", "pod": "a/web-0", "count": 3,
            "message": "no\u001bnode"}"#;
        let mut cursor = 0;
        let mut line = |args: EventsArgs, text: &str| args.line(text, &mut cursor).unwrap();
        let expected = "2026-01-02T03:04:05Z  Refused      a/web-0  (3 times)  no node";
        assert_eq!(line(events(Some("web-"), &["Refused"]), refused).unwrap(), expected);
        assert_eq!(line(events(None, &["Placed"]), refused), None);
        assert_eq!(line(events(Some("db-"), &[]), refused), None);
        assert_eq!(line(events(None, &[]), &refused.replace("a/web", "b/web")), None);
        let gap = line(events(None, &["Placed"]), r#"{"kind": "Gap", "from": 2, "to": 5}"#);
        assert_eq!(gap.unwrap(), "-  Gap          -  entries 2 to 5 are lost");
        assert_eq!(cursor, 7);
    }
}
