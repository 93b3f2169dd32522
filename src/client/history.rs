//! `pellucid history`: what happened to a pod, also after it is gone.

use clap::Args;
use pellucid_api::rest::history::{HistoryEntry, PodHistory};

use super::out::{Paint, Style};
use super::server::{ObjectName, ServerArgs};
use super::text::{cell, clean, next, one, table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid history shop/web-0")]
pub struct HistoryArgs {
    /// The pod: NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) pod: ObjectName,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &HistoryArgs) -> anyhow::Result<String> {
    let (server, name) = (&args.server, args.server.full(&args.pod)?);
    server.show(&path(&name), |body: &PodHistory| {
        let text = entries(body, Paint::for_stdout());
        format!("{text}\n{}", next(&format!("explain pod {name}")))
    })
}

/// Returns where the history of `namespace/name` is.
pub(crate) fn path(name: &str) -> String {
    format!("/apis/v1/history/pods/{name}")
}

/// Formats what is recorded of a pod, the oldest first.
pub(crate) fn entries(body: &PodHistory, paint: Paint) -> String {
    let slash = if body.namespace.is_empty() { "" } else { "/" };
    let headline = clean(&format!("What happened to {}{slash}{}:", body.namespace, body.name));
    let mut out = format!("{}\n", paint.apply(Style::Bold, &headline));
    if body.meta.truncated {
        out += "Its beginning was pushed out of the record.\n";
    }
    if body.entries.is_empty() {
        return out + "Nothing is recorded.\n";
    }
    let mut table = table(&["LAST", "TIMES", "WHAT", "NODE", "IN WORDS"], [1]);
    for entry in &body.entries {
        let words = if entry.message.is_empty() { entry.codes.join(", ") } else { entry.message.clone() };
        table.add_row([
            one(&entry.last),
            one(entry.count),
            one(&entry.kind),
            cell(&entry.node),
            one(caused(entry, words)),
        ]);
    }
    out + &table.text() + "\n"
}

/// Adds who caused an entry, unless its words say so.
fn caused(entry: &HistoryEntry, words: String) -> String {
    match entry.by.as_ref().filter(|by| !words.contains(by.as_str())) {
        Some(by) => format!("{words} (by {by})"),
        None if words.is_empty() => "-".to_owned(),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn a_history_says_what_happened_how_often_and_by_whom() {
        let entry = |kind: &str, message: &str| HistoryEntry {
            kind: kind.into(),
            last: "2026-01-02T03:04:05Z".into(),
            count: 3,
            message: message.into(),
            by: Some("a/high".into()),
            ..HistoryEntry::default()
        };
        let mut body = PodHistory { namespace: "a".into(), name: "p".into(), ..PodHistory::default() };
        let empty = "What happened to a/p:\nNothing is recorded.\n";
        assert_eq!(entries(&body, Paint::plain()), empty);
        body.entries = vec![entry("Refused", "no node\u{1b}"), entry("Evicted", "for a/high")];
        let text = entries(&body, Paint::plain());
        assert_in_order(&text, &["3", "Refused", "no node", "(by a/high)", "Evicted", "for a/high"]);
        assert!(text.matches("by a/high").count() == 1 && !text.contains('\u{1b}'), "{text}");
    }
}
