//! What is said of a pod that is not pending: where it is and why, how it ended, whose it is, or that it is not known.
//!
//! Every read that is asked about a pod says it in these words: as `notPending` of its body, or as its error. Pods that
//! are in no state any more are looked up among those that the state leaves out, and in the flight recorder.

use std::time::Duration;

use pellucid_api::rest::explain::PodExplanation;
use pellucid_api::rest::standing::NotPending;
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{OutsidePod, PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::records::last_attempt::LastAttempt;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::pod::PodPhase;
use pellucid_model::sentence;
use pellucid_model::similar::similar;
use pellucid_model::{Now, PodId, PodKey};
use pellucid_recording::flight::{Departure, FlightEvent};
use pellucid_recording::{Placement, rfc3339};

use crate::explain::{at_permit, why_there};
use crate::meta::{of_snapshot, unit_of};
use crate::views::wakeups;

/// The code of an unknown pod.
const UNKNOWN: &str = "PodNotFound";

/// What is said of a pod.
struct Said {
    code: &'static str,
    message: String,
    body: NotPending,
}

impl Said {
    fn new(code: &'static str, message: String, body: NotPending) -> Self {
        Self { code, message, body }
    }

    fn into_body(self) -> NotPending {
        NotPending { code: self.code.into(), message: self.message, ..self.body }
    }
}

/// Returns why a pod is not pending, or `None` when it is.
pub(crate) fn of(snapshot: &Snapshot, key: &PodKey) -> Option<NotPending> {
    said(snapshot, key).map(Said::into_body)
}

/// Returns the error of a read that has no answer about a pod, because the pod is not pending or not known.
pub(crate) fn error(snapshot: &Snapshot, key: &PodKey) -> ReadError {
    match said(snapshot, key) {
        Some(said) => ReadError::NotFound { code: said.code, message: said.message },
        None => ReadError::NotFound { code: "NotOurPod", message: format!("pod {key} is not ours to place") },
    }
}

/// Explains a pod that is not in the state. Fails when the pod does not exist, or is not known.
pub(crate) fn explanation(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<PodExplanation, ReadError> {
    let said = gone(snapshot, key);
    let verdict = match said.code {
        "PodEnded" => "ended",
        "PodDeleting" => "deleting",
        "NotOurPod" => "foreign",
        code => return Err(ReadError::NotFound { code, message: said.message }),
    };
    let body = said.into_body();
    let nodes = snapshot.cluster.present().len();
    Ok(PodExplanation {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        profile: body.scheduler_name.clone().unwrap_or_default(),
        verdict: verdict.into(),
        summary: body.message.clone(),
        not_pending: Some(body),
        total_nodes: nodes,
        not_evaluated: nodes,
        ..PodExplanation::default()
    })
}

fn said(snapshot: &Snapshot, key: &PodKey) -> Option<Said> {
    if let Some(object) = snapshot.find_quarantined(key) {
        return Some(Said::new("PodUnreadable", unreadable(object), NotPending::default()));
    }
    match snapshot.find_pod(key) {
        Some((id, record)) => record.node.is_some().then(|| placed(snapshot, id, record)),
        None => Some(gone(snapshot, key)),
    }
}

/// Returns what is said of a pod that cannot be read.
pub(crate) fn unreadable(object: &Quarantined) -> String {
    let message = pellucid_cycle::quarantine_message(object);
    match object.is_bound {
        true => sentence::ended(format!(
            "The scheduler cannot read this pod, which is on a node already: {message}"
        )),
        false => {
            sentence::ended(format!("The scheduler cannot read this pod, so it is not placed: {message}"))
        }
    }
}

/// Says of a pod on a node who placed it there, when and why, and what woke it before.
fn placed(snapshot: &Snapshot, id: PodId, record: &PodRecord) -> Said {
    let name = record.node.map(|node| snapshot.cluster.node_name(node).to_string()).unwrap_or_default();
    let body = NotPending {
        node: Some(name.clone()),
        scheduler_name: Some(record.pod.scheduler_name.to_string()),
        ..NotPending::default()
    };
    let attempt = snapshot.last_attempts.get(id.index());
    if attempt.and_then(LastAttempt::node) != record.node {
        return placed_by_others(snapshot, record, &name, body);
    }
    let verdict = snapshot.verdict(id);
    let decision = verdict.as_ref().and_then(|verdict| Some((verdict.placement()?, verdict.at)));
    let at = rfc3339(decision.map_or(record.since, |(_, at)| Duration::from_nanos(at)));
    let verb = if record.stage == Stage::Bound { "Placed" } else { "Being placed" };
    let mut message = match decision {
        Some((placement, _)) => format!("{verb} on {name} at {at}: {}.", why_here(&placement)),
        None => format!(
            "{verb} on {name} at {at}; the numbers of that decision were pushed out of the flight recorder."
        ),
    };
    let woken_by = woken_by(snapshot, id);
    if let Some(event) = &woken_by {
        let of = if event.object.is_empty() { String::new() } else { format!(" of {}", event.object) };
        message.push_str(&format!(" {}{of} at {} had woken it.", event.event, event.at));
    }
    message.push_str(&at_permit(snapshot, id, snapshot.published));
    let is_recorded = decision.is_some() && matches!(attempt, Some(LastAttempt::Placed { .. }));
    let history = is_recorded.then(|| path_of_history(&record.pod.key));
    Said::new("PodPlaced", message, NotPending { at: Some(at), woken_by, history, ..body })
}

fn placed_by_others(snapshot: &Snapshot, record: &PodRecord, node: &str, body: NotPending) -> Said {
    let since = record.pod.scheduled_at.and_then(|at| u64::try_from(at).ok());
    let at = since.map(|seconds| rfc3339(Duration::from_secs(seconds)));
    let since = at.as_ref().map(|at| format!(" since {at}")).unwrap_or_default();
    let name = &record.pod.scheduler_name;
    let who = match snapshot.cluster.is_ours(name) {
        true => {
            "this process did not place it there: it was bound before the process began, or by others".into()
        }
        false => format!("it is of scheduler {name}, and this scheduler did not place it there"),
    };
    let message = format!("On {node}{since}; {who}.");
    Said::new("PodPlacedByOthers", message, NotPending { at, ..body })
}

/// Returns why a node was chosen.
fn why_here(placement: &Placement) -> String {
    let is_whole = placement.evaluated >= placement.total;
    why_there(placement).unwrap_or_else(|| match (is_whole, placement.evaluated) {
        (true, _) => "the only feasible node".into(),
        (false, 0 | 1) => format!("the only one of {} nodes that was looked at", placement.total),
        (false, n) => format!("the only feasible one of the {n} nodes that were looked at"),
    })
}

/// Returns what woke a placed pod before the attempt that placed it.
fn woken_by(snapshot: &Snapshot, id: PodId) -> Option<pellucid_api::rest::wakeups::WakeEvent> {
    let kept = snapshot.wakeups.get(id.index()).and_then(Option::as_ref);
    let kept = kept.map(|(profile, by)| (*profile, by));
    // While the pod is being bound, its unit knows.
    let alone = unit_of(snapshot, id).filter(|unit| unit.gang.is_none());
    let (profile, by) =
        kept.or_else(|| alone.and_then(|unit| Some((unit.profile, unit.wakeup.as_ref()?))))?;
    Some(wakeups::woken(&snapshot.profiles[profile], by, snapshot.published))
}

/// The newest entry of the flight recorder about a pod.
struct LastEntry {
    event: FlightEvent,
    at: String,
    node: String,
}

fn last_entry(snapshot: &Snapshot, key: &PodKey) -> Option<LastEntry> {
    let (all, names) = snapshot.flight.about(key, &snapshot.cluster);
    let of_pod = all.iter().rev().map(|(chunk, entry)| (chunk, entry, chunk.event(entry)));
    let mut of_pod =
        of_pod.filter(|(_, _, event)| !matches!(event, FlightEvent::Gang(_) | FlightEvent::NotRecorded));
    let (chunk, entry, event) = of_pod.next()?;
    let (at, node) = (rfc3339(Duration::from_nanos(entry.last)), names.node(chunk, entry).to_owned());
    Some(LastEntry { event, at, node })
}

/// Says of a pod that is not in the state how it left, or whose it is.
fn gone(snapshot: &Snapshot, key: &PodKey) -> Said {
    let outside = snapshot.cluster.outside().get(key);
    let last = last_entry(snapshot, key);
    let how = match last.as_ref().map(|last| &last.event) {
        Some(FlightEvent::Left(how)) => Some(*how),
        _ => None,
    };
    let history = last.is_some().then(|| path_of_history(key));
    let scheduler_name = outside.map(|pod| pod.scheduler_name.to_string());
    let body = NotPending { history, scheduler_name, ..NotPending::default() };
    match (outside, how) {
        (Some(pod), _) if pod.phase.is_terminal() => ended(key, pod.phase, Some(pod), (last.as_ref(), body)),
        (None, Some(Departure::Succeeded)) => ended(key, PodPhase::Succeeded, None, (last.as_ref(), body)),
        (None, Some(Departure::Failed)) => ended(key, PodPhase::Failed, None, (last.as_ref(), body)),
        (Some(pod), how) if pod.deleting => {
            let since = last.filter(|_| how == Some(Departure::Deleting)).map(|last| last.at);
            deleting(key, since, body)
        }
        (None, Some(Departure::Deleting)) => deleting(key, last.map(|last| last.at), body),
        (Some(pod), _) => of_another(snapshot, key, pod, body),
        (None, _) => match last {
            Some(last) => deleted(key, &last, how, body),
            None => unknown(snapshot, key, body),
        },
    }
}

fn ended(
    key: &PodKey,
    phase: PodPhase,
    outside: Option<&OutsidePod>,
    (last, body): (Option<&LastEntry>, NotPending),
) -> Said {
    // The entry may be of an earlier pod of this name.
    let last =
        last.filter(|last| matches!(last.event, FlightEvent::Left(Departure::Succeeded | Departure::Failed)));
    let of_entry = last.map(|last| last.node.clone()).filter(|node| !node.is_empty());
    let node = match outside {
        Some(pod) => pod.node.as_ref().map(ToString::to_string),
        None => of_entry,
    };
    let at = last.map(|last| last.at.clone());
    let verb = if phase == PodPhase::Failed { "failed" } else { "succeeded" };
    let place = node.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    let when = at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
    let message = format!("pod {key} has ended: it {verb}{place}{when}{}", end_of(&body));
    Said::new("PodEnded", message, NotPending { node, at, phase: Some(phase.as_str().into()), ..body })
}

fn deleting(key: &PodKey, since: Option<String>, body: NotPending) -> Said {
    let when = since.as_ref().map(|at| format!(" since {at}")).unwrap_or_default();
    let message = format!(
        "pod {key} is being deleted{when}; it is on no node and is not placed any more{}",
        end_of(&body)
    );
    Said::new("PodDeleting", message, NotPending { at: since, ..body })
}

fn deleted(key: &PodKey, last: &LastEntry, how: Option<Departure>, body: NotPending) -> Said {
    let node = Some(last.node.clone()).filter(|node| !node.is_empty());
    let (said, at) = match how {
        Some(Departure::Deleted) => {
            let place = node.as_ref().map(|node| format!(", from {node}")).unwrap_or_default();
            (format!("was deleted at {}{place}", last.at), Some(last.at.clone()))
        }
        _ => ("is not there any more; how it left was not recorded".into(), None),
    };
    let message = format!("pod {key} {said}{}", end_of(&body));
    Said::new("PodDeleted", message, NotPending { node, at, ..body })
}

fn of_another(snapshot: &Snapshot, key: &PodKey, pod: &OutsidePod, body: NotPending) -> Said {
    let mut ours: Vec<&str> = snapshot.profiles.iter().map(|profile| &*profile.scheduler_name).collect();
    ours.sort_unstable();
    let meant = similar(&pod.scheduler_name, ours.iter().copied());
    let hint = meant.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
    let message = format!(
        "pod {key} waits for scheduler {}, not for this one, which places pods of {} only.{hint}",
        pod.scheduler_name,
        ours.join(", ")
    );
    Said::new("NotOurPod", message, NotPending { did_you_mean: meant.map(str::to_owned), ..body })
}

fn unknown(snapshot: &Snapshot, key: &PodKey, body: NotPending) -> Said {
    let left_out = match snapshot.cluster.outside().pushed_out() {
        0 => String::new(),
        n => {
            format!(", or is one of {n} that have ended or wait for other schedulers and are not remembered")
        }
    };
    let message = format!(
        "pod {key} is not known: it does not exist, or has left and nothing is recorded of it{left_out}"
    );
    Said::new(UNKNOWN, message, body)
}

/// Returns the end of a sentence about a pod that left: where its history is.
fn end_of(body: &NotPending) -> String {
    match &body.history {
        Some(path) => format!("; {path} has its history"),
        None => "; nothing is recorded of it".into(),
    }
}

fn path_of_history(key: &PodKey) -> String {
    format!("/apis/v1/history/pods/{key}")
}
