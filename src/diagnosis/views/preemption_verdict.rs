//! The verdict of preemption: whether a pod may evict others, and how far it is with that.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::preemption::{PreemptionExplanation, PreemptionVerdict};
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_model::{Pod, PodId};

/// Returns the verdict on a pod, which has its other parts of the explanation already. Returns `None` for a pod that is
/// not in the state and preempted nobody.
pub(super) fn of(
    snapshot: &Snapshot,
    found: Option<(PodId, &PodRecord)>,
    body: &PreemptionExplanation,
) -> Option<PreemptionVerdict> {
    let say = |code: &str, message: String| Some(PreemptionVerdict { code: code.into(), message });
    let last = body.ended.first();
    let took_it = last.filter(|last| last.end.as_deref() == Some("bound"));
    let Some((id, record)) = found else {
        let code = if took_it.is_some() { "Preempted" } else { "PreemptionNotTried" };
        return last.and_then(|_| say(code, body.summary.clone()));
    };
    if body.preemption.is_some() {
        return say("PreemptionUnderWay", body.summary.clone());
    }
    if let Some(node) = record.node {
        let node = snapshot.cluster.node_name(node);
        return match took_it.filter(|last| *last.node == **node && *last.uid == *record.pod.uid) {
            Some(last) => {
                let victims = last.victims.len();
                say("Preempted", format!("It is on {node}, for which {victims} pods had to go."))
            }
            None => say("PreemptionNotNeeded", format!("It is on {node} and evicted nobody for that.")),
        };
    }
    if let Some(why) = not_allowed(snapshot, record) {
        return say("PreemptionNotAllowed", why);
    }
    let searched = snapshot.verdict(id).and_then(|verdict| verdict.plan);
    match &body.message {
        Some(message) if **message == *ReasonCode::PreemptionUnderWay.message("") => {
            say("PreemptionUnderWay", format!("It is {message}"))
        }
        Some(message) if searched.is_some_and(|plan| plan.candidates.is_empty()) => {
            say("NoCandidates", message.clone())
        }
        Some(message) => say("PreemptionNotTried", format!("No search of its own was made: {message}")),
        None if last.is_some() => say("PreemptionEnded", body.summary.clone()),
        None => say("PreemptionNotTried", "No search for victims was made for it.".into()),
    }
}

/// Returns why a pending pod may not evict any pod as things are, or `None` when it may.
fn not_allowed(snapshot: &Snapshot, record: &PodRecord) -> Option<String> {
    let pod = &record.pod;
    if pod.never_preempts {
        return Some("Its preemptionPolicy is Never: it evicts nobody, whatever their priority.".into());
    }
    let (_, profile) = snapshot.profile_of(record)?;
    let plugins = || profile.post_filter.iter().filter_map(|enabled| enabled.plugin.post_filter());
    if plugins().next().is_none() {
        return Some("Its profile has no plugin at PostFilter: its pods evict nobody.".into());
    }
    // Other plugins may have victims of any priority.
    if !plugins().all(|plugin| plugin.evicts_lower_only()) {
        return None;
    }
    let (below, of_whom) = below(snapshot, pod);
    let placed = snapshot.cluster.pods().filter(|(_, other)| other.node.is_some());
    let lowest = placed.map(|(_, other)| other.pod.priority).min();
    match lowest {
        Some(lowest) if lowest < below => None,
        Some(lowest) => Some(format!(
            "No pod on any node has a priority below {of_whom} {below}: the lowest is {lowest}."
        )),
        None => Some("No pod is on any node, so there is nobody to evict.".into()),
    }
}

/// Returns the priority that victims are below, and whose it is: a gang preempts as its lowest member.
fn below<'t>(snapshot: &Snapshot, pod: &Pod) -> (i32, &'t str) {
    let gang = pod.member_of().and_then(|key| snapshot.cluster.gangs().get(key));
    let members = gang.into_iter().flat_map(|gang| gang.members.keys());
    let members = members.filter_map(|id| snapshot.cluster.pod(*id)).map(|member| member.pod.priority);
    match members.min().filter(|lowest| *lowest < pod.priority) {
        Some(lowest) => (lowest, "its gang's lowest,"),
        None => (pod.priority, "its own,"),
    }
}
