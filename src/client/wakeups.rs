//! `pellucid wakeups`: what a pod waits for, and which events its plugins were asked about.

use clap::Args;
use pellucid_api::rest::wakeups::{PodWakeups, WaitsFor, WakeEvent};

use super::explain_text::line;
use super::out::{Paint, Style};
use super::server::{ObjectName, ServerArgs};
use super::text::{cell, clean, next, one, section, table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid wakeups shop/web-0")]
pub struct WakeupsArgs {
    /// The pod: NAMESPACE/NAME, or NAME
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) pod: ObjectName,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &WakeupsArgs) -> anyhow::Result<String> {
    let name = args.server.full(&args.pod)?;
    let path = format!("/apis/v1/explain/pods/{name}/wakeups");
    args.server.show(&path, |body: &PodWakeups| text(&name, body, Paint::for_stdout()))
}

fn text(name: &str, body: &PodWakeups, paint: Paint) -> String {
    let mut out = String::new();
    line(&mut out, &paint.apply(Style::Bold, &clean(&format!("{name}: {}", body.stage))));
    line(&mut out, &clean(&body.summary));
    let times = [("Not tried before", &body.backoff_until), ("Tried at the latest", &body.expires_at)];
    for (what, at) in times {
        if let Some(at) = at {
            line(&mut out, &clean(&format!("{what}: {at}")));
        }
    }
    section(&mut out, &body.waits_for, waits);
    if let Some(event) = &body.woken_by {
        out += &format!("\nWoken by:\n{}\n", events(std::slice::from_ref(event)));
    }
    if !body.events.is_empty() {
        out += &format!("\nAsked about, the newest first:\n{}\n", events(&body.events));
    }
    out += &format!("\n{}", next(&format!("explain pod {name}")));
    out
}

fn waits(waits: &[WaitsFor]) -> String {
    let mut table = table(&["PLUGIN", "WAITS FOR"], []);
    for plugin in waits {
        table.add_row([one(&plugin.plugin), one(plugin.events.join(", "))]);
    }
    table.text()
}

fn events(events: &[WakeEvent]) -> String {
    let mut table = table(&["AT", "EVENT", "OBJECT", "WOKE", "PLUGINS SAID"], []);
    for event in events {
        let said = event.verdicts.iter().map(|said| format!("{}: {}", said.plugin, said.verdict));
        table.add_row([
            one(&event.at),
            one(&event.event),
            one(if event.object.is_empty() { "-" } else { &event.object }),
            one(if event.woke { "yes" } else { "no" }),
            cell(said),
        ]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::wakeups::HintVerdict;

    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn a_pod_says_what_it_waits_for_and_what_did_not_help() {
        let verdict = HintVerdict { plugin: "NodePorts".into(), verdict: "Skip".into() };
        let event = WakeEvent {
            event: "Pod/Delete".into(),
            object: "a/other".into(),
            verdicts: vec![verdict],
            ..WakeEvent::default()
        };
        let body = PodWakeups {
            stage: "unschedulable".into(),
            summary: "It waits.".into(),
            waits_for: vec![WaitsFor { plugin: "NodePorts".into(), events: vec!["Node/Add".into()] }],
            expires_at: Some("2026-01-02T03:04:05Z".into()),
            events: vec![event],
            ..PodWakeups::default()
        };
        let order = [
            "a/p: unschedulable\nIt waits.\nTried at the latest: 2026-01-02T03:04:05Z\n",
            "Node/Add",
            "Pod/Delete",
            "a/other",
            "no",
            "NodePorts: Skip",
            "\n\npellucid explain pod a/p",
        ];
        assert_in_order(&text("a/p", &body, Paint::plain()), &order);
    }
}
