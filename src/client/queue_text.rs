//! The queue as text: groups of pods by stage, units in their order, and the units ahead of one.

use pellucid_api::rest::pending::PendingSummary;
use pellucid_api::rest::queue::{Queue, QueueCounts, QueuedUnit};
use serde::Deserialize;

use super::age::age;
use super::filters::left_out;
use super::out::{Paint, Style};
use super::pending_text::{owner, priorities};
use super::table::Table;
use super::text::{cell, clean, count, next, one};

/// The position of a unit. Missing fields count as empty, because the scheduler may be of another version.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Place {
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

/// A row for each stage, controller and shape, in the order of the stages. `counts` are those of the whole queue.
pub(crate) fn groups(body: &PendingSummary, counts: &QueueCounts, paint: Paint) -> String {
    let header = ["STAGE", "PODS", "UNITS", "OWNER", "OLDEST", "PRIORITY", "REASON", "EXAMPLE"];
    let mut table = Table::new(&header, [1, 2]).elided(0..8).sparing([2, 5, 7]);
    let mut rows: Vec<_> = body.rows.iter().collect();
    rows.sort_by_key(|row| place_of(row.stage.as_deref()));
    for row in &rows {
        table.add_row([
            cell(&row.stage),
            one(row.pods),
            one(row.units),
            one(owner(row)),
            one(age(&row.oldest, &body.meta.generated_at)),
            one(priorities(row)),
            one(&row.key_reason),
            one(&row.example),
        ]);
    }
    let more = left_out(rows.len(), body.count, "group");
    let next = next(&format!("queue {}", rows.first().map_or("", |row| &row.example)));
    format!(
        "{}\n\n{} Each unit: --all\n{more}{next}",
        table.text(),
        paint.apply(Style::Bold, &numbers(counts))
    )
}

fn place_of(stage: Option<&str>) -> usize {
    let stages = ["active", "backoff", "unschedulable", "gated"];
    stages.iter().position(|known| Some(*known) == stage).unwrap_or(stages.len())
}

fn numbers(counts: &QueueCounts) -> String {
    format!(
        "{} active, {} in backoff, {} unschedulable, {} gated.",
        count(counts.active, "unit"),
        counts.backoff,
        counts.unschedulable,
        counts.gated
    )
}

/// Each unit, in the order of the queue.
pub(crate) fn units(body: &Queue, paint: Paint) -> String {
    let Some(first) = body.units.first() else { return "Nothing waits.".to_owned() };
    let header = ["STAGE", "#", "UNIT", "PODS", "PRIORITY", "ATTEMPTS", "WAITS FOR", "MESSAGE"];
    let mut table = Table::new(&header, [1, 3, 4, 5]).elided(0..6).sparing([6, 5]);
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
    let more = left_out(body.units.len(), body.count, "unit");
    let next = next(&format!("queue {}", first.key));
    format!("{}\n\n{}\n{more}{next}", table.text(), paint.apply(Style::Bold, &numbers(&body.counts)))
}

fn waits_for(unit: &QueuedUnit) -> Vec<String> {
    match &unit.backoff_until {
        Some(at) => vec![at.to_string()],
        None => unit.wakes_on.clone(),
    }
}

/// The place of a unit and at most `rows` of the units ahead of it.
pub(crate) fn place(asked: &str, body: &Place, rows: Option<usize>, paint: Paint) -> String {
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
    let header = ["#", "UNIT AHEAD", "STAGE", "PODS", "PRIORITY", "ATTEMPTS"];
    let mut table = Table::new(&header, [0, 3, 4, 5]).elided(0..6);
    let shown = rows.unwrap_or(usize::MAX).min(body.ahead.len());
    for (at, unit) in body.ahead.iter().take(shown).enumerate() {
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
    let more = left_out(shown, body.ahead.len(), "unit");
    format!("{text}\n\n{}\n{more}", table.text())
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::pending::PendingRow;
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
        assert_eq!(units(&body, Paint::plain()), "Nothing waits.");
        body.units = vec![unit("a/one", "backoff"), unit("a/two", "unschedulable")];
        body.units[0].backoff_until = Some("2026-01-02T03:04:09Z".into());
        body.counts.backoff = 1;
        let text = units(&body, Paint::plain());
        let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
        assert!(row("a/one").contains("03:04:09Z") && !row("a/one").contains("Node/Add"), "{text}");
        assert!(row("a/two").contains("Node/Add"), "{text}");
        assert!(text.contains("0 units active, 1 in backoff, 0 unschedulable, 0 gated."), "{text}");
    }

    #[test]
    fn groups_come_in_the_order_of_the_stages() {
        let row = |stage: &str, example: &str| PendingRow {
            stage: Some(stage.into()),
            example: example.into(),
            ..PendingRow::default()
        };
        let rows = vec![row("unschedulable", "a/late"), row("active", "a/first")];
        let body = PendingSummary { count: 2, rows, ..PendingSummary::default() };
        let text = groups(&body, &QueueCounts::default(), Paint::plain());
        assert!(text.find("a/first") < text.find("a/late"), "{text}");
        assert!(text.ends_with("\npellucid queue a/first"), "{text}");
    }

    #[test]
    fn a_place_says_who_is_ahead() {
        let body = json!({"stage": "active", "position": 2, "positionMeaning": "taken next but two",
            "ahead": [{"key": "a/x", "stage": "active", "priority": 7, "size": 4}, {"key": "a/\u{1b}y"}]});
        let body: Place = serde_json::from_value(body).unwrap();
        let text = place("a/z", &body, None, Paint::plain());
        assert!(
            text.starts_with("a/z: position 2 in stage active, 2 units ahead\ntaken next but two\n"),
            "{text}"
        );
        assert!(text.contains("a/x") && !text.contains('\u{1b}'), "{text}");
        let cut = place("a/z", &body, Some(1), Paint::plain());
        assert!(cut.ends_with("and 1 more unit: --limit 2 shows all\n"), "{cut}");
        let first = place("a/z", &Place::default(), None, Paint::plain());
        assert_eq!(first, "a/z: position 0, 0 units ahead");
    }
}
