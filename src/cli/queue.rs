//! `pellucid queue`: shows the queue in its order, and which units are ahead of a pod or gang.

use clap::Args;
use pellucid_api::rest::queue::{Queue, QueuedUnit};
use serde::Deserialize;
use serde_json::Value;

use super::out::{Paint, Style};
use super::program;
use super::server::{ObjectName, ServerArgs};
use super::text::{cell, clean, count, one, table};

#[derive(Debug, Args)]
pub(super) struct QueueArgs {
    /// A pod or gang whose place is wanted: NAMESPACE/NAME, or NAME; the whole queue when absent
    #[arg(value_name = "NAMESPACE/NAME")]
    pub unit: Option<ObjectName>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// The position of a unit. Missing fields count as empty, because the scheduler may be of another version.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Place {
    unit: String,
    stage: String,
    position: usize,
    position_meaning: String,
    ahead: Vec<Ahead>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ahead {
    key: String,
    stage: String,
    priority: i64,
    size: Option<usize>,
    attempts: u64,
}

pub(super) fn run(args: &QueueArgs) -> anyhow::Result<()> {
    let paint = Paint::for_stdout();
    let server = &args.server;
    match &args.unit {
        Some(unit) => {
            let name = server.full(unit)?;
            let path = format!("/apis/v1/queue?position={name}");
            server.show(&path, |body: &Place| place(&name, body, paint))
        }
        None => server.show_narrowed(
            "/apis/v1/queue",
            |body| narrow(body, server),
            |body: &Queue| list(body, paint),
        ),
    }
}

/// Removes the units outside the requested namespace. Positions remain those in the whole queue.
fn narrow(body: &mut Value, server: &ServerArgs) {
    if let Some(units) = body.get_mut("units").and_then(Value::as_array_mut) {
        units.retain(|unit| unit.get("key").and_then(Value::as_str).is_some_and(|key| server.wants(key)));
    }
}

fn list(body: &Queue, paint: Paint) -> String {
    if body.units.is_empty() {
        return "Nothing waits.".to_owned();
    }
    let header = ["STAGE", "#", "UNIT", "PODS", "PRIORITY", "ATTEMPTS", "WAITS FOR", "MESSAGE"];
    let mut table = table(&header, [1, 3, 4, 5]);
    for unit in &body.units {
        table.add_row([
            one(&unit.stage),
            one(unit.position),
            one(&unit.key),
            one(unit.pods.len()),
            one(unit.priority),
            one(unit.attempts),
            cell(waits_for(unit)),
            one(&unit.message),
        ]);
    }
    let counts = &body.counts;
    let text = format!(
        "{} active, {} in backoff, {} unschedulable, {} gated.",
        counts.active, counts.backoff, counts.unschedulable, counts.gated
    );
    let text = paint.apply(Style::Bold, &text);
    format!("{}\n\n{text} Who is ahead: {} queue NAMESPACE/NAME", table.trim_fmt(), program())
}

fn waits_for(unit: &QueuedUnit) -> Vec<String> {
    match &unit.backoff_until {
        Some(at) => vec![at.to_string()],
        None => unit.wakes_on.clone(),
    }
}

fn place(asked: &str, body: &Place, paint: Paint) -> String {
    let ahead = count(body.ahead.len(), "unit");
    let stage = if body.stage.is_empty() { String::new() } else { format!(" in stage {}", body.stage) };
    let unit = if body.unit.is_empty() { asked } else { &body.unit };
    let headline = format!("{unit}: position {}{stage}, {ahead} ahead", body.position);
    let mut text = paint.apply(Style::Bold, &clean(&headline));
    if !body.position_meaning.is_empty() {
        text = format!("{text}\n{}", clean(&body.position_meaning));
    }
    if body.ahead.is_empty() {
        return text;
    }
    let mut table = table(&["#", "UNIT AHEAD", "STAGE", "PODS", "PRIORITY", "ATTEMPTS"], [0, 3, 4, 5]);
    for (at, unit) in body.ahead.iter().enumerate() {
        let size = cell(unit.size.map(|size| size.to_string()));
        table.add_row([
            one(at),
            one(&unit.key),
            one(&unit.stage),
            size,
            one(unit.priority),
            one(unit.attempts),
        ]);
    }
    format!("{text}\n\n{}", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_queue_says_what_each_unit_waits_for() {
        let unit = |key: &str, stage: &str| QueuedUnit {
            key: key.into(),
            stage: stage.into(),
            wakes_on: vec!["Node/Add".into()],
            ..QueuedUnit::default()
        };
        let mut body = Queue::default();
        assert_eq!(list(&body, Paint::plain()), "Nothing waits.");
        body.units = vec![unit("a/one", "backoff"), unit("a/two", "unschedulable")];
        body.units[0].backoff_until = Some("2026-01-02T03:04:09Z".into());
        body.counts.backoff = 1;
        let text = list(&body, Paint::plain());
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(row("a/one").contains("03:04:09Z") && !row("a/one").contains("Node/Add"), "{text}");
        assert!(row("a/two").contains("Node/Add"), "{text}");
        assert!(text.contains("0 active, 1 in backoff, 0 unschedulable, 0 gated."), "{text}");
    }

    #[test]
    fn a_place_says_who_is_ahead() {
        let body = json!({"stage": "active", "position": 2, "positionMeaning": "taken next but two",
            "ahead": [{"key": "a/x", "stage": "active", "priority": 7, "size": 4}, {"key": "a/\u{1b}y"}]});
        let text = place("a/z", &serde_json::from_value(body).unwrap(), Paint::plain());
        assert!(
            text.starts_with("a/z: position 2 in stage active, 2 units ahead\ntaken next but two\n"),
            "{text}"
        );
        assert!(text.contains("a/x") && !text.contains('\u{1b}'), "{text}");
        let first = place("a/z", &Place::default(), Paint::plain());
        assert_eq!(first, "a/z: position 0, 0 units ahead");
    }
}
