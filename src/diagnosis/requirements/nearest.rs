//! Ranks nodes by how far each is from taking a pod. Every answer about nearest nodes uses this order: `nearest` of
//! an explanation, its summary, the read `/nearest`, and the search for fixes.
//!
//! Every plugin evaluates every node of a published snapshot, with the room promised to nominated pods taken. A cycle
//! stops at the first plugin that refuses a node, and then the largest node group is often the least informative one.
//!
//! The distance of a node sums over the requirements it fails: 10 for a mismatch of node affinity or node name, else
//! 1 if removing pods helps, else 2; plus the missing fraction of a requested resource. Among nodes at equal
//! distance, those where removing pods helps come first, nodes that fail the same requirements are adjacent, and
//! names decide the rest.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::explain::NodeNote;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_api::rest::suggestions::{NearNode, Nearest};
use pellucid_cluster::ResourceIdx;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_cycle::what_if::simulation::Simulation;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::{Cause, Code};
use pellucid_model::collections::FxHashMap;
use pellucid_model::{Name, NodeIdx, Now, PodKey};
use pellucid_recording::{Group, GroupMeasure};

use crate::called::called;
use crate::explain::{reasons_of, shortfall};
use crate::meta::of_snapshot;
use crate::requirements::terms;
use crate::requirements::victims::victims_on;
use crate::requirements::{PodRequirements, all_failed, asked_by_name, missing, of_resource, requested};

/// A node that refuses a pod, with its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Near {
    pub(crate) node: NodeIdx,
    /// Bits of the failed requirements.
    pub(crate) mask: u64,
    /// Bits of `mask` that removing pods cannot satisfy.
    pub(crate) fixed: u64,
    /// In thousandths.
    distance: u64,
}

impl Near {
    /// Returns whether removing pods may satisfy all that the node fails.
    pub(crate) fn is_free(&self) -> bool {
        self.fixed == 0
    }

    /// Returns what nodes are ordered by in the first place: those that removing pods helps come first among equals.
    fn rank(&self) -> (u64, bool) {
        (self.distance, self.fixed != 0)
    }

    /// Returns the key shared by nodes that are equally far for the same requirements.
    pub(crate) fn kind(&self) -> (u64, u64, u64) {
        (self.distance, self.mask, self.fixed)
    }
}

/// Returns the base distance of a failed requirement, in thousandths.
fn weight(code: ReasonCode, is_fixed: bool) -> u64 {
    match code {
        ReasonCode::NodeAffinityMismatch
        | ReasonCode::NodeNameMismatch
        | ReasonCode::AddedAffinityMismatch => 10_000,
        _ if is_fixed => 2_000,
        _ => 1_000,
    }
}

/// Returns the fraction of a request that is not available, in thousandths.
fn missing_part((requested, available): (i64, i64)) -> u64 {
    let lacking = requested.saturating_sub(available).max(0);
    match lacking.checked_mul(1000) {
        Some(thousandths) => (thousandths / requested.max(1)).unsigned_abs(),
        // Wide numbers only where they are needed: this is asked of every node.
        None => {
            let lacking = (i128::from(requested) - i128::from(available)).max(0) * 1000;
            u64::try_from(lacking / i128::from(requested.max(1))).unwrap_or(u64::MAX / 256)
        }
    }
}

/// The requested amount of a resource, and its column if it has one.
type Requested = (i64, Option<ResourceIdx>);

/// What the distances of nodes are made of, looked up once for all nodes.
struct Distances<'a> {
    asked: &'a PodRequirements<'a>,
    /// By bit, the requirement, and what it is about if that is a resource.
    of: Vec<(&'a Requirement, Option<Requested>)>,
}

impl<'a> Distances<'a> {
    fn new(asked: &'a PodRequirements<'a>) -> Self {
        let columns = asked.cluster.columns();
        let resource = |requirement: &Requirement| {
            let name = of_resource(requirement)?;
            Some((requested(&asked.record.pod.spec, name)?, columns.find(name)))
        };
        let all = asked.masks.requirements.iter();
        Self { asked, of: all.map(|requirement| (requirement, resource(requirement))).collect() }
    }

    fn near(&self, node: NodeIdx) -> Near {
        let (mask, fixed) = (self.asked.masks.of(node), self.asked.masks.fixed_of(node));
        let mut distance = 0;
        let mut left = mask;
        while left != 0 {
            let bit = left.trailing_zeros();
            left &= left - 1;
            let Some((requirement, resource)) = self.of.get(bit as usize) else { break };
            distance += weight(requirement.reason.code, fixed & (1 << bit) != 0);
            distance += resource.map_or(0, |of| self.missing_part(node, requirement, of));
        }
        Near { node, mask, fixed, distance }
    }

    fn missing_part(&self, node: NodeIdx, requirement: &Requirement, (requested, column): Requested) -> u64 {
        if self.asked.masks.promised.contains_key(&node) {
            return missing(self.asked, node, requirement).map_or(0, missing_part);
        }
        missing_part((requested, column.map_or(0, |column| self.asked.cluster.columns().free(node, column))))
    }

    /// Returns the nodes that refuse the pod, by name.
    fn refusing(&self) -> impl Iterator<Item = Near> {
        let refusing = self.asked.cluster.by_name().iter().filter(|node| self.asked.masks.of(**node) != 0);
        refusing.map(|node| self.near(*node))
    }
}

/// Returns the nodes that refuse a pod, the nearest first.
pub(crate) fn order(asked: &PodRequirements<'_>) -> Vec<Near> {
    let mut all: Vec<Near> = Distances::new(asked).refusing().collect();
    let mut first: FxHashMap<_, usize> = FxHashMap::default();
    for (at, near) in all.iter().enumerate() {
        first.entry(near.kind()).or_insert(at);
    }
    // The sort is stable, so equal nodes stay in name order.
    all.sort_by_cached_key(|near| (near.rank(), first[&near.kind()]));
    all
}

/// Returns the first nodes of the order that are equally far for the same requirements.
fn first_of_order(asked: &PodRequirements<'_>) -> Vec<Near> {
    let mut first: Vec<Near> = Vec::new();
    for near in Distances::new(asked).refusing() {
        match first.first() {
            // Of nodes with equal ranks, the first by name is the first of the order.
            Some(best)
                if best.rank() < near.rank() || best.rank() == near.rank() && best.kind() != near.kind() => {}
            Some(best) if best.kind() == near.kind() => first.push(near),
            _ => first = vec![near],
        }
    }
    first
}

/// The nearest nodes that are equally far for the same requirements, as a node group with everything they fail, and
/// what plugins say of its example nodes.
#[derive(Clone)]
pub(crate) struct NearestNodes {
    pub(crate) group: Group,
    /// The plugin that gives each reason of the group.
    pub(crate) plugins: Vec<&'static str>,
    /// Of each reason, whether it stands whichever pods leave.
    pub(crate) is_fixed: Vec<bool>,
    /// The first of the nodes by name.
    pub(crate) node: NodeIdx,
    pub(crate) details: Vec<NodeNote>,
    /// What the pod requires and nodes do not have, term by term.
    pub(crate) requirements: Vec<RequirementDetail>,
    /// Whether there are more requirements than are told.
    pub(crate) is_cut: bool,
}

/// Returns the nearest nodes, or `None` when the pod is refused as a whole or fits on every node.
pub(crate) fn nearest_of(
    asked: &PodRequirements<'_>,
    with_requirements: bool,
    now: Now,
) -> Option<NearestNodes> {
    if asked.masks.pod.is_some() {
        return None;
    }
    let order = if with_requirements { order(asked) } else { first_of_order(asked) };
    let failed = failed_in_order(asked, order.first()?);
    let group = group(asked, &order, &failed)?;
    let is_fixed = failed.iter().map(|(bit, _)| order[0].fixed & (1 << bit) != 0).collect();
    let plugins = failed.iter().map(|(_, requirement)| requirement.plugin).collect();
    let mut details = Vec::new();
    for near in &order[..group.examples.len()] {
        let node = name(asked, near.node).to_string();
        let texts = asked.details(now).of_failed(asked.masks.requirements(near.mask), near.node);
        details.extend(texts.into_iter().map(|text| NodeNote { node: node.clone(), text }));
    }
    let (requirements, is_cut) =
        if with_requirements { terms::of(asked, &order) } else { (Vec::new(), false) };
    let is_cut = is_cut || asked.masks.truncated;
    let node = order[0].node;
    Some(NearestNodes { group, plugins, is_fixed, node, details, requirements, is_cut })
}

/// Returns what a node fails, with the bits, in the order in which a cycle runs the filters.
fn failed_in_order<'a>(asked: &'a PodRequirements<'_>, near: &Near) -> Vec<(usize, &'a Requirement)> {
    let place = |plugin: &str| asked.profile.filter.iter().position(|e| e.plugin.name() == plugin);
    let mut failed: Vec<(usize, &Requirement)> = asked.masks.requirements(near.mask).collect();
    failed.sort_by(|(_, a), (_, b)| (place(a.plugin), &a.reason).cmp(&(place(b.plugin), &b.reason)));
    failed
}

fn group(asked: &PodRequirements<'_>, order: &[Near], failed: &[(usize, &Requirement)]) -> Option<Group> {
    let first = order.first()?;
    let same: Vec<NodeIdx> =
        order.iter().take_while(|near| near.kind() == first.kind()).map(|near| near.node).collect();
    let best = |(_, requirement): &(usize, &Requirement)| {
        let free = |node: &NodeIdx| Some((missing(asked, *node, requirement)?.1, *node));
        // The first of equals by name.
        let best =
            same.iter().filter_map(free).reduce(|best, other| if other.0 > best.0 { other } else { best });
        measure(asked, best?.1, requirement)
    };
    let code = if first.fixed != 0 { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable };
    Some(Group {
        cause: Cause {
            plugin: failed.first()?.1.plugin,
            code,
            reasons: failed.iter().map(|(_, requirement)| requirement.reason.clone()).collect(),
        },
        count: same.len(),
        examples: same.iter().take(3).map(|node| name(asked, *node).clone()).collect(),
        measures: failed.iter().filter_map(best).collect(),
    })
}

/// Returns what a node lacks, if the requirement is a resource.
fn measure(asked: &PodRequirements<'_>, node: NodeIdx, requirement: &Requirement) -> Option<GroupMeasure> {
    let (requested, available) = missing(asked, node, requirement)?;
    let resource = requirement.reason.subject.clone()?;
    Some(GroupMeasure { resource, requested, available, best_node: name(asked, node).clone() })
}

fn name<'a>(asked: &'a PodRequirements<'_>, node: NodeIdx) -> &'a Name {
    asked.cluster.node_name(node)
}

/// Lists the `k` nodes nearest to taking a pod. Fails when the pod is unknown or not ours to place.
pub(crate) fn list(snapshot: &Snapshot, key: &PodKey, k: usize, now: Now) -> Result<Nearest, ReadError> {
    let asked = asked_by_name(snapshot, key)?;
    let mut body = Nearest {
        meta: of_snapshot(snapshot, now),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        pod_reasons: reasons_of(asked.masks.pod.as_ref()),
        ..Nearest::default()
    };
    if asked.masks.pod.is_some() {
        return Ok(body);
    }
    let order = order(&asked);
    body.feasible_nodes = asked.cluster.present().len() - order.len();
    body.nodes = order.iter().take(k).map(|near| near_node(snapshot, &asked, near, now)).collect();
    Ok(body)
}

fn near_node(snapshot: &Snapshot, asked: &PodRequirements<'_>, near: &Near, now: Now) -> NearNode {
    let failed = asked.masks.requirements(near.mask);
    let measures = failed.filter_map(|(_, requirement)| measure(asked, near.node, requirement));
    NearNode {
        node: name(asked, near.node).to_string(),
        distance: near.distance as f64 / 1000.0,
        failed: all_failed(&asked.masks, near.mask, near.fixed),
        shortfalls: measures.map(|measure| shortfall(&measure)).collect(),
        details: asked.details(now).of_failed(asked.masks.requirements(near.mask), near.node),
        would_free: if near.fixed != 0 { None } else { would_free(snapshot, asked, near.node, now) },
    }
}

/// Returns the pods whose removal makes the node take the pod, verified on a copy of the state.
fn would_free(
    snapshot: &Snapshot,
    asked: &PodRequirements<'_>,
    node: NodeIdx,
    now: Now,
) -> Option<Vec<String>> {
    let victims = victims_on(asked, node)?;
    let mut simulation = Simulation::without(snapshot, asked.id, now);
    for key in &victims {
        simulation.edit(&Edit::DeletePod(key.clone())).ok()?;
    }
    simulation.place_copy(&asked.record.pod)?;
    Some(victims.iter().map(|key| called(&snapshot.cluster, key)).collect())
}
