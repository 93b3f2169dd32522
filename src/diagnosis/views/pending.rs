//! Counts pending pods by what keeps them pending.
//!
//! Invariant: the rows add up to the pods that the API server shows as Pending and without a node. Each pod counts
//! once, under the key reason of its verdict (`verdict`). A pod that was not refused has a reason too (`NotTried`,
//! `Placed`, `WaitingAtPermit`).

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::reason::{ReasonCode, Resolver};
use pellucid_api::rest::pending::{PendingRow, PendingSummary};
use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_framework::endpoint::ReadError;
use pellucid_model::pod::PodPhase;
use pellucid_model::{Now, PodId};
use pellucid_queue::{QueueStage, UnitId};

use crate::meta::of_snapshot;
use crate::verdict::{PodVerdict, Verdicts, verdicts};

/// A pending pod and what keeps it pending.
pub struct Waiting<'r> {
    /// Code of its first reason.
    pub code: ReasonCode,
    /// Subject of the reason; may be empty.
    subject: String,
    resolver: Resolver,
    plugin: &'static str,
    namespace: &'r str,
    /// `spec.schedulerName` of the pod.
    pub profile: &'r str,
    stage: &'static str,
    gang: Option<String>,
    priority: i32,
    unit: Option<UnitId>,
    /// Number of nodes that refuse the pod for this reason.
    nodes: usize,
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
    verdict: Option<&PodVerdict>,
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
        subject: subject.unwrap_or_default().to_owned(),
        resolver: verdict.map_or(code.entry().resolver, |verdict| verdict.resolver),
        plugin: at_permit.map_or(plugin, |wait| wait.plugin),
        namespace: &record.pod.key.namespace,
        profile: &record.pod.scheduler_name,
        stage: match unit.and_then(|id| snapshot.queue.unit(id)) {
            Some(unit) => unit.stage.as_str(),
            None => QueueStage::InFlight.as_str(),
        },
        gang: record.pod.member_of().map(ToString::to_string),
        priority: record.pod.priority,
        unit,
        nodes: verdict.map_or(0, |verdict| verdict.nodes),
    }
}

fn of_quarantined(object: &Quarantined) -> Waiting<'_> {
    let code = ReasonCode::Unreadable;
    Waiting {
        code,
        subject: object.field.to_string(),
        resolver: code.entry().resolver,
        plugin: code.entry().plugin,
        namespace: &object.namespace,
        profile: object.scheduler_name.as_deref().unwrap_or_default(),
        stage: "quarantined",
        gang: None,
        priority: 0,
        unit: None,
        nodes: 0,
    }
}

const DIMENSIONS: [&str; 9] =
    ["code", "plugin", "resource", "resolver", "namespace", "profile", "stage", "gang", "priority"];

impl Waiting<'_> {
    /// Returns the row of the pod, without counts.
    fn row(&self, by: &[&str]) -> PendingRow {
        let is_asked = |name: &str| by.contains(&name);
        let text = |name: &str, value: &str| is_asked(name).then(|| value.to_owned());
        // Subjects of other reasons are texts and lists of unbounded size.
        let resource = if self.code == ReasonCode::InsufficientResource { &*self.subject } else { "" };
        PendingRow {
            code: text("code", self.code.as_str()),
            plugin: text("plugin", self.plugin),
            resource: text("resource", resource),
            resolver: text("resolver", self.resolver.as_str()),
            namespace: text("namespace", self.namespace),
            profile: text("profile", self.profile),
            stage: text("stage", self.stage),
            gang: text("gang", self.gang.as_deref().unwrap_or_default()),
            priority: is_asked("priority").then_some(self.priority),
            ..PendingRow::default()
        }
    }
}

/// Counts pending pods by a comma-separated list of dimensions, by default `code`. Fails for an unknown dimension.
pub(crate) fn summary(snapshot: &Snapshot, by: Option<&str>, now: Now) -> Result<PendingSummary, ReadError> {
    let by = dimensions(by.unwrap_or("code"))?;
    let mut rows: BTreeMap<PendingRow, (PendingRow, BTreeSet<UnitId>)> = BTreeMap::new();
    let mut total_pending = 0;
    let verdicts = verdicts(snapshot, now);
    for pod in waiting(snapshot, &verdicts) {
        let key = pod.row(&by);
        let (row, units) = rows.entry(key.clone()).or_insert_with(|| (key, BTreeSet::new()));
        total_pending += 1;
        row.pods += 1;
        // A pod without a unit counts as a unit of its own.
        row.units += usize::from(pod.unit.is_none_or(|unit| units.insert(unit)));
        row.nodes = row.nodes.max(pod.nodes);
        row.occurrences += pod.nodes;
    }
    let mut rows: Vec<PendingRow> = rows.into_values().map(|(row, _)| row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.pods));
    let by = by.into_iter().map(str::to_owned).collect();
    let mut meta = of_snapshot(snapshot, now);
    meta.truncated = verdicts.truncated;
    Ok(PendingSummary { meta, by, total_pending, rows })
}

fn dimensions(by: &str) -> Result<Vec<&str>, ReadError> {
    let bad = |problem: String| {
        let message = format!("parameter `by` {problem}; known: {}", DIMENSIONS.join(", "));
        ReadError::BadRequest { code: "UnknownDimension", message }
    };
    let mut all = Vec::new();
    for name in by.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !DIMENSIONS.contains(&name) {
            let shown: String = name.chars().take(100).collect();
            return Err(bad(format!("names the dimension `{shown}`, which is not known")));
        }
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if all.is_empty() {
        return Err(bad(format!("has the value `{by}`: it names no dimension")));
    }
    Ok(all)
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
