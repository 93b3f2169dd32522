//! The pending pods and what keeps each of them pending.
//!
//! Invariant: they are the pods that the API server shows as Pending and without a node. Each pod counts
//! once, under the key reason of its verdict (`verdict`). A pod that was not refused has a reason too (`NotTried`,
//! `Placed`, `WaitingAtPermit`).

use pellucid_api::reason::{ReasonCode, Resolver};
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_model::PodId;
use pellucid_model::pod::PodPhase;
use pellucid_queue::{QueueStage, UnitId};

use crate::verdict::{PodVerdict, Verdicts};

/// A pending pod and what keeps it pending.
pub struct Waiting<'r> {
    /// Code of its first reason.
    pub code: ReasonCode,
    /// Subject of the reason; may be empty.
    pub(super) subject: &'r str,
    pub(super) resolver: Resolver,
    pub(super) plugin: &'static str,
    pub(super) key: (&'r str, &'r str),
    /// `spec.schedulerName` of the pod.
    pub profile: &'r str,
    pub(super) stage: &'static str,
    pub(super) unit: Option<UnitId>,
    /// Number of nodes that refuse the pod for this reason.
    pub(super) nodes: usize,
    pub(super) outlook: &'r str,
    /// The pod; `None` for one that cannot be read.
    pub(super) record: Option<&'r PodRecord>,
}

/// Iterates over all pending pods of our profiles, including those that cannot be read.
pub fn waiting<'r>(snapshot: &'r Snapshot, verdicts: &'r Verdicts) -> impl Iterator<Item = Waiting<'r>> {
    let known = snapshot.cluster.pods().filter(|(_, record)| waits(snapshot, record));
    let known = known.map(|(id, record)| of_pod(snapshot, id, record, verdicts.of(id)));
    let unreadable = snapshot.cluster.quarantined().filter(|q| is_pending(snapshot, q)).map(of_quarantined);
    known.chain(unreadable)
}

/// Returns whether the API server shows a pod as Pending and without a node. A pod that we placed counts until the
/// watch reports its Binding.
fn waits(snapshot: &Snapshot, record: &PodRecord) -> bool {
    let pod = &record.pod;
    let is_unbound = record.stage != Stage::Bound && pod.node_name.is_none();
    let is_pending = pod.phase == PodPhase::Pending && !pod.deleting;
    is_unbound && is_pending && snapshot.cluster.is_ours(&pod.scheduler_name)
}

fn is_pending(snapshot: &Snapshot, object: &Quarantined) -> bool {
    let is_ours = object.scheduler_name.as_ref().is_some_and(|name| snapshot.cluster.is_ours(name));
    object.kind == "Pod" && is_ours && !object.is_bound
}

fn of_pod<'r>(
    snapshot: &'r Snapshot,
    id: PodId,
    record: &'r PodRecord,
    verdict: Option<&'r PodVerdict>,
) -> Waiting<'r> {
    let unit = snapshot.queue.unit_of(id);
    let at_permit = snapshot.permit_waits.get(&id);
    let code = match (record.stage, verdict) {
        _ if at_permit.is_some() => ReasonCode::WaitingAtPermit,
        (Stage::Waiting, _) => ReasonCode::WaitingAtPermit,
        (stage, _) if stage.is_placed() => ReasonCode::Placed,
        (_, Some(verdict)) => verdict.key.code,
        _ => ReasonCode::NotTried,
    };
    let verdict = verdict.filter(|verdict| verdict.key.code == code);
    let plugin = verdict.map_or(code.entry().plugin, |verdict| verdict.plugin);
    let subject = verdict.and_then(|verdict| verdict.key.subject.as_deref());
    Waiting {
        code,
        subject: subject.unwrap_or_default(),
        resolver: verdict.map_or(code.entry().resolver, |verdict| verdict.resolver),
        plugin: at_permit.map_or(plugin, |wait| wait.plugin),
        key: (&record.pod.key.namespace, &record.pod.key.name),
        profile: &record.pod.scheduler_name,
        stage: match unit.and_then(|id| snapshot.queue.unit(id)) {
            Some(unit) => unit.stage.as_str(),
            None => QueueStage::InFlight.as_str(),
        },
        unit,
        nodes: verdict.map_or(0, |verdict| verdict.nodes),
        outlook: verdict.and_then(|verdict| verdict.outlook.as_ref()).map_or("", |outlook| &outlook.code),
        record: Some(record),
    }
}

fn of_quarantined(object: &Quarantined) -> Waiting<'_> {
    let code = ReasonCode::Unreadable;
    Waiting {
        code,
        subject: &object.field,
        resolver: code.entry().resolver,
        plugin: code.entry().plugin,
        key: (&object.namespace, &object.name),
        profile: object.scheduler_name.as_deref().unwrap_or_default(),
        stage: "quarantined",
        unit: None,
        nodes: 0,
        outlook: "",
        record: None,
    }
}

/// Counts the pods of the queue by stage; every member of a gang counts. Pods that are placed but not confirmed have
/// no stage.
pub fn pods_by_stage(snapshot: &Snapshot) -> [(&'static str, usize); 4] {
    let mut counts = ["active", "backoff", "unschedulable", "gated"].map(|stage| (stage, 0));
    for (_, unit) in snapshot.queue.units() {
        if let Some((_, n)) = counts.iter_mut().find(|(stage, _)| *stage == unit.stage.as_str()) {
            *n += unit.pods.len();
        }
    }
    counts
}
