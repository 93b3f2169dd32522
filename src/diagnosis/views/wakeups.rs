//! What a pod waits for, and its plugins' verdicts on the events since.
//!
//! The queue stores events, not verdicts. While a pod waits, every plugin returned Skip for every event; the verdicts
//! on the event that ended the wait are stored with it.

use pellucid_api::rest::wakeups::{HintVerdict, PodWakeups, SkippedEvents, WaitsFor, WakeEvent};
use pellucid_cluster::{EventKinds, PodRecord};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::profile::Profile;
use pellucid_model::{Now, PodKey};
use pellucid_queue::{
    EVENTS_KEPT, EventObject, QueueStage, RefusedBy, SeenEvent, Unit, Wakeup, WakeupReason,
};
use pellucid_recording::rfc3339;

use crate::meta::{backoff_end, of_snapshot, of_verdict, unit_of};
use crate::not_pending;

/// Returns what one pod waits for. Fails when the pod is unknown.
pub(crate) fn of_pod(snapshot: &Snapshot, key: &PodKey, now: Now) -> Result<PodWakeups, ReadError> {
    let mut body = PodWakeups {
        meta: of_snapshot(snapshot, now),
        pod: key.to_string(),
        skipped: skipped(snapshot),
        ..PodWakeups::default()
    };
    if snapshot.find_quarantined(key).is_some() {
        body.stage = "quarantined".into();
        body.summary = "It cannot be read; it waits for a change of its own.".into();
        body.not_pending = not_pending::of(snapshot, key);
        return Ok(body);
    }
    let Some((id, record)) = snapshot.find_pod(key) else {
        return Err(not_pending::error(snapshot, key));
    };
    if let Some(verdict) = &snapshot.verdict(id) {
        body.meta = of_verdict(snapshot, id, verdict, now);
    }
    match unit_of(snapshot, id) {
        Some(unit) => add_unit(&mut body, snapshot, record, unit, now),
        None => {
            body.stage = record.stage.as_str().into();
            body.summary = "It is on a node and waits for nothing.".into();
            let by = snapshot.wakeups.get(id.index()).and_then(Option::as_ref);
            body.woken_by = by.map(|(profile, by)| woken(&snapshot.profiles[*profile], by, now));
        }
    }
    body.not_pending = not_pending::of(snapshot, key);
    Ok(body)
}

fn add_unit(body: &mut PodWakeups, snapshot: &Snapshot, record: &PodRecord, unit: &Unit, now: Now) {
    let profile = &snapshot.profiles[unit.profile];
    let time = |at| rfc3339(now.wall_at(at));
    let asked = asked(profile, unit);
    body.stage = unit.stage.as_str().into();
    body.refused_by = match unit.stage {
        QueueStage::Gated => names(profile, |i| asked.contains(i)),
        _ => names(profile, |i| unit.is_refused_by(i)),
    };
    body.woken_by = unit.wakeup.as_ref().map(|by| woken(profile, by, now));
    body.summary = match unit.stage {
        QueueStage::Active | QueueStage::New => "It waits for nothing but its turn.".into(),
        QueueStage::Backoff => {
            "It was woken and is tried when its backoff ends, or when nothing is active.".into()
        }
        QueueStage::ErrorBackoff => "Its last attempt failed; it is tried when its backoff ends.".into(),
        QueueStage::Unschedulable if asked.is_empty() => "It waits for any event.".into(),
        QueueStage::Unschedulable => "It waits for an event that one of its plugins welcomes.".into(),
        QueueStage::Gated => "It is held before the queue.".into(),
        QueueStage::InFlight => {
            body.stage = record.stage.as_str().into();
            "It has a node and waits for nothing.".into()
        }
    };
    if matches!(unit.stage, QueueStage::Gated | QueueStage::Unschedulable) {
        body.waits_for = waits_for(snapshot, profile, unit, asked);
    }
    let is_unschedulable = unit.stage == QueueStage::Unschedulable;
    let next_backoff = (is_unschedulable && unit.backoff_until > now.monotonic).then_some(unit.backoff_until);
    body.backoff_until = backoff_end(unit).or(next_backoff).map(time);
    body.expires_at = is_unschedulable.then(|| time(unit.expires_at));
    if !matches!(unit.stage, QueueStage::Gated | QueueStage::InFlight) {
        body.events = events(snapshot, profile, unit, now);
    }
}

/// Returns the plugins that are asked whether an event could help a unit, or the PreEnqueue plugins of a gated unit.
fn asked(profile: &Profile, unit: &Unit) -> RefusedBy {
    if unit.stage != QueueStage::Gated {
        return unit.asked();
    }
    let mut by = RefusedBy::default();
    profile.pre_enqueue.iter().for_each(|enabled| by.insert(enabled.index));
    by
}

fn names(profile: &Profile, is_in: impl Fn(usize) -> bool) -> Vec<String> {
    let all = profile.plugins.iter().enumerate().filter(|(i, _)| is_in(*i));
    all.map(|(_, plugin)| plugin.name().to_owned()).collect()
}

fn waits_for(snapshot: &Snapshot, profile: &Profile, unit: &Unit, plugins: RefusedBy) -> Vec<WaitsFor> {
    let all = profile.plugins.iter().enumerate().filter(|(i, _)| plugins.contains(*i));
    let waits = all.map(|(i, plugin)| WaitsFor {
        plugin: plugin.name().to_owned(),
        events: snapshot.queue.listening().of(unit.profile, i).names().map(str::to_owned).collect(),
    });
    waits.collect()
}

/// Returns the events since the unit was refused, up to the one that woke it.
fn events(snapshot: &Snapshot, profile: &Profile, unit: &Unit, now: Now) -> Vec<WakeEvent> {
    if unit.popped_at_event > unit.refused_at_event {
        return Vec::new(); // The unit was tried since.
    }
    let listening = snapshot.queue.listening();
    let asked = unit.asked();
    let kinds = listening.of_any(unit.profile, asked);
    let by = unit.wakeup.as_deref().filter(|by| by.event.number > unit.refused_at_event);
    let is_waiting = unit.stage == QueueStage::Unschedulable;
    let until = if is_waiting { u64::MAX } else { by.map_or(0, |by| by.event.number) };
    let seen = snapshot.queue.events().since(kinds, unit.refused_at_event).into_iter();
    let rows = seen.filter(|event| event.number <= until).map(|event| {
        let asked = listening.asked(unit.profile, asked, event.kinds);
        match by.filter(|by| by.event == **event) {
            Some(by) => woken(profile, by, now),
            None => row(profile, event, asked, RefusedBy::default(), now),
        }
    });
    rows.take(EVENTS_KEPT).collect()
}

/// Returns the event that woke a unit as a row.
pub(crate) fn woken(profile: &Profile, by: &Wakeup, now: Now) -> WakeEvent {
    let (asked, queue) = match by.reason {
        WakeupReason::Hints { asked, queue } => (asked, queue),
        _ => Default::default(),
    };
    let mut event = row(profile, &by.event, asked, queue, now);
    match by.reason {
        WakeupReason::Hints { .. } | WakeupReason::Changed => {}
        WakeupReason::Meanwhile => event.event = "WhilePlanned".into(),
        WakeupReason::Timeout => event.event = "UnschedulableTimeout".into(),
        WakeupReason::Activated => event.event = "ForceActivate".into(),
        WakeupReason::Preemption => event.event = "NominationCleared".into(),
    }
    WakeEvent { woke: true, ..event }
}

/// Returns an event as a row; `asked` are the plugins that were asked, `queue` those that returned Queue.
fn row(profile: &Profile, event: &SeenEvent, asked: RefusedBy, queue: RefusedBy, now: Now) -> WakeEvent {
    let verdicts = profile.plugins.iter().enumerate().filter_map(|(i, plugin)| {
        let verdict = match (queue.contains(i), asked.contains(i)) {
            (true, _) => "Queue",
            (false, true) => "Skip",
            (false, false) => return None,
        };
        Some(HintVerdict { plugin: plugin.name().to_owned(), verdict: verdict.to_owned() })
    });
    WakeEvent {
        at: rfc3339(now.wall_at(event.at)),
        event: text(event.kinds),
        object: match &event.object {
            EventObject::Node(name) => name.to_string(),
            EventObject::Pod(key) => key.to_string(),
            EventObject::Other(kind, namespace, name) if namespace.is_empty() => {
                format!("{kind} {name}")
            }
            EventObject::Other(kind, namespace, name) => format!("{kind} {namespace}/{name}"),
            EventObject::Nothing => String::new(),
        },
        verdicts: verdicts.collect(),
        woke: false,
    }
}

fn text(kinds: EventKinds) -> String {
    kinds.names().collect::<Vec<_>>().join(", ")
}

fn skipped(snapshot: &Snapshot) -> Vec<SkippedEvents> {
    let counts = snapshot.queue.events().skipped();
    counts.map(|(kind, count)| SkippedEvents { event: text(kind), count }).collect()
}
