//! Explanations of gangs as text: the verdict first, then the numbers, the root cause, and the members.

use std::fmt::Write as _;

use pellucid_api::rest::gang_explain::{GangBlocker, GangExplanation, GangRootCause, GroupGang};
use pellucid_api::rest::gangs::GangMember;

use super::explain_text::{line, never_or_not_now, node_groups, pod_reasons};
use super::out::{Paint, Style};
use super::text::{cell, clean, count, one, remedy, section, table};

/// States without a problem.
const GOOD: [&str; 4] = ["Running", "Placed", "Finished", "Empty"];

/// Returns whether nothing is to be mended.
pub(crate) fn is_good(body: &GangExplanation) -> bool {
    GOOD.contains(&body.state.as_str())
}

pub(crate) fn gang(body: &GangExplanation, paint: Paint) -> String {
    let mut out = String::new();
    let style = if is_good(body) { Style::Green } else { Style::Yellow };
    let headline = format!("{}/{}: {} ({})", body.namespace, body.name, body.state, body.verdict.code);
    line(&mut out, &paint.apply(style, &clean(&headline)));
    line(&mut out, &clean(&body.verdict.message));
    if !body.verdict.remedy.is_empty() {
        line(&mut out, &clean(&remedy(&body.verdict.remedy, &body.verdict.resolver)));
    }
    never_or_not_now(&mut out, body.outlook.as_ref());
    let _ = write!(out, "\n{}\n", numbers(body));
    if let Some(cause) = &body.root_cause {
        let _ = write!(out, "\n{}", root_cause(cause, body.verdict.message.contains(&cause.message)));
    }
    if let Some(blocker) = &body.blocker {
        let _ = write!(out, "\n{}", blocked(blocker));
    }
    section(&mut out, &body.group, group);
    section(&mut out, &body.members, members);
    for warning in &body.warnings {
        let _ = write!(out, "\n{}", clean(&format!("warning: {warning}")));
    }
    let _ = write!(out, "\n{}", paint.apply(Style::Dim, &clean(&facts(body))));
    out
}

fn numbers(body: &GangExplanation) -> String {
    let counts = &body.counts;
    let mut columns = vec![
        ("MIN", counts.min),
        ("CREATED", counts.created),
        ("MISSING", counts.missing),
        ("GATED", counts.gated),
        ("PENDING", counts.pending),
        ("WAITING", counts.waiting),
        ("PERMITTED", counts.permitted),
        ("BOUND", counts.bound),
        ("FINISHED", counts.finished),
    ];
    let of_attempt = [("WANTED", counts.wanted), ("PLACEABLE", counts.placeable)];
    columns.extend(of_attempt.into_iter().filter_map(|(name, n)| Some((name, n?))));
    let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    // Where there is no room for all, stages without members can be spared.
    let spare = (2..columns.len()).filter(|column| columns[*column].1 == 0);
    let mut table = table(&header, 0..header.len()).sparing(spare);
    table.add_row(columns.iter().map(|(_, n)| one(n)));
    table.text()
}

/// Formats the member that represents the failure. Its message is omitted if the verdict contains it.
fn root_cause(cause: &GangRootCause, is_said: bool) -> String {
    let mut out = String::new();
    let headline = match is_said {
        true => format!("{} cannot be placed beside the others:", cause.pod),
        false => format!("{} cannot be placed beside the others: {}", cause.pod, cause.message),
    };
    line(&mut out, &clean(&headline));
    if !cause.node_groups.is_empty() {
        line(&mut out, &node_groups(&cause.node_groups, cause.not_evaluated));
    }
    if !cause.pod_reasons.is_empty() {
        line(&mut out, &pod_reasons(&cause.pod_reasons));
    }
    out
}

fn blocked(blocker: &GangBlocker) -> String {
    let mut out = String::new();
    line(&mut out, &clean(&blocker.message));
    if blocker.holders.is_empty() {
        return out;
    }
    let mut table = table(&["HOLDER", "HOLDS", "PODS", "NODES", "SINCE"], [2]);
    for edge in &blocker.holders {
        let held = edge.held_text.iter().map(|(name, amount)| format!("{name} {amount}"));
        let mut nodes: Vec<String> = edge.nodes.iter().take(3).cloned().collect();
        if edge.node_count > nodes.len() {
            nodes.push(format!("and {} more", edge.node_count - nodes.len()));
        }
        table.add_row([one(&edge.holder), cell(held), one(edge.holder_pods), cell(nodes), cell(&edge.since)]);
    }
    line(&mut out, &table.text());
    out
}

fn group(group: &[GroupGang]) -> String {
    let mut table = table(&["GANG OF THE GROUP", "STATE", "HAVE", "MESSAGE"], []);
    for other in group {
        let have = format!("{}/{}", other.have, other.min);
        table.add_row([one(&other.gang), one(&other.state), one(have), one(&other.message)]);
    }
    table.text()
}

fn members(members: &[GangMember]) -> String {
    let mut table = table(&["POD", "STATE", "NODE", "SINCE", "REASON"], []);
    for member in members {
        let until = member.deadline.as_ref().map(|at| format!("waits until {at}"));
        // The reason of a member that fits repeats the verdict.
        let is_own = !matches!(member.state.as_str(), "Evaluated" | "NotEvaluated");
        let reason = member.reason.as_ref().filter(|_| is_own).or(until.as_ref());
        table.add_row([
            one(&member.pod),
            one(&member.state),
            cell(&member.node),
            cell(&member.since),
            cell(reason),
        ]);
    }
    table.text()
}

fn facts(body: &GangExplanation) -> String {
    let mut facts = vec![format!("{} gang, {}", body.dialect, body.mode)];
    if let Some(retry) = &body.next_retry {
        facts.push(format!("queue stage {}", retry.stage));
        facts.push(format!("next retry {}", retry.text));
        facts.extend(retry.backoff_until.as_ref().map(|at| format!("backoff until {at}")));
        facts.extend(retry.at_the_latest.as_ref().map(|at| format!("at the latest {at}")));
        facts.extend(retry.wait_ends.as_ref().map(|at| format!("wait ends {at}")));
        if !retry.wakes_on.is_empty() {
            facts.push(format!("wakes on {}", retry.wakes_on.join(", ")));
        }
    }
    facts.push(count(body.attempts as usize, "attempt"));
    if body.timeouts > 0 {
        facts.push(count(body.timeouts as usize, "timeout"));
    }
    if let Some(orders) = body.last_attempt.as_ref().map(|a| &a.orders).filter(|o| !o.is_empty()) {
        facts.push(format!("orders tried: {}", orders.join(", ")));
    }
    if body.last_attempt.as_ref().is_some_and(|a| a.truncated) {
        facts.push("the attempt was cut short: it took too much work".into());
    }
    if let Some(at) = &body.meta.decided_at {
        let stale = if body.meta.stale { ", the cluster has changed since" } else { "" };
        facts.push(format!("decided {at}{stale}"));
    }
    facts.join("; ")
}

#[cfg(test)]
mod tests {
    use pellucid_api::rest::explain::{NodeGroup, ReasonBody, Shortfall};
    use pellucid_api::rest::gang_explain::{GangAttempt, GangNumbers, GangRetry, GangVerdict};

    use super::super::text::testing::assert_in_order;
    use super::*;

    fn refused() -> GangExplanation {
        let reason = ReasonBody { message: "Insufficient cpu".into(), ..ReasonBody::default() };
        let shortfall = Shortfall {
            resource: "cpu".into(),
            text: "requested 1, at most 0 free (on n-1)".into(),
            ..Shortfall::default()
        };
        let group = NodeGroup {
            plugin: "NodeResourcesFit".into(),
            count: 3,
            reasons: vec![reason],
            shortfalls: vec![shortfall],
            ..NodeGroup::default()
        };
        let member = |name: &str, state: &str| GangMember {
            pod: format!("ns/{name}"),
            state: state.into(),
            reason: Some("it does not fit".into()),
            ..GangMember::default()
        };
        let (wanted, placeable) = (Some(4), Some(3));
        let counts =
            GangNumbers { min: 4, created: 4, pending: 4, wanted, placeable, ..GangNumbers::default() };
        GangExplanation {
            namespace: "ns".into(),
            name: "g".into(),
            state: "Unschedulable".into(),
            verdict: GangVerdict {
                code: "GangInsufficientCapacity".into(),
                message: "gang ns/g: 3 of 4 members can be placed".into(),
                remedy: "Add nodes.".into(),
                resolver: "time".into(),
            },
            dialect: "koordinator".into(),
            mode: "Strict".into(),
            counts,
            root_cause: Some(GangRootCause {
                pod: "ns/g-3".into(),
                message: "0/3 nodes are available: 3 Insufficient cpu.".into(),
                node_groups: vec![group],
                ..GangRootCause::default()
            }),
            next_retry: Some(GangRetry { stage: "unschedulable".into(), ..GangRetry::default() }),
            last_attempt: Some(GangAttempt { orders: vec!["queue order".into()], ..GangAttempt::default() }),
            attempts: 1,
            members: vec![member("g-0", "Evaluated"), member("g-3", "Failed")],
            ..GangExplanation::default()
        }
    }

    #[test]
    fn a_refused_gang_reads_from_verdict_to_members() {
        let text = gang(&refused(), Paint::plain());
        let order = [
            "ns/g: Unschedulable (GangInsufficientCapacity)\n",
            "gang ns/g: 3 of 4 members can be placed\n",
            "Add nodes (time)\n",
            "MIN",
            "PLACEABLE",
            "ns/g-3 cannot be placed beside the others: 0/3 nodes are available: 3 Insufficient cpu.\n",
            "NodeResourcesFit",
            "ns/g-0",
            "Evaluated",
            "Failed",
            "koordinator gang, Strict; queue stage unschedulable",
            "orders tried: queue order",
        ];
        assert_in_order(&text, &order);
    }

    #[test]
    fn text_from_the_wire_cannot_move_the_cursor() {
        let mut body = refused();
        body.verdict.message = "gang\u{1b}[2J".into();
        body.members[0].reason = Some("n\u{7}\n1".into());
        body.warnings.push("a\u{1b}b".into());
        assert!(!gang(&body, Paint::plain()).contains(['\u{1b}', '\u{7}']));
    }
}
