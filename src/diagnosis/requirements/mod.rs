//! Evaluates which of a pod's requirements every node fails, and renders the exhaustive part of an explanation.
//!
//! - `terms`: which terms of the pod those requirements are, and what is there instead
//! - `details`: what plugins say of a node, with its numbers
//! - `nearest`: nodes ranked by what they fail
//! - `outlook`: whether the pod fits now, later or never
//! - `victims`: which pods would have to leave a node
//!
//! Not here: what follows from it for the pod as a whole (`verdict`).

pub(crate) mod details;
pub(crate) mod nearest;
pub(crate) mod outlook;
pub(crate) mod terms;
pub(crate) mod victims;

use std::collections::{BTreeMap, BTreeSet};

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::suggestions::{
    CodeWeight, Exhaustive, FailedRequirement, MaskGroup, NodeRequirements,
};
use pellucid_cluster::{Cluster, PodRecord};
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::exhaustive::{Masks, Requirement, masks_of_pod_on};
use pellucid_cycle::what_if::question::without_place;
use pellucid_framework::View;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::profile::Profile;
use pellucid_model::{Name, NodeIdx, Now, PodId, PodKey, PodSpec};

use crate::explain::reasons_of;
use crate::not_pending;
use details::Details;
use nearest::order;

/// A pod of a snapshot and what every node fails of its requirements. A placed pod is evaluated as if it had no
/// place.
pub(crate) struct PodRequirements<'r> {
    pub(crate) id: PodId,
    pub(crate) record: &'r PodRecord,
    pub(crate) profile: &'r Profile,
    /// The state in which the pod was evaluated.
    pub(crate) cluster: Cluster,
    pub(crate) masks: Masks,
}

impl PodRequirements<'_> {
    /// Returns whether every node fails something that it fails whichever pods leave.
    pub(crate) fn is_closed(&self) -> bool {
        self.masks.pod.is_none() && self.cluster.present().iter().all(|node| self.masks.fixed_of(*node) != 0)
    }

    /// Returns what to ask plugins about single nodes, for a reader at this time.
    pub(crate) fn details(&self, now: Now) -> Details<'_> {
        let pod = &self.record.pod;
        let view = View::new(&self.cluster).for_pod(pod);
        Details { profile: self.profile, view, spec: &pod.spec, now }
    }
}

/// Finds a pod by name and evaluates it. Fails when the pod is unknown or not ours to place.
pub(crate) fn asked_by_name<'r>(
    snapshot: &'r Snapshot,
    key: &PodKey,
) -> Result<PodRequirements<'r>, ReadError> {
    let id = snapshot.cluster.find_pod(key);
    id.and_then(|id| ask(snapshot, id)).ok_or_else(|| not_pending::error(snapshot, key))
}

/// Evaluates a pod. Returns `None` when the pod is unknown or not ours to place.
pub(crate) fn ask(snapshot: &Snapshot, id: PodId) -> Option<PodRequirements<'_>> {
    ask_on(snapshot, without_place(&snapshot.cluster, id), id)
}

/// Evaluates a pod of a snapshot on another state, in which it has no place.
pub(crate) fn ask_on(snapshot: &Snapshot, mut cluster: Cluster, id: PodId) -> Option<PodRequirements<'_>> {
    let record = snapshot.cluster.pod(id)?;
    let (_, profile) = snapshot.profile_of(record)?;
    let nodes = cluster.present().to_vec();
    let masks = masks_of_pod_on(&mut cluster, profile, (id, &record.pod.spec), &nodes);
    Some(PodRequirements { id, record, profile, cluster, masks })
}

pub(crate) fn failed(requirement: &Requirement, is_static: bool) -> FailedRequirement {
    FailedRequirement {
        code: requirement.reason.code.as_str().into(),
        plugin: requirement.plugin.into(),
        subject: requirement.reason.subject.as_ref().map(ToString::to_string),
        message: requirement.reason.message(),
        is_static,
    }
}

/// Returns the requirements of a mask as bodies; `fixed` has those that removing pods cannot satisfy.
pub(crate) fn all_failed(masks: &Masks, mask: u64, fixed: u64) -> Vec<FailedRequirement> {
    let mut all: Vec<_> =
        masks.requirements(mask).map(|(bit, r)| failed(r, fixed & (1 << bit) != 0)).collect();
    all.sort();
    all
}

/// Nodes by what they fail, and by the part of it that removing pods cannot satisfy.
type Groups = BTreeMap<(u64, u64), Vec<NodeIdx>>;

/// Explains every node for a pod, for a reader at this time; lists the first `listed` by name individually.
pub(crate) fn exhaustive(
    snapshot: &Snapshot,
    asked: &PodRequirements<'_>,
    listed: usize,
    now: Now,
) -> Exhaustive {
    let (masks, cluster) = (&asked.masks, &asked.cluster);
    let total_nodes = cluster.present().len();
    let mut body = Exhaustive {
        total_nodes,
        pod_reasons: reasons_of(masks.pod.as_ref()),
        truncated: masks.truncated || listed < total_nodes,
        ..Exhaustive::default()
    };
    if masks.pod.is_some() {
        return body;
    }
    let mut groups: Groups = BTreeMap::new();
    for node in cluster.by_name() {
        groups.entry((masks.of(*node), masks.fixed_of(*node))).or_default().push(*node);
    }
    body.feasible_nodes = groups.remove(&(0, 0)).map_or(0, |nodes| nodes.len());
    body.codes = codes(snapshot, asked, &groups);
    let group = |((mask, fixed), nodes): (&(u64, u64), &Vec<NodeIdx>)| MaskGroup {
        failed: all_failed(masks, *mask, *fixed),
        count: nodes.len(),
        example_nodes: nodes.iter().take(3).map(|n| cluster.node_name(*n).to_string()).collect(),
    };
    body.groups = groups.iter().map(group).collect();
    body.groups.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.failed.cmp(&b.failed)));
    let one = |node: &NodeIdx| {
        let name = cluster.node_name(*node).to_string();
        let failed = all_failed(masks, masks.of(*node), masks.fixed_of(*node));
        let details = asked.details(now).of_failed(masks.requirements(masks.of(*node)), *node);
        (name, NodeRequirements { failed, details })
    };
    let (requirements, is_cut) = terms::of(asked, &order(asked));
    (body.requirements, body.truncated) = (requirements, body.truncated || is_cut);
    body.nodes = cluster.by_name().iter().take(listed).map(one).collect();
    body
}

fn codes(snapshot: &Snapshot, asked: &PodRequirements<'_>, groups: &Groups) -> BTreeMap<String, CodeWeight> {
    let in_gang = asked.record.pod.member_of().is_some();
    let mut codes: BTreeMap<String, CodeWeight> = BTreeMap::new();
    for ((mask, _), nodes) in groups {
        let of_mask: BTreeSet<ReasonCode> =
            asked.masks.requirements(*mask).map(|(_, r)| r.reason.code).collect();
        let is_sole = of_mask.len() == 1;
        for code in of_mask {
            let entry = codes.entry(code.as_str().into()).or_default();
            entry.nodes_blocked += nodes.len();
            if is_sole {
                entry.sole_blocker_nodes += nodes.len();
            }
        }
    }
    if in_gang {
        for (code, weight) in &mut codes {
            weight.sole_blocker_slots = Some(sole_slots(snapshot, asked, groups, code));
        }
    }
    codes
}

/// Returns how many copies of the pod would fit on the nodes that fail only `code` if it were ignored. A resource
/// that a node lacks does not limit the number.
fn sole_slots(snapshot: &Snapshot, asked: &PodRequirements<'_>, groups: &Groups, code: &str) -> usize {
    let of_code = |mask: u64| asked.masks.requirements(mask).all(|(_, r)| r.reason.code.as_str() == code);
    let nodes = groups.iter().filter(|((mask, _), _)| of_code(*mask)).flat_map(|(_, nodes)| nodes);
    let spec = &asked.record.pod.spec;
    let columns = snapshot.cluster.columns();
    let lacking = |mask: u64| -> Vec<Name> {
        asked.masks.requirements(mask).filter_map(|(_, r)| r.reason.subject.clone()).collect()
    };
    let slots = nodes.map(|node| {
        let lacking = lacking(asked.masks.of(*node));
        let counted = spec.requests.list.named().filter(|(name, _)| !lacking.contains(name));
        let fits = counted.filter_map(|(name, amount)| {
            let free = columns.free(*node, columns.find(&name)?);
            usize::try_from(free / amount).ok()
        });
        fits.min().unwrap_or(1)
    });
    slots.sum()
}

/// Returns the requested and the available amount of a resource that a node lacks. What is promised to nominated pods
/// is not available.
pub(crate) fn missing(
    asked: &PodRequirements<'_>,
    node: NodeIdx,
    requirement: &Requirement,
) -> Option<(i64, i64)> {
    let name = of_resource(requirement)?;
    let wanted = requested(&asked.record.pod.spec, name)?;
    let columns = asked.cluster.columns();
    let free = columns.find(name).map_or(0, |resource| columns.free(node, resource));
    let promised = asked.masks.promised.get(&node).into_iter().flatten();
    let promised = promised.filter_map(|id| requested(&asked.cluster.pod(*id)?.pod.spec, name));
    Some((wanted, free.saturating_sub(promised.sum())))
}

/// Returns the resource of which a node that fails the requirement has too little.
pub(crate) fn of_resource(requirement: &Requirement) -> Option<&Name> {
    let is_it = requirement.reason.code == ReasonCode::InsufficientResource;
    requirement.reason.subject.as_ref().filter(|_| is_it)
}

/// Returns how much of a resource a pod requests, if any.
pub(crate) fn requested(spec: &PodSpec, resource: &Name) -> Option<i64> {
    Some(spec.requests.list.amount(resource)).filter(|amount| *amount > 0)
}
