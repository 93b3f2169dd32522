//! The queue as a body: each unit in one stage, in the order in which units are taken.

use std::collections::BTreeSet;

use pellucid_api::rest::queue::{AheadRequest, Queue, QueueCounts, QueuedUnit, UnitAhead};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::list::{Facts, List};
use pellucid_model::{GangKey, Now, PodKey, cancellation};
use pellucid_queue::{QueueStage, Unit};
use pellucid_recording::rfc3339;

use crate::facts::{created, facts_of, names_of};
use crate::meta::{backoff_end, of_snapshot, wakes_on};
use crate::not_pending;
use crate::owner::owner;

/// Lists the queue; `asked` is the key of the unit or pod whose position is included. Fails when that key is
/// malformed or not in the queue.
pub(crate) fn queue(
    snapshot: &Snapshot,
    asked: Option<&str>,
    list: &List,
    now: Now,
) -> Result<Queue, ReadError> {
    let asked = asked.map(|key| position(snapshot, key, now)).transpose()?.unwrap_or_default();
    let units = snapshot.queue.units().map(|(_, unit)| unit);
    let mut units: Vec<&Unit> = units.filter(|u| u.stage != QueueStage::InFlight).collect();
    units.sort_by(|a, b| {
        let stages = (a.stage, backoff_end(a)).cmp(&(b.stage, backoff_end(b)));
        stages.then_with(|| a.order(b))
    });
    let stages = units.chunk_by(|a, b| a.stage.as_str() == b.stage.as_str());
    let placed = stages.flat_map(|units| units.iter().copied().enumerate());
    let page = list.page(placed, |(_, unit)| facts(snapshot, unit));
    let rows = page.items.iter().map(|(position, unit)| {
        cancellation::check();
        row(snapshot, unit, *position, now)
    });
    let counts = snapshot.queue.counts();
    Ok(Queue {
        meta: page.meta(of_snapshot(snapshot, now)),
        counts: QueueCounts {
            active: counts.active,
            backoff: counts.backoff,
            error_backoff: counts.error_backoff,
            unschedulable: counts.unschedulable,
            gated: counts.gated,
            in_flight: counts.in_flight,
        },
        count: page.total,
        units: rows.collect(),
        ..asked
    })
}

/// Returns what a list knows of a unit: owner and labels are those of its first pod, reasons those of its last refusal.
fn facts<'s>(snapshot: &'s Snapshot, unit: &'s Unit) -> Facts<'s> {
    let first = unit.pods.first().and_then(|id| Some((*id, snapshot.cluster.pod(*id)?)));
    let Some((id, record)) = first else { return Facts::default() };
    let refusal = snapshot.refusal(id).into_iter().flat_map(|refusal| refusal.reasons());
    let pods = unit.pods.iter().filter_map(|id| snapshot.cluster.pod(*id)).map(|record| &record.pod);
    let gangs: BTreeSet<&GangKey> = pods.clone().filter_map(|pod| pod.member_of()).collect();
    Facts {
        namespace: &unit.key.namespace,
        name: &unit.key.name,
        reasons: refusal.map(|(reason, _)| reason.code.as_str().into()).collect(),
        gangs: gangs.into_iter().map(names_of).collect(),
        stage: unit.stage.as_str(),
        created: pods.clone().map(|pod| created(pod)).min(),
        priority: pods.map(|pod| pod.priority).max(),
        ..facts_of(snapshot, record)
    }
}

/// Returns the position of a unit and the units ahead of it; the rest of the body is empty.
fn position(snapshot: &Snapshot, key: &str, now: Now) -> Result<Queue, ReadError> {
    let Some((namespace, name)) = key.split_once('/').filter(|(ns, n)| !ns.is_empty() && !n.is_empty())
    else {
        let shown: String = key.chars().take(100).collect();
        let message = format!("parameter `position` has the value `{shown}`: it must be namespace/name");
        return Err(ReadError::BadRequest { code: "InvalidParameter", message });
    };
    let key = PodKey::new(namespace, name);
    let of_pod = snapshot.cluster.find_pod(&key).and_then(|pod| snapshot.queue.unit_of(pod));
    let id = of_pod.or_else(|| snapshot.queue.units().find(|(_, unit)| unit.key == key).map(|(id, _)| id));
    let unit = id.and_then(|id| Some((id, snapshot.queue.unit(id)?)));
    let Some((id, unit)) = unit.filter(|(_, unit)| unit.stage != QueueStage::InFlight) else {
        let why =
            not_pending::of(snapshot, &key).map_or_else(String::new, |said| format!(": {}", said.message));
        let message = format!("neither a pod nor a gang {key} is in the queue{why}");
        return Err(ReadError::NotFound { code: "NotInQueue", message });
    };
    let ahead = snapshot.queue.ahead(id, now.monotonic).into_iter().filter_map(|id| snapshot.queue.unit(id));
    let ahead: Vec<UnitAhead> = ahead.map(|unit| unit_ahead(snapshot, unit)).collect();
    Ok(Queue {
        unit: Some(unit.key.to_string()),
        stage: Some(unit.stage.as_str().into()),
        position: Some(ahead.len()),
        position_meaning: Some(meaning(unit).into()),
        ahead: Some(ahead),
        ..Queue::default()
    })
}

/// Explains a position: only active units have a definite turn.
fn meaning(unit: &Unit) -> &'static str {
    match unit.stage {
        QueueStage::Active => "taken after the units ahead",
        QueueStage::Backoff => {
            "taken after the units ahead when the queue is otherwise idle, at the latest in the order of priorities once its \
             backoff ends"
        }
        QueueStage::ErrorBackoff => {
            "not taken before its backoff ends; the units ahead may be taken before that"
        }
        QueueStage::Unschedulable => {
            "waits for an event, not for a turn; the units ahead would be taken first if it were woken now"
        }
        _ => "held before the queue; the units ahead would be taken first if its gates opened now",
    }
}

fn unit_ahead(snapshot: &Snapshot, unit: &Unit) -> UnitAhead {
    let pods = || unit.pods.iter().filter_map(|id| snapshot.cluster.pod(*id)).map(|r| &r.pod);
    let mut request = AheadRequest::default();
    for pod in pods() {
        let list = &pod.spec.requests.list;
        request.cpu = request.cpu.saturating_add(list.milli_cpu);
        request.memory = request.memory.saturating_add(list.memory);
    }
    UnitAhead {
        key: unit.key.to_string(),
        gang: unit.gang.as_ref().map(ToString::to_string),
        stage: unit.stage.as_str().into(),
        priority: pods().map(|pod| pod.priority).max().unwrap_or(0),
        profile: snapshot.profiles[unit.profile].scheduler_name.to_string(),
        size: unit.pods.len(),
        request,
        attempts: unit.attempts,
    }
}

fn row(snapshot: &Snapshot, unit: &Unit, position: usize, now: Now) -> QueuedUnit {
    let profile = &snapshot.profiles[unit.profile];
    let pods = unit.pods.iter().filter_map(|id| snapshot.cluster.pod(*id));
    let mut names: Vec<String> = pods.clone().map(|r| r.pod.key.to_string()).collect();
    names.sort();
    let refusal = unit.pods.first().and_then(|id| snapshot.refusal(*id));
    let message = refusal.map(|refusal| refusal.message().to_string()).unwrap_or_default();
    let refused_by = profile.plugins.iter().enumerate().filter(|(i, _)| unit.is_refused_by(*i));
    QueuedUnit {
        key: unit.key.to_string(),
        group: crate::gangs::of_unit(snapshot, unit),
        owner: pods.clone().next().and_then(|record| owner(&snapshot.cluster, &record.pod)),
        created_at: pods.clone().map(|r| created(&r.pod)).min().map(rfc3339).unwrap_or_default(),
        pods: names,
        stage: unit.stage.as_str().into(),
        position,
        priority: pods.map(|r| r.pod.priority).max().unwrap_or(0),
        profile: profile.scheduler_name.to_string(),
        attempts: unit.attempts,
        queued_at: rfc3339(now.wall_at(unit.queued_at)),
        error: unit.stage == QueueStage::ErrorBackoff,
        backoff_until: backoff_end(unit).map(|at| rfc3339(now.wall_at(at))),
        refused_by: refused_by.map(|(_, p)| p.name().to_string()).collect(),
        wakes_on: wakes_on(snapshot, unit),
        message,
    }
}
