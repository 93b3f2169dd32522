//! `?refresh=true`: evaluates a pending pod against the current snapshot instead of showing the recorded verdict.
//!
//! A gated pod keeps its recorded verdict, because only a change of the pod could open its gates. So does a placed
//! pod, because its decision is history.

use pellucid_api::rest::explain::PodExplanation;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::question::Question;
use pellucid_model::{Now, PodId};
use pellucid_queue::{QueueStage, Unit};
use pellucid_recording::{Decision, rfc3339};

use crate::explain::{add_placement, add_refusal, why_there};
use crate::meta::{of_snapshot, unit_of};
use crate::requirements::details::Details;
use crate::verdict::of_refusal;

/// Replaces the recorded answer in `body` with a current one, unless the pod is placed or gated.
pub(crate) fn refresh(
    body: &mut PodExplanation,
    snapshot: &Snapshot,
    (id, record): (PodId, &PodRecord),
    now: Now,
) {
    if record.node.is_some() {
        return;
    }
    let mut meta = of_snapshot(snapshot, now);
    (meta.refreshed, meta.decided_at) = (true, Some(rfc3339(now.wall)));
    let unit = unit_of(snapshot, id);
    if unit.is_some_and(|unit| unit.stage == QueueStage::Gated) {
        // The gates were evaluated when the pod last changed, and what its gang lacks just now.
        body.meta = meta;
        return;
    }
    let Some((_, profile)) = snapshot.profile_of(record) else { return };
    let Some(question) = Question::ask(&snapshot.cluster, profile, id) else { return };
    body.meta = meta;
    body.pod_reasons.clear();
    body.nearest = None;
    match question.decision() {
        Decision::Refuse(refusal) => {
            let verdict = of_refusal(snapshot, id, refusal, now);
            add_refusal(body, refusal, verdict.as_ref(), "refused");
            let details = Details { profile, view: question.view(), spec: &record.pod.spec, now };
            details.add_to(&mut body.node_groups, refusal);
        }
        Decision::Place(placement) => {
            let node = snapshot.cluster.node_name(placement.node).to_string();
            let why =
                why_there(placement).unwrap_or_else(|| "the only feasible node that was looked at".into());
            let wait = unit.map(|unit| waits_for(unit, now)).unwrap_or_default();
            body.verdict = "fits".into();
            body.summary = format!("Fits now: it would be placed on {node} ({why}).{wait}");
            body.message = String::new();
            body.node_groups = Vec::new();
            add_placement(body, node, "pending".into(), placement);
        }
    }
    if record.pod.member_of().is_some() {
        body.summary += " This is about the pod alone; its gang is planned as one.";
    }
}

/// Returns a sentence on what a pod that fits waits for.
fn waits_for(unit: &Unit, now: Now) -> String {
    let at = |when| rfc3339(now.wall_at(when));
    match unit.stage {
        QueueStage::Active => " It is in the queue.".into(),
        QueueStage::Backoff | QueueStage::ErrorBackoff => {
            format!(" It waits for its backoff until {}.", at(unit.backoff_until))
        }
        QueueStage::Unschedulable => {
            format!(" It waits for an event that could help, until {} at the latest.", at(unit.expires_at))
        }
        QueueStage::Gated | QueueStage::InFlight | QueueStage::New => String::new(),
    }
}
