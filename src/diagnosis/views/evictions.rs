//! Who was evicted for whom, and for what: evictions of preemptions under way and of those that are remembered.

use std::cmp::Reverse;

use pellucid_api::rest::evictions::{Eviction, Evictions, Lacked, PodEvictions};
use pellucid_cluster::preemptions::{End, Lack, Preemption, Victim, VictimState};
use pellucid_cycle::Snapshot;
use pellucid_framework::bodies;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::list::{Attribute, Facts, List};
use pellucid_model::sentence::ended;
use pellucid_model::{Name, Now, PodKey, cancellation};
use pellucid_recording::{GroupMeasure, rfc3339};

use crate::called::called_as;
use crate::explain::{reasons_of, shortfall};
use crate::facts::names_of;
use crate::meta::of_snapshot;
use crate::not_pending;

/// Maximum number of evictions of one pod in an answer.
const MOST: usize = 1_000;

/// What evictions are filtered and sorted by: namespace, name and priority are the victim's, the node is where it was.
pub(crate) const OF_EVICTIONS: &[Attribute] = &[
    Attribute::Namespace,
    Attribute::Name,
    Attribute::Node,
    Attribute::Gang,
    Attribute::Age,
    Attribute::Priority,
];

/// Lists the evictions of all pods, newest first unless the request sorts otherwise.
pub(crate) fn list(snapshot: &Snapshot, list: &List, now: Now) -> Evictions {
    let page = list.page(newest_first(snapshot, |_| true), |(preemption, victim)| Facts {
        namespace: &victim.key.namespace,
        name: &victim.key.name,
        nodes: vec![&preemption.node],
        gangs: preemption.gang.iter().flat_map(|part| &*part.group).map(names_of).collect(),
        created: Some(victim.chosen.wall),
        priority: Some(victim.priority),
        ..Facts::default()
    });
    let evictions = bodies_of(snapshot, &page.items);
    Evictions { meta: page.meta(of_snapshot(snapshot, now)), count: page.total, evictions }
}

/// Lists the evictions of one pod, newest first. Fails when the pod is not known and no eviction of it is remembered.
pub(crate) fn of_pod(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<PodEvictions, ReadError> {
    let all = newest_first(snapshot, |victim| victim.key == *key);
    let not_pending = not_pending::of(snapshot, key);
    if all.is_empty() && not_pending.as_ref().is_some_and(|said| said.code == "PodNotFound") {
        return Err(not_pending::error(snapshot, key));
    }
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = all.len() > MOST;
    let events = bodies_of(snapshot, &all[..all.len().min(MOST)]);
    let summary = match events.first() {
        Some(last) => last.message.clone(),
        None => "No eviction of it for another pod is remembered.".into(),
    };
    let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
    Ok(PodEvictions { meta, namespace, name, summary, events, not_pending })
}

type Evicted<'s> = (&'s Preemption, &'s Victim);

fn newest_first(snapshot: &Snapshot, is_asked: impl Fn(&Victim) -> bool) -> Vec<Evicted<'_>> {
    let book = snapshot.cluster.preemptions();
    let mut all: Vec<Evicted<'_>> = Vec::new();
    for preemption in book.open().map(|(_, preemption)| preemption).chain(book.ended()) {
        cancellation::check();
        let victims = preemption.victims.iter().filter(|victim| is_asked(victim));
        all.extend(victims.map(|victim| (&**preemption, victim)));
    }
    all.sort_by_key(|(preemption, victim)| {
        (Reverse((victim.chosen.monotonic, preemption.cycle)), &preemption.preemptor, &victim.key)
    });
    all
}

fn bodies_of(snapshot: &Snapshot, all: &[Evicted<'_>]) -> Vec<Eviction> {
    all.iter().map(|(preemption, victim)| body(snapshot, preemption, victim)).collect()
}

/// Returns how far an eviction is, and since when if that is known. A preemption that has ended keeps no account of the
/// victims that were still there, so the state says what became of them.
fn state_of(snapshot: &Snapshot, preemption: &Preemption, victim: &Victim) -> (VictimState, Option<String>) {
    let kept = (victim.state.clone(), Some(rfc3339(victim.since.wall)));
    if preemption.end.is_none() || !victim.state.is_awaited() {
        return kept;
    }
    let found = snapshot.find_pod(&victim.key).filter(|(_, record)| record.pod.uid == victim.uid);
    match found {
        None => (VictimState::Gone, None),
        Some((_, record)) if record.pod.deleting && victim.state == VictimState::Ordered => {
            (VictimState::Terminating, None)
        }
        Some(_) => kept,
    }
}

fn body(snapshot: &Snapshot, preemption: &Preemption, victim: &Victim) -> Eviction {
    let (state, state_since) = state_of(snapshot, preemption, victim);
    let lacked = preemption.plan.lack.as_ref().map(|lack| lacked(lack, &preemption.node));
    Eviction {
        at: rfc3339(victim.chosen.wall),
        kind: if preemption.gang.is_some() { "GangPreemption" } else { "Preemption" }.into(),
        victim: called_as(&victim.key, victim.stands_for.as_deref()),
        victim_uid: victim.uid.to_string(),
        victim_priority: victim.priority,
        node: preemption.node.to_string(),
        preemptor: preemption.preemptor.to_string(),
        preemptor_uid: preemption.uid.to_string(),
        preemptor_priority: preemption.priority,
        gangs: preemption.gang.as_ref().map(bodies::gangs).unwrap_or_default(),
        plugin: preemption.plan.plugin.into(),
        cycle: preemption.cycle,
        violates_budget: victim.violates_budget,
        state: state.as_str().into(),
        state_since,
        counted: victim.is_counted,
        end: preemption.end.map(|(end, _)| end.as_str().into()),
        message: message(preemption, (victim, &state), lacked.as_ref()),
        lacked,
    }
}

/// Returns what a node lacked for a pod.
pub(crate) fn lacked(lack: &Lack, node: &Name) -> Lacked {
    let amounts = lack.amounts.iter().map(|amount| {
        shortfall(&GroupMeasure {
            resource: amount.resource.clone(),
            requested: amount.requested,
            available: amount.available,
            best_node: node.clone(),
        })
    });
    let shortfalls: Vec<_> = amounts.collect();
    let mut text = lack.cause.message();
    if !shortfalls.is_empty() {
        let amounts: Vec<String> = shortfalls.iter().map(|s| format!("{}: {}", s.resource, s.text)).collect();
        text.push_str(&format!(" ({})", amounts.join("; ")));
    }
    Lacked { plugin: lack.cause.plugin.into(), reasons: reasons_of(Some(&lack.cause)), shortfalls, text }
}

fn message(
    preemption: &Preemption,
    (victim, state): (&Victim, &VictimState),
    lacked: Option<&Lacked>,
) -> String {
    let Preemption { preemptor, node, priority, .. } = preemption;
    let what = lacked.map(|lacked| format!(", which lacked there: {}", lacked.text)).unwrap_or_default();
    let budget = match victim.violates_budget {
        true => " This went beyond what a PodDisruptionBudget allows.",
        false => "",
    };
    format!(
        "{} (priority {}) had to go from {node} for {preemptor} (priority {priority}){what}.{budget} {} {}",
        called_as(&victim.key, victim.stands_for.as_deref()),
        victim.priority,
        fate(state),
        result(preemption)
    )
}

/// Returns a sentence on how far an eviction is.
fn fate(state: &VictimState) -> String {
    match state {
        VictimState::Ordered => "Its deletion is ordered.".into(),
        VictimState::Terminating => "It is terminating.".into(),
        VictimState::Gone => "It is gone.".into(),
        VictimState::Cancelled => "It was not bound yet, so its placement was taken back.".into(),
        VictimState::Refused(message) => ended(format!("The API server did not delete it: {message}")),
    }
}

/// Returns a sentence on what became of a preemption.
fn result(preemption: &Preemption) -> String {
    let who = &preemption.preemptor;
    let Some((end, _)) = preemption.end else {
        return match preemption.waiting_for() {
            0 => format!("{who} is nominated there, and nobody is in its way any more."),
            _ => format!("{who} is nominated there and waits."),
        };
    };
    match end {
        End::Bound => format!("{who} was bound there: the preemption ended."),
        End::PreemptorGone => {
            format!("The preemption ended without effect: {who} cannot be placed any more.")
        }
        End::PlacedElsewhere => format!("The preemption ended without effect: {who} went to another node."),
        End::NodeGone => "The preemption ended without effect: the node was deleted.".into(),
        End::Overtaken => "The preemption ended: a pod of higher priority took the node.".into(),
        End::NominationChanged => "The preemption ended: somebody else changed the nomination.".into(),
        End::NothingFound => format!("The preemption ended: a later search for {who} found nothing."),
        End::ChosenAgain => format!("The preemption ended: a later search for {who} chose again."),
    }
}
