//! Explains preemption from both sides: which pods a pod evicted, and which pod evicted it.

use std::sync::Arc;

use pellucid_api::rest::preemption::{
    AsVictim, CandidateBody, GangPartBody, GangPreemptionBody, PreemptionExplanation, RejectedNodes,
    SearchBody,
};
use pellucid_cluster::preemptions::{Candidate, Plan, Preemption, Preemptions};
use pellucid_cycle::Snapshot;
use pellucid_framework::bodies;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::{Now, PodKey};
use pellucid_recording::{Outcome, rfc3339};

use crate::meta::{of_snapshot, of_verdict};

/// Explains a pod's part in preemptions. Fails when neither the pod nor a preemption that concerns it is known.
pub(crate) fn pod(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<PreemptionExplanation, ReadError> {
    let found = snapshot.find_pod(key);
    let book = snapshot.cluster.preemptions();
    let as_victim = counting(book, key).and_then(|p| as_victim(p, key, now));
    let ended: Vec<_> = book.ended().filter(|p| p.preemptor == *key).collect();
    if found.is_none() && as_victim.is_none() && ended.is_empty() {
        let message = format!("pod {key} is not known, and no preemption that is remembered concerns it");
        return Err(ReadError::NotFound { code: "PodNotFound", message });
    }
    let mut body = PreemptionExplanation {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        as_victim,
        ended: ended.into_iter().map(|p| bodies::preemption(p, now)).collect(),
        ..PreemptionExplanation::default()
    };
    if let Some((id, record)) = found {
        if let Some(verdict) = &snapshot.verdict(id) {
            body.meta = of_verdict(snapshot, verdict, now);
            body.search = verdict.plan.as_ref().map(|plan| search(plan));
            body.message = match &verdict.outcome {
                Outcome::Refused(refusal) => refusal.post_filter.as_ref().map(ToString::to_string),
                _ => None,
            };
        }
        body.nomination = snapshot.cluster.nominator().of(id).map(|n| bodies::nomination(record, n, now));
        body.preemption = book.of(id).map(|p| bodies::preemption(p, now));
        body.gang_preemption = book.of(id).and_then(|p| gang_preemption(book, p));
    }
    body.summary = summary(&body);
    Ok(body)
}

/// Merges the parts of a gang's preemption.
fn gang_preemption(book: &Preemptions, of_member: &Preemption) -> Option<GangPreemptionBody> {
    let part = of_member.gang.as_ref()?;
    let all = book.of_gang(part.group.first()?);
    let of_one = |p: &Preemption| GangPartBody {
        pod: p.preemptor.to_string(),
        node: p.node.to_string(),
        victims: p.victims.iter().map(|v| v.key.to_string()).collect(),
    };
    let mut parts: Vec<GangPartBody> = all.iter().map(|(_, p)| of_one(p)).collect();
    parts.sort_by(|a, b| a.pod.cmp(&b.pod));
    Some(GangPreemptionBody {
        gangs: bodies::gangs(part),
        parts,
        victims: all.iter().map(|(_, p)| p.victims.len()).sum(),
        waiting_for: all.iter().map(|(_, p)| p.waiting_for()).sum(),
    })
}

/// Returns the preemption of which the pod is a victim. Prefers one in progress over one that has ended, and then one
/// that evicted the pod over one that only waits for it.
fn counting<'a>(book: &'a Preemptions, key: &PodKey) -> Option<&'a Arc<Preemption>> {
    let counts = |p: &Arc<Preemption>| p.victims.iter().any(|v| v.key == *key && v.is_counted);
    let has = |p: &&Arc<Preemption>| p.victims.iter().any(|v| v.key == *key);
    let all = book.open().map(|(_, p)| p).chain(book.ended());
    all.filter(has).min_by_key(|p| (p.end.is_some(), !counts(p)))
}

fn as_victim(preemption: &Preemption, key: &PodKey, now: Now) -> Option<AsVictim> {
    let victim = preemption.victims.iter().find(|v| v.key == *key)?;
    let (theirs, its) = (preemption.priority, victim.priority);
    let of_gang = preemption.gang.as_ref().map_or_else(String::new, |part| {
        format!(", and with it its gang {} of {}", bodies::gangs(part).join(", "), part.members)
    });
    Some(AsVictim {
        rule: format!(
            "{} has priority {theirs}, above this pod's {its}, and did not fit on {} beside it{of_gang}",
            preemption.preemptor, preemption.node
        ),
        victim: bodies::victim(victim, now),
        preemption: bodies::preemption(preemption, now),
    })
}

fn search(plan: &Plan) -> SearchBody {
    let rejected = plan.rejected.iter().map(|r| RejectedNodes {
        count: r.count,
        reasons: r.cause.reasons.iter().map(bodies::reason).collect(),
        example_nodes: r.examples.iter().map(ToString::to_string).collect(),
    });
    SearchBody {
        total_nodes: plan.total_nodes,
        potential_nodes: plan.potential,
        tried_nodes: plan.tried,
        candidates_found: plan.found,
        candidates: plan.candidates.iter().enumerate().map(|(i, c)| candidate(i + 1, c)).collect(),
        decided_by: plan.decided_by.map(Into::into),
        rejected: rejected.collect(),
    }
}

fn candidate(rank: usize, candidate: &Candidate) -> CandidateBody {
    let start = |seconds: i64| rfc3339(std::time::Duration::from_secs(seconds.max(0) as u64));
    CandidateBody {
        rank,
        node: candidate.name.to_string(),
        victims: candidate.victims.iter().map(|v| v.key.to_string()).collect(),
        budget_violations: candidate.cost.budget_violations,
        highest_priority: candidate.cost.highest_priority,
        priority_sum: candidate.cost.priority_sum,
        victim_count: candidate.cost.victims,
        broken_gangs: candidate.cost.broken_gangs,
        earliest_start: candidate.cost.earliest_start.map(start),
    }
}

/// Returns a sentence on the pod's part in preemptions.
fn summary(body: &PreemptionExplanation) -> String {
    if let (Some(gang), Some(own)) = (&body.gang_preemption, &body.preemption) {
        let (members, names) = (gang.parts.len(), gang.gangs.join(", "));
        let rest = match gang.waiting_for {
            0 => format!("all {} victims are out of the way.", gang.victims),
            left => format!("it waits for {left} of {} victims to be gone.", gang.victims),
        };
        let (node, own) = (&own.node, own.victims.len());
        return format!(
            "Nominated to {node}, where {own} pods go for it, as one of {members} members of gang {names} that \
             preempt as one; {rest}"
        );
    }
    if let Some(preemption) = &body.preemption {
        let (node, victims, left) = (&preemption.node, preemption.victims.len(), preemption.waiting_for);
        return match left {
            0 => format!("Nominated to {node}; its {victims} victims are out of the way."),
            _ => format!("Nominated to {node}; waits for {left} of {victims} victims to be gone."),
        };
    }
    if let Some(victim) = &body.as_victim {
        let (by, node) = (&victim.preemption, &victim.preemption.node);
        return format!(
            "Victim ({}) of {}/{} on {node}: {}.",
            victim.victim.state, by.namespace, by.name, victim.rule
        );
    }
    if let Some(nomination) = &body.nomination {
        return format!("Nominated to {} by {}; nobody was evicted for it.", nomination.node, nomination.by);
    }
    if let Some(message) = &body.message {
        return format!("Nothing was evicted for it: {message}");
    }
    match body.ended.first() {
        Some(ended) => {
            format!("Its last preemption, on {}, ended: {}.", ended.node, ended.end.as_deref().unwrap_or("?"))
        }
        None => "Preemption has nothing to do with it.".into(),
    }
}
