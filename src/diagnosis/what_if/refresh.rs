//! `?refresh=true`: evaluates a pending pod against the current snapshot instead of showing the recorded verdict.
//!
//! A gated pod keeps its recorded verdict, because only a change of the pod could open its gates. So does a placed
//! pod, because its decision is history.

use pellucid_api::rest::explain::{PlacementBody, PodExplanation};
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::question::Question;
use pellucid_model::{Now, PodId};
use pellucid_queue::{QueueStage, Unit};
use pellucid_recording::Decision;
use pellucid_recording::Placement;
use pellucid_recording::rfc3339;

use crate::explain::{TIE_RULE, add_refusal, group_body};
use crate::meta::of_snapshot;
use crate::what_if::nearest::nearest;

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
    let unit = snapshot.queue.unit_of(id).and_then(|unit| snapshot.queue.unit(unit));
    if unit.is_some_and(|unit| unit.stage == QueueStage::Gated) {
        // The gates were evaluated when the pod last changed; nothing else could open them.
        body.meta = meta;
        return;
    }
    let profile = snapshot.profile_of(record);
    let Some(question) = profile.and_then(|(_, profile)| Question::ask(&snapshot.cluster, profile, id))
    else {
        return;
    };
    body.meta = meta;
    body.pod_reasons.clear();
    body.nearest = None;
    match question.decision() {
        Decision::Refuse(refusal) => {
            let nearest = nearest(snapshot, id, refusal);
            body.nearest = nearest.as_ref().map(group_body);
            add_refusal(body, refusal, nearest.as_ref(), "refused");
        }
        Decision::Place(placement) => {
            add_fit(body, snapshot.cluster.slot(placement.node).name.to_string(), placement);
            body.summary += &unit.map(|unit| waits_for(unit, now)).unwrap_or_default();
        }
    }
    if record.pod.member_of().is_some() {
        body.summary += " This is about the pod alone; its gang is planned as one.";
    }
}

fn add_fit(body: &mut PodExplanation, node: String, placement: &Placement) {
    let why = match placement.score {
        Some(score) => format!("total score {score}, the greatest of {} feasible nodes", placement.feasible),
        None => "the only feasible node that was looked at".into(),
    };
    body.verdict = "fits".into();
    body.summary = format!("Fits now: it would be placed on {node} ({why}).");
    body.message = String::new();
    body.node_groups = Vec::new();
    body.total_nodes = placement.total as usize;
    body.not_evaluated = (placement.total - placement.evaluated) as usize;
    body.placement = Some(PlacementBody {
        node,
        stage: "pending".into(),
        score: placement.score,
        feasible_nodes: placement.feasible as usize,
        tie_rule: TIE_RULE.into(),
    });
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
