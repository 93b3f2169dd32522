//! Renders histories of pods and objects, and feed lines, from a snapshot.

mod decision_hash;
mod objects;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::history::{FeedLine, HistoryEntry, PodHistory};
use pellucid_cluster::Cluster;
use pellucid_cluster::preemptions::{Preemption, Victim};
use pellucid_cycle::Snapshot;
use pellucid_framework::bodies;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{Name, Now, PodKey};
use pellucid_recording::flight::{Chunk, Departure, Entry, Eviction, FlightEvent, FlightLog, Names, Numbers};
use pellucid_recording::{GangOutcome, GangVerdict, Refusal, rfc3339};

use crate::called::called_as;
use crate::gangs::explain::refusal_of_group;
use crate::meta::of_snapshot;
use crate::not_pending;
use crate::views::evictions;
pub(crate) use decision_hash::hash_of_outcome;
use decision_hash::{hash_of_gang, hash_of_placement, hash_of_refusal};
pub(crate) use objects::of_object;

/// Returns the recorded history of a pod. Fails when nothing is recorded.
pub(crate) fn of_pod(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<PodHistory, ReadError> {
    let log = &snapshot.flight;
    let (mut all, names) = log.about(key, &snapshot.cluster);
    all.retain(|(chunk, entry)| {
        !matches!(chunk.event(entry), FlightEvent::Gang(_) | FlightEvent::NotRecorded)
    });
    if all.is_empty() {
        let said = not_pending::of(snapshot, key).map(|said| said.message);
        let message = format!(
            "nothing is recorded of pod {key}: it was never pending here, or what was recorded has been \
             pushed out ({} entries were). {}",
            log.dropped,
            said.unwrap_or_else(|| "It is pending.".into())
        );
        return Err(ReadError::NotFound { code: "HistoryNotFound", message });
    }
    let of = PodHistory {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        not_pending: not_pending::of(snapshot, key),
        ..PodHistory::default()
    };
    Ok(of_entries(snapshot, (&all, &names), of, now))
}

/// Adds the entries to a history.
fn of_entries<'a>(
    snapshot: &Snapshot,
    (all, names): (&[(&'a Chunk, Entry)], &Names<'a>),
    of: PodHistory,
    now: Now,
) -> PodHistory {
    // The last entry of a repeated refusal covers all of them. Entries in between may already have been removed, so
    // repeats are matched by the time of the first one.
    let repeats = all.iter().filter(|(chunk, entry)| chunk.count(entry) > 1);
    let replaced: FxHashSet<u64> = all.iter().map(|(chunk, entry)| chunk.replaces(entry)).collect();
    let last: FxHashMap<_, u64> = repeats.map(|(chunk, entry)| (chunk.first(entry), entry.id)).collect();
    let is_replaced = |chunk: &Chunk, entry: &Entry| {
        replaced.contains(&entry.id)
            || chunk.event(entry).refusal().is_some()
                && last.get(&chunk.first(entry)).is_some_and(|id| *id > entry.id)
    };
    let entries = all.iter().filter(|(chunk, entry)| !is_replaced(chunk, entry));
    let entries: Vec<HistoryEntry> =
        entries.map(|(chunk, entry)| history_entry(names, (*chunk, entry))).collect();
    let log = &snapshot.flight;
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = log.dropped > 0 && entries.first().is_some_and(|e| e.kind != "Added");
    PodHistory { meta, entries, dropped: log.dropped, lowest_id: log.lowest(), highest_id: log.newest, ..of }
}

fn history_entry<'a>(names: &Names<'a>, (chunk, entry): (&'a Chunk, &Entry)) -> HistoryEntry {
    let (pod, node) = (names.subject(chunk, entry), names.node(chunk, entry));
    let event = chunk.event(entry);
    HistoryEntry {
        id: entry.id,
        kind: event.kind().into(),
        first: time(chunk.first(entry)),
        last: time(entry.last),
        count: chunk.count(entry),
        cycle_id: entry.cycle,
        node: some(node),
        by: by(&event),
        codes: codes(&event),
        victims: victims(&event),
        message: message((chunk, entry), node, &event),
        decision_hash: decision_hash(pod, node, &event),
    }
}

fn victims(what: &FlightEvent) -> Vec<String> {
    match what {
        FlightEvent::PreemptionEnded(ended) => ended.victims.iter().map(named).collect(),
        _ => Vec::new(),
    }
}

fn named(victim: &Victim) -> String {
    called_as(&victim.key, victim.stands_for.as_deref())
}

/// A bounded part of the feed.
pub struct Lines {
    /// Lines as JSON documents, each with the reader's cursor after it.
    pub lines: Vec<(u64, String)>,
    /// Cursor after the last line.
    pub cursor: u64,
    /// Whether the snapshot holds more entries after `cursor`.
    pub is_more: bool,
}

/// Returns at most `at_most` lines after a cursor. Cursor 0 precedes all entries.
pub fn lines(log: &FlightLog, cluster: &Cluster, cursor: u64, at_most: usize) -> Lines {
    let mut lines = Vec::new();
    let mut cursor = cursor;
    let before = log.first - 1;
    if at_most > 0 && (cursor > log.newest || cursor > 0 && cursor < before) {
        let mark = restarted(log, cursor);
        // An event stream continues after the marker, not after a cursor of another process.
        lines.push((before, text(&mark)));
        cursor = before;
    }
    cursor = cursor.max(before);
    if cursor < log.pushed_out && lines.len() < at_most {
        let (from, to) = (Some(cursor + 1), Some(log.pushed_out));
        let message = "Entries with these ids were pushed out before they were read.".into();
        let mark = FeedLine { kind: "Gap".into(), from, to, message, ..FeedLine::default() };
        lines.push((log.pushed_out, text(&mark)));
        cursor = log.pushed_out;
    }
    let entries: Vec<(&Chunk, Entry)> = log.since(cursor).take(at_most.saturating_sub(lines.len())).collect();
    let names = log.names_of(&entries, cluster);
    for (chunk, entry) in entries {
        lines.push((entry.id, text(&feed_line(&names, (chunk, &entry)))));
        cursor = entry.id;
    }
    Lines { lines, cursor, is_more: cursor < log.newest }
}

/// Returns the marker for a cursor that this process never issued.
fn restarted(log: &FlightLog, cursor: u64) -> FeedLine {
    let kind = "Restarted".into();
    if cursor > log.newest {
        let message =
            format!("Id {cursor} was not given yet: it is of another process. The feed begins anew.");
        return FeedLine { kind, message, ..FeedLine::default() };
    }
    let message = format!(
        "Id {cursor} is of an earlier process; this one began with {}. What was recorded behind it, and what happened \
         until this one began, is missing: nobody knows how much.",
        log.first
    );
    FeedLine { kind, from: Some(cursor + 1), to: Some(log.first - 1), message, ..FeedLine::default() }
}

fn text(line: &FeedLine) -> String {
    // A line holds only strings and numbers, so serialization cannot fail.
    serde_json::to_string(line).unwrap_or_default()
}

fn feed_line<'a>(names: &Names<'a>, (chunk, entry): (&'a Chunk, &Entry)) -> FeedLine {
    let (pod, node) = (names.subject(chunk, entry), names.node(chunk, entry));
    let key = || Some(format!("{}/{}", pod.0, pod.1));
    let event = chunk.event(entry);
    let is_gang = matches!(event, FlightEvent::Gang(_));
    let is_object = matches!(event, FlightEvent::Told(_));
    let is_pod = !is_gang && !is_object && !matches!(event, FlightEvent::NotRecorded);
    FeedLine {
        id: Some(entry.id),
        at: Some(time(entry.last)),
        kind: event.kind().into(),
        pod: is_pod.then(key).flatten(),
        gang: is_gang.then(key).flatten(),
        object: is_object.then(|| pod.1.to_owned()),
        node: some(node),
        by: by(&event),
        codes: codes(&event),
        message: message((chunk, entry), node, &event),
        count: Some(chunk.count(entry)),
        first: (chunk.count(entry) > 1).then(|| time(chunk.first(entry))),
        replaces: (chunk.replaces(entry) > 0).then(|| chunk.replaces(entry)),
        cycle_id: Some(entry.cycle),
        decision_hash: decision_hash(pod, node, &event),
        from: None,
        to: None,
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn time(nanos: u64) -> String {
    rfc3339(std::time::Duration::from_nanos(nanos))
}

fn codes(event: &FlightEvent) -> Vec<String> {
    let codes: BTreeSet<&str> = match event {
        FlightEvent::Gated(refusal) | FlightEvent::Refused(refusal) => codes_of(refusal),
        FlightEvent::Gang(verdict) => match &verdict.outcome {
            GangOutcome::Released { code, .. } => [code.as_str()].into(),
            outcome => refusal_of_group(outcome).into_iter().map(|refusal| refusal.code.as_str()).collect(),
        },
        FlightEvent::Evicted(eviction) => {
            let reasons = eviction.lack.iter().flat_map(|lack| &lack.cause.reasons);
            reasons.map(|reason| reason.code.as_str()).collect()
        }
        _ => BTreeSet::new(),
    };
    codes.into_iter().map(str::to_owned).collect()
}

fn codes_of(refusal: &Refusal) -> BTreeSet<&'static str> {
    let codes: BTreeSet<&str> = refusal.reasons().map(|(reason, _)| reason.code.as_str()).collect();
    // A cluster without nodes refuses without a cause.
    let is_empty = codes.is_empty() && refusal.total_nodes == 0;
    if is_empty { [ReasonCode::NoNodes.as_str()].into() } else { codes }
}

fn decision_hash(pod: (&str, &str), node: &str, event: &FlightEvent) -> Option<String> {
    match event {
        FlightEvent::Gated(refusal) | FlightEvent::Refused(refusal) => Some(hash_of_refusal(pod, refusal)),
        FlightEvent::Placed(_) | FlightEvent::Bound => Some(hash_of_placement(pod, node)),
        FlightEvent::Gang(verdict) => Some(hash_of_gang(verdict)),
        _ => None,
    }
}

fn message((chunk, entry): (&Chunk, &Entry), node: &str, event: &FlightEvent) -> String {
    match event {
        FlightEvent::Added => "It came and waits to be placed.".into(),
        FlightEvent::Gated(refusal) | FlightEvent::Refused(refusal) => refusal.message().to_string(),
        FlightEvent::Placed(numbers) => placed(node, numbers),
        FlightEvent::Bound => format!("It is bound to {node}."),
        FlightEvent::Released => format!("It lost its place on {node} before it was bound."),
        FlightEvent::Evicted(eviction) => evicted(node, eviction),
        FlightEvent::PreemptionEnded(ended) => preemption_ended(ended),
        FlightEvent::Left(gone) => departure_message(*gone).into(),
        FlightEvent::Told(told) => told.text.clone(),
        FlightEvent::Gang(verdict) => gang_message(verdict),
        FlightEvent::NotRecorded => {
            format!("The recorder was off: {} entries are missing.", chunk.count(entry))
        }
    }
}

fn by(event: &FlightEvent) -> Option<String> {
    match event {
        FlightEvent::Evicted(eviction) => Some(eviction.preemptor.to_string()),
        FlightEvent::Told(told) => told.by.as_ref().map(ToString::to_string),
        _ => None,
    }
}

/// Returns who evicted a pod, by which right and for what.
fn evicted(node: &str, eviction: &Eviction) -> String {
    let Eviction { preemptor, preemptor_priority: theirs, priority, .. } = eviction;
    let what = match eviction.is_ordered {
        true => format!("Its eviction from {node} was ordered"),
        false => format!("Its place on {node} was taken back before it was bound"),
    };
    let above = if theirs > priority { format!(", above its {priority}") } else { String::new() };
    let gang =
        eviction.gang.as_ref().map(|part| format!(" with its gang {}", bodies::gangs(part).join(", ")));
    let lack = eviction.lack.as_ref().map(|lack| {
        let lacked = evictions::lacked(lack, &Name::new(node));
        format!("; there it lacked: {}", lacked.text)
    });
    let budget = if eviction.violates_budget { " This went beyond a PodDisruptionBudget." } else { "" };
    format!(
        "{what} to make room for {preemptor}{} (priority {theirs}{above}){}.{budget}",
        gang.unwrap_or_default(),
        lack.unwrap_or_default()
    )
}

/// Returns how the pod's own preemption ended, and who had to go for it.
fn preemption_ended(ended: &Preemption) -> String {
    let end = ended.end.map_or("?", |(end, _)| end.as_str());
    let victims = ended.victims.iter().map(|victim| format!("{} ({})", named(victim), victim.state.as_str()));
    let victims: Vec<String> = victims.collect();
    let whom = match victims.as_slice() {
        [] => "nobody had to go for it".into(),
        victims => format!("its victims: {}", victims.join(", ")),
    };
    format!("Its preemption on {} ended: {end}; {whom}.", ended.node)
}

fn placed(node: &str, numbers: &Numbers) -> String {
    let Numbers { score, feasible, evaluated, total, .. } = numbers;
    match Some(score).filter(|score| **score != i64::MIN) {
        Some(score) => format!(
            "{node} scored best with {score}, of {feasible} feasible nodes; {evaluated} of {total} were looked at."
        ),
        None => format!("{node} was the only feasible node; {evaluated} of {total} were looked at."),
    }
}

fn departure_message(gone: Departure) -> &'static str {
    match gone {
        Departure::Deleted => "It is deleted.",
        Departure::Deleting => "It is being deleted.",
        Departure::Succeeded => "It has ended: it succeeded.",
        Departure::Failed => "It has ended: it failed.",
        Departure::Unreadable => {
            "It changed into something that cannot be read; /apis/v1/quarantine says what."
        }
    }
}

fn gang_message(verdict: &GangVerdict) -> String {
    match &verdict.outcome {
        GangOutcome::Placed { members, order } => {
            format!("{members} members were placed together, in this order: {order}.")
        }
        GangOutcome::Waiting { placed, refusal } => {
            format!("{placed} members were placed and wait for the others: {}", refusal.message)
        }
        GangOutcome::Refused(refusal) => refusal.message.to_string(),
        GangOutcome::Released { message, members, .. } => {
            format!("{members} members gave their places up: {message}")
        }
    }
}
