//! Makes a dump from a snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::gangs::Gang;
use pellucid_cluster::marks_of;
use pellucid_cluster::{NominatedBy, PodRecord};
use pellucid_cycle::Snapshot;
use pellucid_model::{CustomObject, Now, Object, ObjectKind, Pod, PodId, PodKey, cancellation};
use pellucid_queue::QueueStage;
use pellucid_recording::{Outcome, Verdict};
use serde_json::Value;

use super::record::{PastVerdict, QueuedUnit, Record, Victims};
use super::state::{EndedPod, KnownGang, KnownNomination, PlacedPod, PluginObject, State, Unreadable};
use super::{Dump, KIND, VERSION};
use crate::gangs::gang_state::is_outdated;
use crate::history::hash_of_outcome;
use crate::meta::unit_of;

/// What [`Dump::of`] makes a dump from.
pub struct Source<'a> {
    /// The snapshot to write.
    pub snapshot: &'a Snapshot,
    /// The configuration in force, in the form in which configuration is read.
    pub configuration: &'a Value,
    /// Whether to omit free text.
    pub redact: bool,
}

impl Dump {
    /// Makes a dump of a snapshot.
    pub fn of(source: &Source<'_>) -> Self {
        let Source { snapshot, configuration, redact } = *source;
        Self {
            kind: KIND.into(),
            version: VERSION,
            redacted: redact,
            generation: snapshot.generation,
            published: snapshot.published.wall_nanos(),
            configuration: configuration.clone(),
            state: state(snapshot, redact),
            record: record(snapshot, redact),
        }
    }
}

fn state(snapshot: &Snapshot, redact: bool) -> State {
    let cluster = &snapshot.cluster;
    let nodes = cluster.by_name().iter().filter_map(|n| cluster.node(*n));
    let mut objects: Vec<Arc<Object>> =
        ObjectKind::ALL.into_iter().flat_map(|kind| cluster.objects().iter(kind)).cloned().collect();
    objects.sort_by_cached_key(|object| (object.kind(), object.key()));
    let mut records: Vec<(PodId, &PodRecord)> = cluster.pods().collect();
    records.sort_by(|(_, a), (_, b)| a.pod.key.cmp(&b.pod.key));
    let pods = records.iter().inspect(|_| cancellation::check()).map(|(_, record)| PlacedPod {
        pod: if redact { redacted(snapshot, &record.pod) } else { record.pod.clone() },
        node: record.node.map(|node| cluster.node_name(node).clone()),
        stage: record.stage.as_str().into(),
        since: record.node.map(|_| nanos(record.since)),
        marks: record.pod.node_name.is_none().then(|| marks_of(&record.holds)).flatten(),
    });
    let nominations = records.iter().filter_map(|(id, record)| {
        let nomination = cluster.nominator().of(*id)?;
        Some(KnownNomination {
            pod: record.pod.key.clone(),
            node: nomination.node.clone(),
            is_ours: nomination.by == NominatedBy::Us,
            since: nomination.since.wall_nanos(),
        })
    });
    let gangs = cluster.gangs().all();
    // A gang with neither pods nor a PodGroup is remembered only for a while.
    let is_defined = |gang: &&&Arc<Gang>| gang.created() > 0 || gang.had_group();
    let ended = gangs.values().flat_map(|gang| {
        gang.finished.iter().map(|(key, finished)| EndedPod {
            key: key.clone(),
            uid: finished.uid.clone(),
            phase: finished.phase,
            gang: gang.key.clone(),
        })
    });
    State {
        seed: cluster.seed(),
        starts: snapshot.starts.clone(),
        shadow_of: snapshot.shadow.as_ref().map(|shadow| shadow.of.clone()),
        is_standby: !snapshot.is_leading,
        nodes: nodes.cloned().collect(),
        objects,
        plugin_objects: plugin_objects(snapshot),
        plugin_time: nanos(cluster.plugin_time()),
        pods: pods.collect(),
        ended: ended.collect(),
        gangs: gangs.values().filter(is_defined).map(|gang| known_gang(gang)).collect(),
        nominations: nominations.collect(),
        unreadable: unreadable(snapshot, redact),
    }
}

fn nanos(wall: Duration) -> u64 {
    Now { wall, ..Now::default() }.wall_nanos()
}

fn plugin_objects(snapshot: &Snapshot) -> Vec<PluginObject> {
    let known = snapshot.cluster.custom_objects();
    let mut all: Vec<&CustomObject> =
        known.kinds().flat_map(|kind| known.iter(kind)).map(|object| &**object).collect();
    all.sort_by(|a, b| (a.kind, &a.namespace, &a.name).cmp(&(b.kind, &b.namespace, &b.name)));
    let written = |object: &CustomObject| PluginObject {
        kind: object.kind.0.qualified.into(),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        uid: object.uid.clone(),
        resource_version: object.resource_version.clone(),
        content: (object.kind.0.encode)(&object.value),
    };
    all.into_iter().inspect(|_| cancellation::check()).map(written).collect()
}

fn known_gang(gang: &Gang) -> KnownGang {
    KnownGang {
        key: gang.key.clone(),
        once_satisfied: gang.history.once_satisfied,
        is_partial: gang.history.is_partial,
        is_overdue: gang.history.is_overdue,
        had_group: gang.had_group(),
    }
}

fn redacted(snapshot: &Snapshot, pod: &Pod) -> Arc<Pod> {
    let labels = snapshot.cluster.selected_keys().project(&pod.labels);
    Arc::new(Pod { labels, scheduled: None, ..pod.clone() })
}

fn unreadable(snapshot: &Snapshot, redact: bool) -> Vec<Unreadable> {
    let text = |text: &Arc<str>| if redact { "".into() } else { text.clone() };
    let objects = snapshot.cluster.quarantined().map(|q| Unreadable {
        kind: q.kind.into(),
        namespace: q.namespace.clone(),
        name: q.name.clone(),
        uid: q.uid.clone(),
        field: q.field.clone(),
        value: text(&q.value),
        problem: text(&q.problem),
    });
    // The cluster stores them sorted by kind, namespace and name.
    objects.collect()
}

fn record(snapshot: &Snapshot, redact: bool) -> Record {
    let pods = snapshot.cluster.pods();
    let verdicts = pods.filter_map(|(id, record)| {
        cancellation::check();
        let verdict = snapshot.verdict(id)?;
        let has_changed = has_changed(snapshot, id, record, &verdict.outcome);
        Some(past_verdict(snapshot, (&record.pod.key, has_changed), &verdict, redact))
    });
    let mut verdicts: Vec<PastVerdict> = verdicts.collect();
    verdicts.sort_by(|a, b| a.pod.cmp(&b.pod));
    let units = snapshot.queue.units().map(|(_, unit)| {
        let pods = unit.pods.iter().filter_map(|id| snapshot.cluster.pod(*id));
        let mut pods: Vec<PodKey> = pods.map(|record| record.pod.key.clone()).collect();
        pods.sort();
        QueuedUnit {
            key: unit.key.clone(),
            is_gang: unit.gang.is_some(),
            pods,
            stage: unit.stage.as_str().into(),
            rank: unit.rank,
            attempts: unit.attempts,
        }
    });
    let mut queue: Vec<QueuedUnit> = units.collect();
    queue.sort_by(|a, b| (&a.key, a.is_gang, &a.pods).cmp(&(&b.key, b.is_gang, &b.pods)));
    let preemptions = snapshot.cluster.preemptions().open().map(|(_, preemption)| Victims {
        preemptor: preemption.preemptor.clone(),
        node: preemption.node.clone(),
        victims: preemption.victims.iter().map(|v| (v.key.clone(), v.state.as_str().into())).collect(),
    });
    let mut preemptions: Vec<Victims> = preemptions.collect();
    preemptions.sort_by(|a, b| a.preemptor.cmp(&b.preemptor));
    Record { cycle: snapshot.cycle, verdicts, queue, preemptions }
}

/// Returns whether a pending pod changed since it was refused: its requests, or what holds its gang back.
fn has_changed(snapshot: &Snapshot, id: PodId, record: &PodRecord, said: &Outcome) -> bool {
    let Some(unit) = unit_of(snapshot, id).filter(|_| record.node.is_none()) else { return false };
    if matches!(said, Outcome::Gated(_)) && unit.stage != QueueStage::Gated {
        return true;
    }
    match (&unit.gang, record.pod.member_of()) {
        (Some(_), Some(gang)) => is_outdated(snapshot, gang, unit.stage == QueueStage::Gated, said),
        _ => unit.refusals > 0 && unit.shape != record.shape,
    }
}

fn past_verdict(
    snapshot: &Snapshot,
    (pod, has_changed): (&PodKey, bool),
    verdict: &Verdict,
    redact: bool,
) -> PastVerdict {
    let (outcome, node, refusal) = match &verdict.outcome {
        Outcome::Placed(placement) => {
            ("Placed", Some(snapshot.cluster.node_name(placement.node).clone()), None)
        }
        Outcome::Refused(refusal) => ("Refused", None, Some(refusal)),
        Outcome::Gated(refusal) => ("Gated", None, Some(refusal)),
    };
    let codes: BTreeSet<&str> =
        refusal.iter().flat_map(|r| r.reasons()).map(|(reason, _)| reason.code.as_str()).collect();
    PastVerdict {
        pod: pod.clone(),
        outcome: outcome.into(),
        node,
        cycle: verdict.cycle,
        attempts: verdict.attempts,
        at: verdict.at,
        stale: verdict.changes != snapshot.changes || has_changed,
        decision_hash: hash_of_outcome(&snapshot.cluster, (&pod.namespace, &pod.name), &verdict.outcome),
        codes: codes.into_iter().map(str::to_owned).collect(),
        message: refusal.filter(|_| !redact).map_or_else(String::new, |r| r.message().to_string()),
    }
}
