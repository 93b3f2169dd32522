//! Explains one gang: verdict, counts, root cause, blockers, and when it is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::rest::explain::{NodeGroup, Shortfall};
use pellucid_api::rest::gang_explain::{
    GangAttempt, GangBlocker, GangExplanation, GangNumbers, GangRootCause, GroupGang,
};
use pellucid_cluster::gangs::Gang;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_framework::View;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{GangKey, Now};
use pellucid_recording::{GangOutcome, GangRefusal, GangVerdict, rfc3339};

use super::gang_state::{GangState, partially_bound, planned_state, warnings};
use super::interference::edges_to;
use super::outlook::{self, GangOutlook, Look};
use super::retry::retry;
use super::status::{GangStatus, ready};
use super::summary::{mode_note, release};
use crate::explain::{group_bodies, reasons_of};
use crate::meta::of_snapshot;
use crate::requirements::details::Details;

/// Explains one gang. Fails when the gang is unknown.
pub(crate) fn gang(snapshot: &Snapshot, key: &GangKey, now: Now) -> Result<GangExplanation, ReadError> {
    let status = super::find(snapshot, key)?;
    let look = outlook::of_gang(snapshot, key, now);
    let state = planned_state(snapshot, &status, look.as_ref(), now);
    let (gang, attempt) = (status.gang, snapshot.gang_verdicts.get(key));
    let refusal = look.as_ref().and_then(|look| look.refusal.as_ref());
    let mut body = GangExplanation {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        state: state.name.into(),
        dialect: gang.definition.dialect.as_str().into(),
        mode: gang.definition.mode.as_str().into(),
        mode_note: mode_note(gang.definition.mode).into(),
        counts: numbers(snapshot, &status, look.as_ref()),
        root_cause: refusal.and_then(|refusal| root_cause(snapshot, refusal, now)),
        blocker: blocker(snapshot, gang, &state, now),
        next_retry: retry(snapshot, &status, &state, now),
        attempts: gang.history.attempts,
        timeouts: gang.history.timeouts,
        last_attempt: attempt.map(|a| attempt_body(a)),
        last_release: release(gang),
        partially_bound: partially_bound(snapshot, &status),
        held: status.held(),
        group: group(snapshot, &status, look.as_ref(), now),
        members: status.members.iter().map(|m| m.body(snapshot, now)).collect(),
        warnings: warnings(snapshot, &status),
        verdict: state.verdict,
        outlook: None,
    };
    body.meta.refreshed = look.as_ref().is_some_and(|look| look.slots_now.is_some());
    if let Some(attempt) = attempt {
        body.meta.decided_at = Some(rfc3339(attempt.at.wall));
        body.meta.cycle_id = Some(attempt.cycle);
        body.meta.stale = attempt.changes != snapshot.changes || is_outdated(attempt, gang, look.as_ref());
        let first = attempt.group.first().filter(|first| *first != key);
        body.meta.inherited_from = first.map(ToString::to_string);
    }
    body.outlook = look.map(|look| look.body);
    Ok(body)
}

/// Returns whether a plan made now has other numbers than the last attempt, as when members came or went.
fn is_outdated(attempt: &GangVerdict, gang: &Gang, look: Option<&GangOutlook>) -> bool {
    let Some(said) = refusal_of_group(&attempt.outcome).filter(|_| !gang.is_satisfied()) else {
        return false;
    };
    let share = said.shares.iter().find(|share| share.gang == gang.key);
    share.map(|s| s.wanted.saturating_sub(s.placeable)) != look.and_then(GangOutlook::slots_missing)
}

/// Returns why a group was not placed as a whole, or `None` if it was.
pub(crate) fn refusal_of_group(outcome: &GangOutcome) -> Option<&Arc<GangRefusal>> {
    match outcome {
        GangOutcome::Refused(refusal) | GangOutcome::Waiting { refusal, .. } => Some(refusal),
        GangOutcome::Placed { .. } | GangOutcome::Released { .. } => None,
    }
}

fn numbers(snapshot: &Snapshot, status: &GangStatus<'_>, look: Option<&GangOutlook>) -> GangNumbers {
    let (gang, counts) = (status.gang, status.counts);
    let placeable = look.filter(|look| !look.fits_now()).and_then(|look| look.slots_now);
    GangNumbers {
        min: gang.definition.min,
        created: counts.created,
        missing: missing(snapshot, gang),
        gated: counts.gated,
        pending: counts.pending,
        waiting: counts.waiting,
        permitted: counts.permitted,
        bound: counts.bound,
        finished: counts.finished,
        placeable,
        wanted: placeable.and(look).map(|look| look.wanted),
    }
}

/// Returns how many pods a gang's quorum lacks before it can be planned. A gang that is held back for good has no number.
fn missing(snapshot: &Snapshot, gang: &Gang) -> u32 {
    if gang.definition.undefined.is_some() { 0 } else { gang.missing(ready(snapshot, gang)) }
}

fn root_cause(snapshot: &Snapshot, refusal: &GangRefusal, now: Now) -> Option<GangRootCause> {
    let (pod, why) = refusal.root_cause.as_ref()?;
    let node_groups = detailed(snapshot, refusal, now).unwrap_or_else(|| group_bodies(why));
    let without: u32 = refusal.shares.iter().map(|share| share.wanted.saturating_sub(share.placeable)).sum();
    Some(GangRootCause {
        pod: pod.to_string(),
        others: without.saturating_sub(1),
        message: why.message().to_string(),
        total_nodes: why.total_nodes,
        not_evaluated: why.not_evaluated,
        lacking: lacking(&node_groups),
        node_groups,
        pod_reasons: reasons_of(why.pod_cause.as_ref()),
    })
}

/// Returns the node groups of the root cause with what plugins say of their example nodes, where the members that can be
/// placed have their places. `None` when that state is not known, as of several gangs that are planned together.
fn detailed(snapshot: &Snapshot, refusal: &GangRefusal, now: Now) -> Option<Vec<NodeGroup>> {
    let (pod, why) = refusal.root_cause.as_ref()?;
    let [share] = &refusal.shares[..] else { return None };
    let cut = Edit::SetQuorum { gang: share.gang.clone(), min: share.placeable };
    let edits = if share.placeable > 0 { vec![cut] } else { Vec::new() };
    let simulation = Look::of(snapshot, &share.gang, now).plan_with(&edits)?;
    let cluster = simulation.scheduler().cluster();
    let record = cluster.pod(cluster.find_pod(pod)?).filter(|record| record.node.is_none())?;
    let (_, profile) = snapshot.profile_of(record)?;
    let view = View::new(cluster).for_pod(&record.pod);
    Some(Details { profile, view, spec: &record.pod.spec, now }.group_bodies(why))
}

/// Returns, per resource, the shortfall on the node with the most of it available. Ties go to the largest node group.
fn lacking(groups: &[NodeGroup]) -> Vec<Shortfall> {
    let mut best: BTreeMap<&str, &Shortfall> = BTreeMap::new();
    for shortfall in groups.iter().flat_map(|group| &group.shortfalls) {
        let known = best.entry(&shortfall.resource).or_insert(shortfall);
        if shortfall.available > known.available {
            *known = shortfall;
        }
    }
    best.into_values().cloned().collect()
}

/// Returns what a gang waits for besides nodes: another gang of its group, or gangs that hold what it lacks.
fn blocker(snapshot: &Snapshot, gang: &Gang, state: &GangState, now: Now) -> Option<GangBlocker> {
    let key = &gang.key;
    if let Some(block) = &state.block {
        let missing = snapshot.cluster.gangs().one_sided(key);
        let gangs: Vec<String> = match block.gang == *key {
            true => missing.iter().map(ToString::to_string).collect(),
            false => vec![block.gang.to_string()],
        };
        let is_other = !gangs.is_empty() && gang.definition.undefined.is_none();
        let (kind, message, holders) = ("gang".into(), block.message(), Vec::new());
        return is_other.then_some(GangBlocker { kind, gangs, message, holders });
    }
    let holders = edges_to(snapshot, key, now);
    let gangs: Vec<String> = holders.iter().map(|edge| edge.holder.clone()).collect();
    (!gangs.is_empty()).then(|| GangBlocker {
        kind: "holders".into(),
        message: format!("{} hold what {} lacks", gangs.join(", "), holders[0].waiter_pod),
        gangs,
        holders,
    })
}

fn attempt_body(attempt: &GangVerdict) -> GangAttempt {
    let (outcome, members, orders) = match &attempt.outcome {
        GangOutcome::Placed { members, order } => ("placed", *members, vec![*order]),
        GangOutcome::Waiting { placed, refusal } => ("waiting", *placed, refusal.orders.clone()),
        GangOutcome::Refused(refusal) => ("refused", 0, refusal.orders.clone()),
        GangOutcome::Released { members, .. } => ("released", *members, Vec::new()),
    };
    let refusal = refusal_of_group(&attempt.outcome);
    GangAttempt {
        cycle: attempt.cycle,
        at: rfc3339(attempt.at.wall),
        outcome: outcome.into(),
        members,
        not_evaluated: refusal.map_or(0, |r| r.not_evaluated),
        orders: orders.into_iter().map(Into::into).collect(),
        truncated: refusal.is_some_and(|r| r.is_truncated),
    }
}

fn group(
    snapshot: &Snapshot,
    status: &GangStatus<'_>,
    look: Option<&GangOutlook>,
    now: Now,
) -> Vec<GroupGang> {
    let key = &status.gang.key;
    let others = snapshot.cluster.gangs().group_of(key).into_iter().filter(|k| k != key);
    let body = |status: GangStatus<'_>| {
        let state = planned_state(snapshot, &status, look, now);
        GroupGang {
            gang: status.gang.key.to_string(),
            state: state.name.into(),
            code: state.verdict.code,
            message: state.verdict.message,
            min: status.gang.definition.min,
            have: status.gang.have(ready(snapshot, status.gang)),
        }
    };
    others.filter_map(|k| GangStatus::of(snapshot, &k)).map(body).collect()
}
