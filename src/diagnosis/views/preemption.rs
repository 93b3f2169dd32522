//! Explains preemption from both sides: which pods a pod evicted, and which pod evicted it.

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::rest::preemption::{
    AsVictim, CandidateBody, GangPartBody, GangPreemptionBody, PreemptionExplanation, RejectedNodes,
    SearchBody, VictimBody,
};
use pellucid_cluster::preemptions::{Candidate, Cost, Plan, Preemption, Preemptions};
use pellucid_cycle::Snapshot;
use pellucid_framework::bodies;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::victim_search;
use pellucid_model::{Now, PodKey};
use pellucid_recording::{Outcome, rfc3339};

use crate::called::called_as;
use crate::meta::{of_snapshot, of_verdict};
use crate::not_pending;
use crate::views::evictions::lacked;
use crate::views::preemption_verdict;

/// Explains a pod's part in preemptions. Fails when neither the pod nor a preemption that concerns it is known.
pub(crate) fn pod(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<PreemptionExplanation, ReadError> {
    let found = snapshot.find_pod(key);
    let book = snapshot.cluster.preemptions();
    let as_victim = counting(book, key).and_then(|p| as_victim(p, key, now));
    let ended: Vec<_> = book.ended().filter(|p| p.preemptor == *key).collect();
    if found.is_none() && as_victim.is_none() && ended.is_empty() {
        return Err(not_pending::error(snapshot, key));
    }
    let mut body = PreemptionExplanation {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        as_victim,
        ended: ended.iter().map(|p| bodies::preemption(p, now)).collect(),
        not_pending: not_pending::of(snapshot, key),
        ..PreemptionExplanation::default()
    };
    let open = found.and_then(|(id, _)| book.of(id));
    let last = open.or(ended.first().copied());
    if let Some(last) = last {
        body.chosen = Some(bodies::preemption(last, now));
        body.lacked = last.plan.lack.as_ref().map(|lack| lacked(lack, &last.node));
        // The search of a member of a gang that needed none is empty.
        body.search =
            (!last.plan.plugin.is_empty()).then(|| search(&last.plan, last.cycle, last.decided.wall));
    }
    if let Some((id, record)) = found {
        if let Some(verdict) = &snapshot.verdict(id) {
            body.meta = of_verdict(snapshot, id, verdict, now);
            if let Some(plan) = &verdict.plan {
                body.search = Some(search(plan, verdict.cycle, Duration::from_nanos(verdict.at)));
            }
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
    body.verdict = preemption_verdict::of(snapshot, found, &body);
    Ok(body)
}

/// Merges the parts of a gang's preemption.
fn gang_preemption(book: &Preemptions, of_member: &Preemption) -> Option<GangPreemptionBody> {
    let part = of_member.gang.as_ref()?;
    let all = book.of_gang(part.group.first()?);
    let of_one = |p: &Preemption| GangPartBody {
        pod: p.preemptor.to_string(),
        node: p.node.to_string(),
        victims: p.victims.iter().map(|v| called_as(&v.key, v.stands_for.as_deref())).collect(),
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

fn search(plan: &Plan, cycle: u64, at: Duration) -> SearchBody {
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
        candidates: plan.candidates.iter().enumerate().map(|(i, c)| candidate(plan, i, c)).collect(),
        decided_by: plan.decided_by.map(Into::into),
        rejected: rejected.collect(),
        cycle: Some(cycle),
        at: Some(rfc3339(at)),
    }
}

fn candidate(plan: &Plan, place: usize, candidate: &Candidate) -> CandidateBody {
    let best = plan.candidates.first().filter(|_| place > 0);
    CandidateBody {
        rank: place + 1,
        node: candidate.name.to_string(),
        victims: candidate.victims.iter().map(|v| called_as(&v.key, v.stands_for.as_deref())).collect(),
        budget_violations: candidate.cost.budget_violations,
        highest_priority: candidate.cost.highest_priority,
        priority_sum: candidate.cost.priority_sum,
        victim_count: candidate.cost.victims,
        broken_gangs: candidate.cost.broken_gangs,
        earliest_start: candidate.cost.earliest_start.map(start),
        passed_over: best.map(|best| passed_over(best, candidate)),
    }
}

fn start(seconds: i64) -> String {
    rfc3339(Duration::from_secs(seconds.max(0) as u64))
}

/// Returns why the best candidate was preferred to another one: the first criterion in which they differ, with both
/// values.
fn passed_over(best: &Candidate, other: &Candidate) -> String {
    let (a, b) = (&best.cost, &other.cost);
    let started = |cost: &Cost| cost.earliest_start.map_or("not started".into(), start);
    let values = [
        (a.budget_violations.to_string(), b.budget_violations.to_string()),
        (a.highest_priority.to_string(), b.highest_priority.to_string()),
        (a.priority_sum.to_string(), b.priority_sum.to_string()),
        (a.victims.to_string(), b.victims.to_string()),
        (a.broken_gangs.to_string(), b.broken_gangs.to_string()),
        (started(a), started(b)),
    ];
    let by = victim_search::decided_by(a, b);
    match values.iter().find(|(best, other)| best != other) {
        Some((chosen, this)) => format!("{by}: {chosen} on {}, {this} here", best.name),
        None => format!("{by}: that is {}", best.name),
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
            let end = ended.end.as_deref().unwrap_or("?");
            let called =
                |v: &VictimBody| v.object.clone().unwrap_or_else(|| format!("{}/{}", v.namespace, v.name));
            let victims = ended.victims.iter().map(|v| format!("{} ({})", called(v), v.state));
            let victims: Vec<String> = victims.collect();
            let whom =
                if victims.is_empty() { String::new() } else { format!(" Victims: {}.", victims.join(", ")) };
            format!("Its last preemption, on {}, ended: {end}.{whom}", ended.node)
        }
        None => "Preemption has nothing to do with it.".into(),
    }
}
