//! Explains a node: which pending pods it takes, which it refuses and why, and which of its free resources nobody can
//! use.
//!
//! Pods are evaluated on a copy of the snapshot with the filters of a cycle and both passes for nominated pods; pods
//! of equal shape are evaluated once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::node_explain::{AcceptedPod, NodeExplanation, RefusedPod, Stranded};
use pellucid_cluster::{PodRecord, Stage};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::question::{Answer, NodeQuestion};
use pellucid_framework::advice::IdlePart;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, Code, Reason, View};
use pellucid_model::quantity::format_amount;
use pellucid_model::{Name, NodeIdx, Now, PodId, PodSpec, cancellation};

use crate::explain::reasons_of;
use crate::meta::of_snapshot;
use crate::requirements::details::Details;
use crate::views::node_views::{free, node_not_found};

/// Number of pods evaluated without `?limit=`.
pub(crate) const PODS_ASKED: usize = 1_000;
/// Largest number of pods evaluated.
pub(crate) const PODS_MOST: usize = 10_000;

/// Finds a node. Fails when there is no node object of that name.
pub(crate) fn find_node(snapshot: &Snapshot, name: &str) -> Result<NodeIdx, ReadError> {
    let found =
        snapshot.cluster.find_node(&Name::new(name)).filter(|node| snapshot.cluster.node(*node).is_some());
    found.ok_or_else(|| node_not_found(name))
}

/// Explains one node. Fails when the node is unknown.
pub(crate) fn node(
    snapshot: &Snapshot,
    name: &str,
    limit: usize,
    now: Now,
) -> Result<NodeExplanation, ReadError> {
    let node = find_node(snapshot, name)?;
    let mut pending: Vec<(PodId, &PodRecord)> =
        snapshot.cluster.pods().filter(|(_, record)| record.stage == Stage::Pending).collect();
    let pending_total = pending.len();
    pending.sort_by(|(_, a), (_, b)| {
        b.pod.priority.cmp(&a.pod.priority).then_with(|| a.pod.key.cmp(&b.pod.key))
    });
    pending.truncate(limit.min(PODS_MOST));
    let truncated = pending.len() < pending_total;
    let mut meta = of_snapshot(snapshot, now);
    (meta.refreshed, meta.truncated) = (true, truncated);
    let mut body = NodeExplanation {
        meta,
        node: name.into(),
        pending_considered: 0,
        pending_total,
        truncated,
        free: free(snapshot, node),
        ..NodeExplanation::default()
    };
    let mut idle = Idle::of(snapshot, node);
    let mut question = NodeQuestion::new(&snapshot.cluster, node);
    let parts = idle_parts(snapshot, node, &pending);
    for (id, record) in pending {
        cancellation::check();
        let Some((number, profile)) = snapshot.profile_of(record) else { continue };
        let Some(answer) = question.ask((number, profile), id) else { continue };
        idle.count(record, &answer);
        let (pod, gang) = (record.pod.key.to_string(), record.pod.member_of().map(ToString::to_string));
        match answer {
            Answer::Takes => body.accepts.push(AcceptedPod { pod, gang }),
            answer => {
                let spec = &record.pod.spec;
                let view = View::new(&snapshot.cluster).for_pod(&record.pod);
                let details = Details { profile, view, spec, now };
                let refused = |cause: Cow<'_, Cause>| refused((pod, gang), &cause, details.of(&cause, node));
                body.refuses.extend(cause_of(&answer).map(refused));
            }
        }
    }
    body.pending_considered = body.accepts.len() + body.refuses.len();
    body.stranded = idle.stranded();
    body.stranded.extend(parts);
    Ok(body)
}

/// Returns what is free of parts of a node that plugins know, such as GPUs, and that none of these pods can use.
fn idle_parts(snapshot: &Snapshot, node: NodeIdx, pending: &[(PodId, &PodRecord)]) -> Vec<Stranded> {
    let (view, mut asked) = (View::new(&snapshot.cluster), BTreeSet::new());
    let mut all = Vec::new();
    for plugin in snapshot.profiles.iter().flat_map(|profile| &profile.plugins) {
        let Some(advice) = plugin.advice().filter(|_| asked.insert(plugin.name())) else { continue };
        let is_enabled = |profile: &Profile| profile.plugins.iter().any(|own| own.name() == plugin.name());
        let enables = |record: &PodRecord| snapshot.profile_of(record).is_some_and(|(_, of)| is_enabled(of));
        let specs = pending.iter().filter(|(_, record)| enables(record));
        let specs: Vec<&PodSpec> = specs.map(|(_, record)| &*record.pod.spec).collect();
        all.extend(advice.idle_parts(view, node, &specs));
    }
    let body = |idle: IdlePart| Stranded {
        text: format!("{} free of {}", format_amount(&idle.resource, idle.amount), idle.part),
        resource: idle.resource.to_string(),
        part: Some(idle.part),
        amount: idle.amount,
        blocked_by: idle.blocked_by,
        pods: idle.pods,
    };
    all.into_iter().map(body).collect()
}

/// Returns why a node refuses a pod, or `None` if it takes it.
pub(crate) fn cause_of(answer: &Answer) -> Option<Cow<'_, Cause>> {
    let of_cycle = |code| {
        let cause = Cause::new("Scheduler", Code::UnschedulableAndUnresolvable, Reason::of(code));
        Some(Cow::Owned(cause))
    };
    match answer {
        Answer::Takes => None,
        Answer::Refuses(cause) => Some(Cow::Borrowed(cause)),
        Answer::LeftOut => of_cycle(ReasonCode::NodeLeftOut),
        Answer::Gone => of_cycle(ReasonCode::NodeGone),
    }
}

fn refused((pod, gang): (String, Option<String>), cause: &Cause, detail: Option<String>) -> RefusedPod {
    RefusedPod {
        pod,
        gang,
        plugin: cause.plugin.into(),
        code: cause.code.as_str().into(),
        reasons: reasons_of(Some(cause)),
        message: cause.message(),
        detail,
    }
}

/// The free amount of a resource, and what becomes of the pods that request it.
#[derive(Default)]
struct Demand {
    free: i64,
    pods: usize,
    is_used: bool,
    /// Number of pods by what blocks them.
    blocked: BTreeMap<String, usize>,
}

/// The free resources of a node. Excludes `pods`, because every pod requests one.
struct Idle(BTreeMap<Name, Demand>);

impl Idle {
    fn of(snapshot: &Snapshot, node: NodeIdx) -> Self {
        let columns = snapshot.cluster.columns();
        let free = columns.offered().map(|r| (columns.name(r), columns.free(node, r)));
        let free = free.filter(|(name, free)| *free > 0 && &**name != "pods");
        Self(free.map(|(name, free)| (name, Demand { free, ..Demand::default() })).collect())
    }

    fn count(&mut self, record: &PodRecord, answer: &Answer) {
        for (name, _) in record.pod.spec.requests.list.named() {
            let Some(asked) = self.0.get_mut(&name) else { continue };
            asked.pods += 1;
            match cause_of(answer) {
                None => asked.is_used = true,
                Some(cause) => asked.add(&cause),
            }
        }
    }

    fn stranded(self) -> Vec<Stranded> {
        let stranded = self.0.into_iter().filter(|(_, asked)| asked.pods > 0 && !asked.is_used);
        let body = |(resource, asked): (Name, Demand)| Stranded {
            amount: asked.free,
            text: format!("{} free", format_amount(&resource, asked.free)),
            blocked_by: asked.blocked_by(&resource),
            pods: asked.pods,
            resource: resource.to_string(),
            part: None,
        };
        stranded.map(body).collect()
    }
}

impl Demand {
    /// Counts what blocks one pod. Several things may block it at once.
    fn add(&mut self, cause: &Cause) {
        for what in cause.reasons.iter().map(dimension).collect::<BTreeSet<String>>() {
            *self.blocked.entry(what).or_default() += 1;
        }
    }

    /// Returns what blocks the most pods. Ties prefer anything but the resource itself.
    fn blocked_by(&self, resource: &str) -> String {
        let most = self.blocked.iter().max_by(|(a, n), (b, m)| {
            let is_other = |what: &str| what != resource;
            n.cmp(m).then_with(|| is_other(a).cmp(&is_other(b))).then_with(|| b.cmp(a))
        });
        most.map(|(what, _)| what.clone()).unwrap_or_default()
    }
}

/// Returns the dimension of a reason: a resource, `pods`, or its code.
fn dimension(reason: &Reason) -> String {
    match (reason.code, &reason.subject) {
        (ReasonCode::InsufficientResource, Some(resource)) => resource.to_string(),
        (ReasonCode::TooManyPods, _) => "pods".into(),
        (code, _) => code.as_str().into(),
    }
}
