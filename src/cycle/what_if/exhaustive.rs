//! Runs every filter on every node, where a cycle stops at the first refusal.
//!
//! For explanations on a published snapshot, not for decisions. Returns all requirements that each node fails, as one
//! word of bits per node.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::Cluster;
use pellucid_framework::plugin::Nodes;
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, Code, NodeOverride, Reason, View};
use pellucid_model::cause::{CauseId, Causes};
use pellucid_model::collections::FxHashMap;
use pellucid_model::taint::{TaintEffect, tolerated};
use pellucid_model::time::NoProbe;
use pellucid_model::{GangKey, NodeIdx, PodId, PodSpec, cancellation};

use crate::attempt::alignment::Alignment;
use crate::attempt::chain::{PluginTally, places, prepare};
use crate::attempt::node_result_cache::CycleContext;
use crate::attempt::nominations::nominees;
use crate::attempt::overrides::{leave, of_pod};
use crate::attempt::reserve::place_nominee;

/// Maximum number of distinct requirements. Further ones share the last bit.
const MAX_BITS: usize = 64;

/// A requirement of a pod that some node fails: one reason of one plugin. Each untolerated taint is one requirement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// Name of the plugin.
    pub plugin: &'static str,
    /// The reason for which the plugin refuses a node.
    pub reason: Reason,
}

/// The requirements that every node fails.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    /// The requirements, indexed by bit.
    pub requirements: Vec<Requirement>,
    /// Per node slot, one bit for each requirement that the node fails; 0 if the pod fits there.
    pub failed: Vec<u64>,
    /// The part of `failed` that removing pods could not change.
    pub fixed: Vec<u64>,
    /// Why the pod is refused as a whole; if set, no node was evaluated.
    pub pod: Option<Cause>,
    /// Per node, the nominated pods that are not there yet and whose room counts against the pod.
    pub promised: FxHashMap<NodeIdx, Vec<PodId>>,
    /// Whether there were more requirements than bits, so that the last bit stands for several.
    pub truncated: bool,
    bits: FxHashMap<Requirement, usize>,
}

impl Masks {
    /// Returns the mask of requirements that a node fails.
    pub fn of(&self, node: NodeIdx) -> u64 {
        self.failed.get(node.index()).copied().unwrap_or(0)
    }

    /// Returns the mask of requirements that a node fails whichever pods are on it.
    pub fn fixed_of(&self, node: NodeIdx) -> u64 {
        self.fixed.get(node.index()).copied().unwrap_or(0)
    }

    /// Iterates over the requirements in a mask, with their bits.
    pub fn requirements(&self, mask: u64) -> impl Iterator<Item = (usize, &Requirement)> {
        self.requirements.iter().enumerate().filter(move |(bit, _)| mask & (1 << bit) != 0)
    }

    /// Adds what a node fails in a trial. `is_lasting` says whether what is fixed there stays so.
    fn add(&mut self, node: NodeIdx, trial: &Self, is_lasting: bool) {
        if let Some(cause) = &trial.pod {
            self.add_cause(node, cause, is_lasting);
        }
        for (bit, requirement) in trial.requirements(trial.of(node)) {
            let is_fixed = trial.fixed_of(node) & (1 << bit) != 0;
            self.add_failed(node, requirement.clone(), is_lasting && is_fixed);
        }
    }

    /// Adds a cause for which PreFilter refuses the pod to what a node fails.
    fn add_cause(&mut self, node: NodeIdx, cause: &Cause, is_lasting: bool) {
        let is_fixed = is_lasting && cause.code == Code::UnschedulableAndUnresolvable;
        for reason in &cause.reasons {
            let requirement = Requirement { plugin: cause.plugin, reason: reason.clone() };
            self.add_failed(node, requirement, is_fixed);
        }
    }

    fn add_failed(&mut self, node: NodeIdx, requirement: Requirement, is_fixed: bool) {
        let bit = self.bit(requirement);
        self.failed[node.index()] |= bit;
        self.fixed[node.index()] |= if is_fixed { bit } else { 0 };
    }

    fn bit(&mut self, requirement: Requirement) -> u64 {
        if let Some(bit) = self.bits.get(&requirement) {
            return 1 << bit;
        }
        if self.requirements.len() == MAX_BITS {
            self.truncated = true;
            return 1 << (MAX_BITS - 1);
        }
        let bit = self.requirements.len();
        self.bits.insert(requirement.clone(), bit);
        self.requirements.push(requirement);
        1 << bit
    }
}

fn masks_on(ctx: &CycleContext<'_>, asked: &[NodeIdx]) -> Masks {
    let mut tally = vec![PluginTally::default(); ctx.profile.plugins.len()];
    let prepared = prepare(&places(ctx.profile, |_| true), ctx, &mut tally);
    let n = ctx.view.cluster().n_slots();
    let mut masks = Masks { failed: vec![0; n], fixed: vec![0; n], ..Masks::default() };
    if let Some((_, cause)) = prepared.refused {
        masks.pod = Some(cause);
        return masks;
    }
    let mut mask = vec![CauseId::FEASIBLE; n];
    let mut nodes: Vec<NodeIdx> = Vec::new();
    for (at, value) in &prepared.values {
        let enabled = &ctx.profile.filter[*at];
        let Some(filter) = enabled.plugin.filter() else { continue };
        cancellation::check();
        let mut causes = Causes::default();
        mask.fill(CauseId::FEASIBLE);
        nodes.clear();
        // Nodes that a PreFilter left out are included: the filters refuse them by themselves.
        nodes.extend_from_slice(asked);
        filter.filter(ctx.view, ctx.spec, value, &mut Nodes::new(&mut nodes, &mut causes, &mut mask));
        add_failed(&mut masks, ctx, asked, &causes, &mask);
    }
    let alignment = Alignment::of(ctx.profile, ctx.spec);
    if !alignment.is_idle() {
        let mut causes = Causes::default();
        mask.fill(CauseId::FEASIBLE);
        nodes.clear();
        nodes.extend_from_slice(asked);
        alignment.filter(ctx, &mut Nodes::new(&mut nodes, &mut causes, &mut mask), &mut tally, |_| {});
        add_failed(&mut masks, ctx, asked, &causes, &mask);
    }
    masks
}

/// Adds the causes that one filter gave some nodes.
fn add_failed(
    masks: &mut Masks,
    ctx: &CycleContext<'_>,
    asked: &[NodeIdx],
    causes: &Causes,
    mask: &[CauseId],
) {
    let bits: FxHashMap<CauseId, u64> =
        causes.iter().map(|(id, cause)| (id, bits_of(masks, cause))).collect();
    for node in asked {
        let id = mask[node.index()];
        let Some(bits) = bits.get(&id) else { continue };
        let is_taint = |c: &Cause| c.reasons.iter().any(|r| r.code == ReasonCode::UntoleratedTaint);
        let cause = causes.get(id);
        let of_taints = cause.filter(|cause| is_taint(cause));
        let failed = of_taints.map_or(*bits, |cause| taint_bits(masks, ctx, *node, cause));
        masks.failed[node.index()] |= failed;
        if cause.is_some_and(|cause| cause.code == Code::UnschedulableAndUnresolvable) {
            masks.fixed[node.index()] |= failed;
        }
    }
}

fn bits_of(masks: &mut Masks, cause: &Cause) -> u64 {
    let own = |reason: &&Reason| reason.code != ReasonCode::UntoleratedTaint;
    cause.reasons.iter().filter(own).fold(0, |bits, reason| {
        let requirement = Requirement { plugin: cause.plugin, reason: reason.clone() };
        bits | masks.bit(requirement)
    })
}

/// Returns the bits of a node's untolerated taints. Each is a requirement of its own.
fn taint_bits(masks: &mut Masks, ctx: &CycleContext<'_>, node: NodeIdx, cause: &Cause) -> u64 {
    let keeps_away = |effect: TaintEffect| effect != TaintEffect::PreferNoSchedule;
    let taints = ctx.view.taints(node).iter();
    let taints = taints.filter(|t| keeps_away(t.effect) && !tolerated(&ctx.spec.tolerations, t));
    taints.fold(0, |bits, taint| {
        let value = if taint.value.is_empty() { String::new() } else { format!("={}", taint.value) };
        let subject = format!("{}{value}:{}", taint.key, taint.effect.as_str());
        let reason = Reason::about(ReasonCode::UntoleratedTaint, &*subject);
        bits | masks.bit(Requirement { plugin: cause.plugin, reason })
    })
}

/// Runs all filters on some nodes for a pod, both with and without the nominated pods that count against it, as a
/// decision does, and on overridden nodes without the absent pods. `cluster` is a copy that may be changed.
pub fn masks_of_pod_on(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, spec): (PodId, &PodSpec),
    nodes: &[NodeIdx],
) -> Masks {
    let ask = |cluster: &Cluster, nodes: &[NodeIdx]| {
        masks_on(&CycleContext { profile, view: View::new(cluster), spec, probe: &NoProbe }, nodes)
    };
    let overridden = overridden_among(cluster, profile, (id, spec), nodes);
    let absent =
        |node: NodeIdx| overridden.iter().find(|of| of.node == node).map_or(&[][..], |of| &of.absent);
    let plain: Vec<NodeIdx> = nodes.iter().copied().filter(|node| absent(*node).is_empty()).collect();
    let mut masks = ask(cluster, &plain);
    let mut trials: Vec<(NodeIdx, Masks)> = Vec::new();
    for of in &overridden {
        let without = cluster.probe(|cluster| {
            leave(cluster, &of.absent);
            ask(cluster, &[of.node])
        });
        trials.push((of.node, without));
    }
    if let Some(cause) = &masks.pod {
        // As in a decision, an overridden node that takes the pod makes this a refusal of every other node.
        if trials.iter().all(|(node, trial)| trial.pod.is_some() || trial.of(*node) != 0) {
            return masks;
        }
        let cause = cause.clone();
        plain.iter().for_each(|node| masks.add_cause(*node, &cause, true));
        masks.pod = None;
    }
    trials.iter().for_each(|(node, trial)| masks.add(*node, trial, true));
    for (node, pods) in promised(cluster, id, nodes) {
        let with = cluster.probe(|cluster| {
            leave(cluster, absent(node));
            for pod in &pods {
                place_nominee(cluster, profile, *pod, node);
            }
            ask(cluster, &[node])
        });
        // None of it is fixed, because nominated pods may never come.
        masks.add(node, &with, false);
        masks.promised.insert(node, pods);
    }
    masks
}

/// Returns those of `nodes` that a pod sees without some pods.
fn overridden_among(
    cluster: &Cluster,
    profile: &Profile,
    (id, spec): (PodId, &PodSpec),
    nodes: &[NodeIdx],
) -> Vec<NodeOverride> {
    let Some(record) = cluster.pod(id) else { return Vec::new() };
    let mut all = of_pod(profile, View::new(cluster), spec, &record.pod);
    all.retain(|of| nodes.contains(&of.node));
    all
}

/// Returns those of `nodes` that have nominated pods which count against a pod. The rest of the pod's gang does not
/// count, because it is planned beside the pod.
fn promised(cluster: &Cluster, id: PodId, nodes: &[NodeIdx]) -> Vec<(NodeIdx, Vec<PodId>)> {
    let Some(record) = cluster.pod(id) else { return Vec::new() };
    let gang: Vec<GangKey> = record.pod.member_of().cloned().into_iter().collect();
    let all = cluster.nominator().nodes().filter_map(|(name, _)| {
        let node = cluster.find_node(name).filter(|node| nodes.contains(node))?;
        let pods = nominees(cluster, (id, &record.pod), &gang, node);
        (!pods.is_empty()).then(|| (node, pods.to_vec()))
    });
    all.collect()
}
