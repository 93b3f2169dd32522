//! Pending pods as text: a row for each controller and shape, or for each pod.

use pellucid_api::rest::explain::{PendingPod, PendingPods};
use pellucid_api::rest::pending::{PendingRow, PendingSummary};

use super::age::age;
use super::filters::left_out;
use super::out::{Paint, Style};
use super::table::Table;
use super::text::{cell, clean, count, next, one};

/// What keeps each group of pods pending: a row for each controller and shape.
pub(crate) fn groups(body: &PendingSummary, paint: Paint) -> String {
    let Some(first) = body.rows.first() else { return nothing() };
    let header = ["PODS", "OWNER", "OLDEST", "PRIORITY", "REQUESTS", "REASON", "OUTLOOK", "EXAMPLE"];
    let mut table = Table::new(&header, [0]).elided([0, 1, 2, 3, 5, 6, 7]).sparing([4, 3, 7]);
    for row in &body.rows {
        table.add_row([
            one(row.pods),
            one(owner(row)),
            one(age(&row.oldest, &body.meta.generated_at)),
            one(priorities(row)),
            cell(requests(row)),
            one(&row.key_reason),
            one(if row.outlook.is_empty() { "-" } else { &row.outlook }),
            one(&row.example),
        ]);
    }
    let many = format!("{} pending in {}.", count(body.total_pending, "pod"), count(body.count, "group"));
    let more = left_out(body.rows.len(), body.count, "group");
    let next = next(&format!("explain pod {}", first.example));
    format!("{}\n\n{} Each pod: --all\n{more}{next}", table.text(), paint.apply(Style::Bold, &many))
}

/// Each pending pod with its reason.
pub(crate) fn pods(body: &PendingPods, paint: Paint) -> String {
    let Some(first) = body.pods.first() else { return nothing() };
    let header = ["POD", "AGE", "PRIORITY", "STAGE", "REASON", "OUTLOOK", "WHY"];
    let mut table = Table::new(&header, [2]).elided(0..6).sparing([3, 2, 1]);
    for pod in &body.pods {
        table.add_row([
            one(format!("{}/{}", pod.namespace, pod.name)),
            one(age(&pod.created_at, &body.meta.generated_at)),
            one(pod.priority),
            one(if pod.stage.is_empty() { "-" } else { &pod.stage }),
            one(reason(pod)),
            one(if pod.outlook.is_empty() { "-" } else { &pod.outlook }),
            one(if pod.summary.is_empty() { &pod.message } else { &pod.summary }),
        ]);
    }
    let many = paint.apply(Style::Bold, &format!("{} pending.", count(body.count, "pod")));
    let more = left_out(body.pods.len(), body.count, "pod");
    let next = next(&format!("explain pod {}/{}", first.namespace, first.name));
    format!("{}\n\n{many}\n{more}{next}", table.text())
}

fn nothing() -> String {
    "No pod is pending.".to_owned()
}

fn reason(pod: &PendingPod) -> &str {
    let first = || pod.reasons.first().map(String::as_str);
    Some(pod.key_reason.as_str()).filter(|code| !code.is_empty()).or_else(first).unwrap_or(&pod.verdict)
}

/// Returns the controller of a row's pods with its namespace. Pods without one are told by what they request, a single one
/// by its name.
pub(crate) fn owner(row: &PendingRow) -> String {
    let namespace = row.namespace.as_deref().unwrap_or_default();
    let shape = row.shape.as_deref().filter(|shape| !shape.is_empty()).unwrap_or("no requests");
    let name = row.example.rsplit('/').next().unwrap_or_default();
    match row.owner.as_deref().unwrap_or_default() {
        "" if row.pods == 1 => clean(&format!("{namespace}/Pod/{name}")),
        "" => clean(&format!("{namespace}, {shape}")),
        owner => clean(&format!("{namespace}/{owner}")),
    }
}

pub(crate) fn priorities(row: &PendingRow) -> String {
    match row.min_priority == row.max_priority {
        true => row.min_priority.to_string(),
        false => format!("{} to {}", row.min_priority, row.max_priority),
    }
}

fn requests(row: &PendingRow) -> Vec<String> {
    row.requests.iter().flatten().map(|(name, amount)| format!("{name}={amount}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::assert_in_order;
    use super::*;

    #[test]
    fn a_group_has_a_row_and_an_example_leads_on() {
        let row = |owner: &str, pods| PendingRow {
            namespace: Some("shop".into()),
            owner: Some(owner.into()),
            pods,
            oldest: "2026-01-02T03:00:00Z".into(),
            max_priority: 7,
            requests: Some([("cpu".to_owned(), "4".to_owned())].into()),
            example: "shop/web-0".into(),
            key_reason: "InsufficientResource".into(),
            outlook: "NotNow".into(),
            ..PendingRow::default()
        };
        let mut body = PendingSummary {
            count: 3,
            total_pending: 50,
            rows: vec![row("Deployment/web", 40), row("", 5)],
            ..PendingSummary::default()
        };
        body.meta.generated_at = "2026-01-02T03:05:00Z".into();
        let text = groups(&body, Paint::plain());
        let order = ["40", "shop/Deployment/web", "5m", "0 to 7", "cpu=4", "NotNow", "shop, no requests"];
        assert_in_order(&text, &order);
        let end = "\n\n50 pods pending in 3 groups. Each pod: --all\nand 1 more group: --limit 3 shows all\n\
                   pellucid explain pod shop/web-0";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn an_empty_list_is_a_sentence() {
        assert_eq!(pods(&PendingPods::default(), Paint::plain()), "No pod is pending.");
        assert_eq!(groups(&PendingSummary::default(), Paint::plain()), "No pod is pending.");
    }
}
