//! Explains why a pod is where it is, or why it is pending.

use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::explain::{NodeGroup, PlacementBody, PodExplanation, ReasonBody, Shortfall};
use pellucid_cluster::PodRecord;
use pellucid_cluster::input::Quarantined;
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::{Cause, Code, Reason, bodies};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Now, PodId, PodKey};
use pellucid_recording::{Group, GroupMeasure, Outcome, Placement, Refusal, Verdict, rfc3339};

use crate::gangs::gang_state::HeldBack;
use crate::meta::{next_retry, of_snapshot, of_verdict, unit_of, wakes_on};
use crate::not_pending;
use crate::remedies::reason_body;
use crate::requirements::nearest::NearestNodes;
use crate::verdict::{self, PodVerdict, sentence};

/// Tie-break rule of node selection, as shown to users.
pub(crate) const TIE_RULE: &str = "greatest total; equal totals by hash(seed, node name), the greater first";

/// Explains one pod. With `refresh`, a pending pod is evaluated against the current snapshot instead of showing the
/// recorded verdict; `versus` names a node to compare the pod's node with. Fails when the pod is unknown, or cannot be
/// compared.
pub(super) fn pod(
    snapshot: &Snapshot,
    key: &PodKey,
    refresh: bool,
    versus: Option<&str>,
    now: Now,
) -> Result<PodExplanation, ReadError> {
    if let Some(object) = snapshot.find_quarantined(key) {
        return Ok(of_quarantined(snapshot, object, now));
    }
    let Some((id, record)) = snapshot.find_pod(key) else {
        return not_pending::explanation(snapshot, key, now);
    };
    let mut body = recorded(snapshot, id, record, now);
    if refresh {
        crate::what_if::refresh::refresh(&mut body, snapshot, (id, record), now);
    }
    if versus.is_some() {
        body.versus = Some(crate::what_if::compare_nodes::compare_nodes(snapshot, key, versus, now)?);
    }
    if body.verdict == "refused" && !body.pod_reasons.is_empty() {
        body.requirements = crate::requirements::terms::of_whole(snapshot, id);
    }
    if body.verdict == "refused" {
        body.notes = crate::advice::notes(snapshot, record, now);
    }
    body.owner = crate::owner::owner(&snapshot.cluster, &record.pod);
    body.gang = crate::gangs::of_pod(snapshot, record, now);
    crate::gangs::temper(&mut body, snapshot, (id, record), now);
    body.warnings = crate::gangs::warnings_of_pod(snapshot, record);
    Ok(body)
}

/// Explains a pod by the recorded verdict.
fn recorded(snapshot: &Snapshot, id: PodId, record: &PodRecord, now: Now) -> PodExplanation {
    let mut body = PodExplanation {
        meta: of_snapshot(snapshot, now),
        namespace: record.pod.key.namespace.to_string(),
        name: record.pod.key.name.to_string(),
        uid: record.pod.uid.to_string(),
        profile: record.pod.scheduler_name.to_string(),
        total_nodes: snapshot.cluster.present().len(),
        ..PodExplanation::default()
    };
    if let Some(unit) = unit_of(snapshot, id) {
        body.attempts = unit.attempts;
        body.queue_stage = Some(unit.stage.as_str().into());
        body.wakes_on = wakes_on(snapshot, unit);
        body.next_retry = next_retry(unit).map(|at| rfc3339(now.wall_at(at)));
    }
    let verdict = snapshot.verdict(id);
    if let Some(verdict) = &verdict {
        body.meta = of_verdict(snapshot, id, verdict, now);
        body.attempts = verdict.attempts;
    }
    match verdict.as_ref().map(|v| &v.outcome) {
        Some(Outcome::Refused(refusal)) if record.node.is_none() => {
            add_refusal(&mut body, refusal, verdict::of_pod(snapshot, id, now).as_ref(), "refused");
        }
        Some(Outcome::Gated(refusal)) if record.node.is_none() => {
            let current = HeldBack::new(snapshot).now(record, refusal);
            let refusal = current.as_ref().unwrap_or(refusal);
            body.meta.refreshed = current.is_some();
            add_refusal(&mut body, refusal, verdict::of_pod(snapshot, id, now).as_ref(), "gated");
            // No node is asked about a gated pod.
            body.total_nodes = snapshot.cluster.present().len();
            body.not_evaluated = body.total_nodes;
        }
        _ => add_place(&mut body, snapshot, record, verdict.as_ref()),
    }
    body
}

fn of_quarantined(snapshot: &Snapshot, object: &Quarantined, now: Now) -> PodExplanation {
    let key = PodKey { namespace: object.namespace.clone(), name: (&*object.name).into() };
    let message = pellucid_cycle::quarantine_message(object);
    let reason = Reason::about(
        ReasonCode::Unreadable,
        &*format!("{}: {} ({})", object.field, object.problem, object.value),
    );
    PodExplanation {
        meta: of_snapshot(snapshot, now),
        namespace: object.namespace.to_string(),
        name: object.name.to_string(),
        uid: object.uid.to_string(),
        profile: object.scheduler_name.as_ref().map(ToString::to_string).unwrap_or_default(),
        verdict: "quarantined".into(),
        summary: not_pending::unreadable(object),
        not_pending: not_pending::of(snapshot, &key),
        message,
        total_nodes: snapshot.cluster.present().len(),
        not_evaluated: snapshot.cluster.present().len(),
        pod_reasons: vec![bodies::reason(&reason)],
        ..PodExplanation::default()
    }
}

pub(super) fn add_refusal(
    body: &mut PodExplanation,
    refusal: &Refusal,
    verdict: Option<&PodVerdict>,
    word: &str,
) {
    body.verdict = word.into();
    body.message = refusal.message().to_string();
    body.total_nodes = refusal.total_nodes;
    body.not_evaluated = refusal.not_evaluated;
    let is_never = verdict.is_some_and(PodVerdict::is_never);
    let of_pod = refusal.pod_cause.iter().flat_map(|cause| &cause.reasons);
    body.pod_reasons = of_pod.map(|reason| reason_body(reason, is_never)).collect();
    body.node_groups = refusal.groups.iter().map(|group| group_body_as(group, is_never)).collect();
    let Some(verdict) = verdict else { return };
    body.nearest = verdict.nearest.as_ref().map(|nearest| nearest_body(nearest, is_never));
    body.summary = sentence(refusal, verdict);
    body.outlook.clone_from(&verdict.outlook);
    body.key_reason = Some(verdict.key_body());
    body.remedy = verdict.remedy();
    body.resolver = verdict.resolver.as_str().into();
    let told = verdict.nearest.as_ref().map(|nearest| &nearest.requirements);
    body.requirements = told.cloned().unwrap_or_default();
    body.meta.truncated |= verdict.nearest.as_ref().is_some_and(|nearest| nearest.is_cut);
}

/// Returns the nearest nodes as a body. Each remedy is one that holds for these nodes.
fn nearest_body(nearest: &NearestNodes, is_never: bool) -> NodeGroup {
    let reasons = nearest.group.cause.reasons.iter().zip(&nearest.is_fixed);
    NodeGroup {
        reasons: reasons.map(|(reason, is_fixed)| reason_body(reason, is_never || *is_fixed)).collect(),
        details: nearest.details.clone(),
        ..group_body(&nearest.group)
    }
}

/// Returns a sentence on why a pending pod has no place, and what would help.
pub fn summary(snapshot: &Snapshot, id: PodId, now: Now) -> Option<String> {
    Some(sentence(snapshot.refusal(id)?, &verdict::of_pod(snapshot, id, now)?))
}

/// Appends the subject to a message that does not mention it.
pub(super) fn with_subject(message: String, subject: Option<&str>) -> String {
    match subject {
        Some(subject) if !message.contains(subject) => format!("{message} ({subject})"),
        _ => message,
    }
}

fn add_place(body: &mut PodExplanation, snapshot: &Snapshot, record: &PodRecord, verdict: Option<&Verdict>) {
    let Some(idx) = record.node else {
        body.verdict = "waiting".into();
        body.summary = "Not tried yet; it is in the queue.".into();
        body.not_evaluated = body.total_nodes;
        return;
    };
    let node = snapshot.cluster.node_name(idx).to_string();
    let stage = record.stage.as_str().to_string();
    let ours = verdict.and_then(Verdict::placement).filter(|placement| placement.node == idx);
    let said = not_pending::of(snapshot, &record.pod.key).unwrap_or_default();
    body.summary = said.message.clone();
    let Some(placement) = ours else {
        let is_ours = said.code == "PodPlaced";
        body.not_pending = Some(said);
        body.verdict = if is_ours { "placed" } else { "foreign" }.into();
        body.meta.truncated = is_ours;
        body.not_evaluated = body.total_nodes;
        body.placement = Some(PlacementBody { node, stage, tie_rule: TIE_RULE.into(), ..Default::default() });
        return;
    };
    body.not_pending = Some(said);
    body.verdict = "placed".into();
    add_placement(body, node, stage, &placement);
}

/// Returns a sentence on what a placed pod waits for at Permit and until when; empty when it does not.
pub(super) fn at_permit(snapshot: &Snapshot, id: PodId, now: Now) -> String {
    let Some(wait) = snapshot.permit_waits.get(&id) else { return String::new() };
    // A plugin may wait for longer than a time can say.
    let left = wait.deadline.saturating_sub(now.monotonic);
    let until = match left < Duration::from_secs(100 * 365 * 86_400) {
        true => format!("until {}", rfc3339(now.wall_at(wait.deadline))),
        false => "without end".to_owned(),
    };
    format!(" It holds the place and waits at Permit for {}, {until}.", wait.plugin)
}

/// Returns why a node was chosen, or `None` when no other node was feasible.
pub(super) fn why_there(placement: &Placement) -> Option<String> {
    let score = placement.score?;
    Some(format!("total score {score}, the greatest of {} feasible nodes", placement.feasible))
}

pub(super) fn add_placement(body: &mut PodExplanation, node: String, stage: String, placement: &Placement) {
    body.total_nodes = placement.total as usize;
    body.not_evaluated = (placement.total - placement.evaluated) as usize;
    body.placement = Some(PlacementBody {
        node,
        stage,
        score: placement.score,
        feasible_nodes: placement.feasible as usize,
        tie_rule: TIE_RULE.into(),
    });
}

pub(super) fn reasons_of(cause: Option<&Cause>) -> Vec<ReasonBody> {
    cause.into_iter().flat_map(|cause| &cause.reasons).map(bodies::reason).collect()
}

pub(super) fn group_bodies(refusal: &Refusal) -> Vec<NodeGroup> {
    refusal.groups.iter().map(|group| group_body(group)).collect()
}

pub(super) fn group_body(group: &Group) -> NodeGroup {
    group_body_as(group, false)
}

/// Returns a node group as a body. Where no pod's end would help, the remedies do not say so.
pub(super) fn group_body_as(group: &Group, is_never: bool) -> NodeGroup {
    let is_never = is_never || group.cause.code == Code::UnschedulableAndUnresolvable;
    NodeGroup {
        plugin: group.cause.plugin.into(),
        code: group.cause.code.as_str().into(),
        count: group.count,
        reasons: group.cause.reasons.iter().map(|reason| reason_body(reason, is_never)).collect(),
        shortfalls: group.measures.iter().map(shortfall).collect(),
        example_nodes: group.examples.iter().map(ToString::to_string).collect(),
        details: Vec::new(),
    }
}

pub(super) fn shortfall(of: &GroupMeasure) -> Shortfall {
    Shortfall {
        resource: of.resource.to_string(),
        requested: of.requested,
        available: of.available,
        shortfall: of.requested.saturating_sub(of.available),
        best_node: of.best_node.to_string(),
        text: shortfall_text(of),
    }
}

pub(crate) fn shortfall_text(of: &GroupMeasure) -> String {
    let GroupMeasure { resource, requested, available, best_node: node } = of;
    // A phrase that ends so names something of which there is too little, in the unit of its last word.
    if let Some(phrase) = resource.strip_suffix(" free") {
        let unit = phrase.rsplit(' ').next().unwrap_or(phrase);
        let amount = |v: i64| format_amount(unit, v);
        return format!("requested {}, at most {} free (on {node})", amount(*requested), amount(*available));
    }
    // No resource name contains a space: any other phrase names something that exceeds its limit.
    if let Some((subject, what)) = resource.split_once(' ') {
        // What is used of a resource is in the resource's unit, ages are in seconds; other subjects are plain numbers.
        let amount = |v: i64| match what {
            "usage" => format_amount(subject, v),
            "age" => format!("{v} s"),
            _ => v.to_string(),
        };
        return format!("found {}, at most {} allowed (on {node})", amount(*requested), amount(*available));
    }
    let amount = |v: i64| format_amount(resource, v);
    format!("requested {}, at most {} free (on {node})", amount(*requested), amount(*available))
}
