//! Explanations of pods as text: the verdict first, then the numbers, then the remedies.

use std::fmt::Write as _;

use pellucid_api::rest::explain::{NodeGroup, Outlook, PodExplanation, ReasonBody, Shortfall};

use super::out::{Paint, Style};
use super::text::{cell, clean, count, next, one, remedy, section, table};

pub(crate) fn pod(body: &PodExplanation, paint: Paint) -> String {
    let mut out = String::new();
    let style = if body.placement.is_some() { Style::Green } else { Style::Yellow };
    let headline = format!("{}/{}: {}", body.namespace, body.name, body.verdict);
    line(&mut out, &paint.apply(style, &clean(&headline)));
    for text in [&body.summary, &body.message] {
        if !text.is_empty() && !out.contains(text.as_str()) {
            line(&mut out, &clean(text));
        }
    }
    never_or_not_now(&mut out, body.outlook.as_ref());
    if let Some(placement) = &body.placement {
        let mut text = format!("on {} ({})", placement.node, placement.stage);
        if let Some(score) = placement.score {
            let _ = write!(text, ", score {score}");
        }
        let _ = write!(text, ", {} could take it", count(placement.feasible_nodes, "node"));
        if placement.score.is_some() {
            let _ = write!(text, "; ties: {}", placement.tie_rule);
        }
        line(&mut out, &clean(&text));
    }
    if !body.node_groups.is_empty() || body.not_evaluated > 0 {
        let _ = write!(out, "\n{}\n", node_groups(&body.node_groups, body.not_evaluated));
        if body.placement.is_none() {
            line(&mut out, &clean(&adding_up(body)));
        }
    }
    for detail in body.nearest.iter().flat_map(|nearest| &nearest.details) {
        line(&mut out, &clean(&format!("{}: {}", detail.node, detail.text)));
    }
    for note in &body.notes {
        if !out.contains(clean(&note.text).as_str()) {
            line(&mut out, &clean(&format!("{}: {}", note.plugin, note.text)));
        }
    }
    section(&mut out, &body.pod_reasons, pod_reasons);
    if let Some(gang) = &body.gang {
        let text = format!("gang {} ({}, {}): {}", gang.gang, gang.state, gang.code, gang.message);
        let next = next(&format!("explain gang {}", gang.gang));
        let _ = write!(out, "\n{}\nfor more: {next}\n", clean(&text));
    }
    for warning in &body.warnings {
        let _ = write!(out, "\n{}\n", paint.apply(Style::Yellow, &clean(&format!("warning: {warning}"))));
    }
    let _ = write!(out, "\n{}", paint.apply(Style::Dim, &clean(&queue(body))));
    out
}

/// Adds whether a pod or gang fits now, later or never, unless the text has it already.
pub(crate) fn never_or_not_now(out: &mut String, outlook: Option<&Outlook>) {
    if let Some(outlook) = outlook {
        let is_said = out.contains(clean(&outlook.message).as_str());
        let message = if is_said { "" } else { &outlook.message };
        line(out, &clean(format!("{}: {message}", outlook.code).trim_end_matches([' ', ':'])));
    }
}

pub(crate) fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// Formats node groups with their reasons and what they lack.
pub(crate) fn node_groups(groups: &[NodeGroup], not_evaluated: usize) -> String {
    let mut table = table(&["NODES", "PLUGIN", "REASON", "LACKING", "REMEDY", "EXAMPLE NODES"], [0]);
    for group in groups {
        table.add_row([
            one(group.count),
            one(&group.plugin),
            cell(group.reasons.iter().map(|reason| &reason.message)),
            cell(lacking(group)),
            cell(remedies(&group.reasons)),
            cell(&group.example_nodes),
        ]);
    }
    if not_evaluated > 0 {
        table.add_row([one(not_evaluated), one("-"), one("not evaluated"), one("-"), one("-"), one("-")]);
    }
    table.text()
}

fn lacking(group: &NodeGroup) -> Vec<String> {
    let one = |s: &Shortfall| match s.best_node.is_empty() || s.text.contains(&s.best_node) {
        true => format!("{}: {}", s.resource, s.text),
        false => format!("{}: {} (best: {})", s.resource, s.text, s.best_node),
    };
    let details = group.details.iter().map(|detail| format!("{}: {}", detail.node, detail.text));
    group.shortfalls.iter().map(one).chain(details).collect()
}

/// Returns each remedy once, with who can apply it.
fn remedies(reasons: &[ReasonBody]) -> Vec<String> {
    let mut remedies: Vec<String> = Vec::new();
    for reason in reasons.iter().filter(|reason| !reason.remedy.is_empty()) {
        let remedy = remedy(&reason.remedy, &reason.resolver);
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    remedies
}

fn adding_up(body: &PodExplanation) -> String {
    let refused: usize = body.node_groups.iter().map(|group| group.count).sum();
    let mut text = format!("{refused} of {} refused", count(body.total_nodes, "node"));
    if body.not_evaluated > 0 {
        let _ = write!(text, ", {} not evaluated", body.not_evaluated);
    }
    text
}

/// Formats reasons that concern a pod as a whole.
pub(crate) fn pod_reasons(reasons: &[ReasonBody]) -> String {
    let mut table = table(&["REASON", "MESSAGE", "REMEDY"], []);
    for reason in reasons {
        let remedy = remedies(std::slice::from_ref(reason));
        table.add_row([one(&reason.code), one(&reason.message), cell(remedy)]);
    }
    table.text()
}

fn queue(body: &PodExplanation) -> String {
    let mut facts = Vec::new();
    if let Some(stage) = &body.queue_stage {
        facts.push(format!("queue stage {stage}"));
    }
    facts.push(count(body.attempts as usize, "attempt"));
    if let Some(at) = &body.next_retry {
        facts.push(format!("next retry {at}"));
    }
    if !body.wakes_on.is_empty() {
        facts.push(format!("wakes on {}", body.wakes_on.join(", ")));
    }
    if let Some(at) = &body.meta.decided_at {
        let stale = if body.meta.stale { ", the cluster has changed since" } else { "" };
        facts.push(format!("decided {at}{stale}"));
    }
    if !body.profile.is_empty() {
        facts.push(format!("profile {}", body.profile));
    }
    facts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::assert_in_order;
    use super::*;

    fn refused() -> PodExplanation {
        let reason = ReasonBody {
            code: "InsufficientResource".into(),
            message: "Insufficient cpu".into(),
            remedy: "Request less or add nodes.".into(),
            resolver: "pod owner".into(),
            ..ReasonBody::default()
        };
        let shortfall = Shortfall {
            resource: "cpu".into(),
            best_node: "n-3".into(),
            text: "requested 4, available 1500m".into(),
            ..Shortfall::default()
        };
        let group = NodeGroup {
            plugin: "NodeResourcesFit".into(),
            count: 4,
            reasons: vec![reason],
            shortfalls: vec![shortfall],
            example_nodes: vec!["n-1".into(), "n-2".into()],
            ..NodeGroup::default()
        };
        PodExplanation {
            namespace: "default".into(),
            name: "big".into(),
            verdict: "refused".into(),
            summary: "No node has 4 CPUs left.".into(),
            message: "0/5 nodes are available: 4 Insufficient cpu.".into(),
            queue_stage: Some("unschedulable".into()),
            attempts: 2,
            total_nodes: 5,
            not_evaluated: 1,
            wakes_on: vec!["Node/Add".into()],
            node_groups: vec![group],
            ..PodExplanation::default()
        }
    }

    #[test]
    fn what_a_pod_declares_in_vain_is_said() {
        let body = PodExplanation { warnings: vec!["gang ns/g is not heeded".into()], ..refused() };
        assert!(pod(&body, Paint::plain()).contains("\nwarning: gang ns/g is not heeded\n"));
    }

    #[test]
    fn a_refused_pod_reads_from_verdict_to_remedy() {
        let text = pod(&refused(), Paint::plain());
        let order = [
            "default/big: refused\n",
            "No node has 4 CPUs left.\n",
            "0/5 nodes are available: 4 Insufficient cpu.\n",
            "NODES",
            "NodeResourcesFit",
            "not evaluated",
            "4 of 5 nodes refused, 1 not evaluated\n",
            "queue stage unschedulable; 2 attempts; wakes on Node/Add",
        ];
        assert_in_order(&text, &order);
        assert!(text.contains("n-1") && text.contains("(pod owner)"), "{text}");
    }

    #[test]
    fn text_from_the_wire_cannot_move_the_cursor() {
        let mut body = refused();
        body.message = "0/5 nodes\u{1b}[2J".into();
        body.node_groups[0].example_nodes = vec!["n\u{7}\n1".into()];
        assert!(!pod(&body, Paint::plain()).contains(['\u{1b}', '\u{7}']));
    }
}
