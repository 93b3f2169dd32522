//! Builds the `meta` part of bodies, and what several bodies say of a unit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::rest::Meta;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::records::last_attempt::LastAttempt;
use pellucid_model::{Now, PodId};
use pellucid_queue::{QueueStage, Unit};
use pellucid_recording::{Outcome, Refusal, Verdict, rfc3339};

use crate::known::known;

/// Returns the meta of a body that is not about a single decision.
pub(super) fn of_snapshot(snapshot: &Snapshot, now: Now) -> Meta {
    Meta {
        generated_at: rfc3339(now.wall),
        snapshot_generation: snapshot.generation,
        leader: snapshot.is_leading,
        ..Meta::default()
    }
}

/// Returns the meta of a body about a decision. The decision is stale if a node, or the pods on one, changed since.
pub(super) fn of_verdict(snapshot: &Snapshot, id: PodId, verdict: &Verdict, now: Now) -> Meta {
    Meta {
        decided_at: Some(rfc3339(Duration::from_nanos(verdict.at))),
        cycle_id: Some(verdict.cycle),
        stale: verdict.changes != snapshot.changes,
        inherited_from: inherited_from(snapshot, id, verdict),
        ..of_snapshot(snapshot, now)
    }
}

/// Returns the pod whose refusal this verdict inherited: that of the first earlier attempt with the very same node
/// groups. Cached results that did not change are shared (`cycle::attempt::node_result_cache`), so pods of one shape tried
/// in a row share a refusal.
fn inherited_from(snapshot: &Snapshot, id: PodId, verdict: &Verdict) -> Option<String> {
    let Outcome::Refused(own) = &verdict.outcome else { return None };
    let shape = snapshot.cluster.pod(id)?.shape;
    let known = known(snapshot);
    let alike = known.population.of_shape(&snapshot.cluster, shape).iter();
    let earlier = alike.filter_map(|id| {
        let LastAttempt::Full(other) = snapshot.last_attempts.get(id.index())? else { return None };
        let Outcome::Refused(refusal) = &other.outcome else { return None };
        (other.cycle < verdict.cycle && is_one(own, refusal)).then_some((other.cycle, *id))
    });
    let (_, first) = earlier.min()?;
    Some(snapshot.cluster.pod(first)?.pod.key.to_string())
}

/// Returns whether two refusals are the same one, apart from what PostFilter added.
fn is_one(a: &Arc<Refusal>, b: &Arc<Refusal>) -> bool {
    Arc::ptr_eq(a, b) || (!a.groups.is_empty() && Arc::ptr_eq(&a.groups, &b.groups))
}

/// Returns the unit of a pod that waits or is being scheduled.
pub(crate) fn unit_of(snapshot: &Snapshot, id: PodId) -> Option<&Unit> {
    snapshot.queue.unit(snapshot.queue.unit_of(id)?)
}

/// Returns when the backoff of a unit ends, if it waits for that. On the monotonic clock.
pub(crate) fn backoff_end(unit: &Unit) -> Option<Duration> {
    matches!(unit.stage, QueueStage::Backoff | QueueStage::ErrorBackoff).then_some(unit.backoff_until)
}

/// Returns when a unit is tried again at the latest, on the monotonic clock.
pub(crate) fn next_retry(unit: &Unit) -> Option<Duration> {
    let expires_at = (unit.stage == QueueStage::Unschedulable).then_some(unit.expires_at);
    backoff_end(unit).or(expires_at)
}

/// Returns the events that can wake a unit: those of the plugins that are asked about it, or that gate it.
pub(crate) fn wakes_on(snapshot: &Snapshot, unit: &Unit) -> Vec<String> {
    if !matches!(unit.stage, QueueStage::Unschedulable | QueueStage::Gated) {
        return Vec::new();
    }
    let plugins = &snapshot.profiles[unit.profile].plugins;
    let asked = unit.asked();
    let asked = plugins.iter().enumerate().filter(|(i, _)| {
        asked.contains(*i) || (unit.stage == QueueStage::Gated && plugins[*i].pre_enqueue().is_some())
    });
    let events = asked.filter_map(|(_, p)| p.hints()).flat_map(|h| h.events().names());
    events.collect::<BTreeSet<_>>().into_iter().map(str::to_owned).collect()
}
