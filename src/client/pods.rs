//! `pellucid explain pods`: the pending pods by controller and shape, or each with its reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pellucid_api::rest::explain::PendingPods;
use pellucid_api::rest::pending::{PendingRow, PendingSummary};

use super::filters::{ListArgs, walk};
use super::out::Paint;
use super::pending_text;
use super::server::ServerArgs;

pub(crate) fn list(list: &ListArgs, server: &ServerArgs) -> anyhow::Result<String> {
    let paint = Paint::for_stdout();
    if list.wants_items(server) {
        let path = "/apis/v1/explain/pods";
        let body = walk(server, path, &list.query(server, &[]), "pods", list.rows(server))?;
        return server.shown(path, body, |body: &PendingPods| pending_text::pods(body, paint));
    }
    let body = groups(list, server, &[("by", "owner,shape")])?;
    Ok(pending_text::groups(&body, paint))
}

/// Reads the groups of pending pods, those with most pods first, at most as many as are shown; `by` says by what they are
/// grouped. The `count` of the body is that of all groups.
pub(crate) fn groups(
    list: &ListArgs,
    server: &ServerArgs,
    by: &[(&str, &str)],
) -> anyhow::Result<PendingSummary> {
    let path = "/apis/v1/summary/pending";
    let body = walk(server, path, &list.query(server, by), "rows", None)?;
    let mut body: PendingSummary = server.understood(path, body)?;
    body.rows = folded(std::mem::take(&mut body.rows));
    body.count = body.rows.len();
    body.rows.truncate(list.rows(server).unwrap_or(usize::MAX));
    Ok(body)
}

/// Puts pods without a controller that request the same and wait for the same into one row. Their shapes may differ in
/// what tells them apart for nobody who reads a list, such as the gang.
fn folded(rows: Vec<PendingRow>) -> Vec<PendingRow> {
    let mut alike: BTreeMap<_, usize> = BTreeMap::new();
    let mut folded: Vec<PendingRow> = Vec::new();
    for row in rows {
        if row.owner.as_deref().is_some_and(|owner| !owner.is_empty()) {
            folded.push(row);
            continue;
        }
        let what = (row.shape.clone(), row.key_reason.clone(), row.outlook.clone());
        let at = *alike.entry((row.namespace.clone(), row.stage.clone(), what)).or_insert(folded.len());
        match folded.get_mut(at) {
            Some(first) => add(first, row),
            None => folded.push(row),
        }
    }
    folded.sort_by_key(|row| Reverse(row.pods));
    folded
}

/// Adds the numbers of a row to those of another one. The first by name stays the example.
fn add(to: &mut PendingRow, row: PendingRow) {
    to.pods += row.pods;
    to.units += row.units;
    to.min_priority = to.min_priority.min(row.min_priority);
    to.max_priority = to.max_priority.max(row.max_priority);
    if to.oldest.is_empty() || (!row.oldest.is_empty() && row.oldest < to.oldest) {
        to.oldest = row.oldest;
    }
    if row.example < to.example {
        to.example = row.example;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_without_a_controller_that_wait_for_the_same_are_one_row() {
        let row = |owner: &str, reason: &str, example: &str, pods: usize| PendingRow {
            owner: Some(owner.into()),
            key_reason: reason.into(),
            example: example.into(),
            oldest: format!("2026-01-0{pods}T00:00:00Z"),
            max_priority: pods as i32,
            pods,
            ..PendingRow::default()
        };
        let rows = vec![
            row("Job/x", "A", "a/x", 4),
            row("Job/x", "A", "a/y", 3),
            row("", "A", "a/c", 3),
            row("", "B", "a/d", 3),
            row("", "A", "a/b", 2),
        ];
        let all = folded(rows);
        let seen: Vec<_> = all.iter().map(|row| (row.example.as_str(), row.pods)).collect();
        assert_eq!(seen, [("a/b", 5), ("a/x", 4), ("a/y", 3), ("a/d", 3)]);
        assert_eq!((all[0].oldest.as_str(), all[0].max_priority), ("2026-01-02T00:00:00Z", 3));
    }
}
