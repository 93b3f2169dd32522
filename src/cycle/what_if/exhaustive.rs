//! Runs every filter on every node, where a cycle stops at the first refusal, and asks plugins for all their reasons.
//!
//! For explanations on a published snapshot, not for decisions. Returns all requirements that each node fails, as one
//! word of bits per node.

use std::rc::Rc;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::Cluster;
use pellucid_framework::plugin::Nodes;
use pellucid_framework::profile::{Aside, Profile};
use pellucid_framework::{Cause, Code, EveryReason, NodeOverride, NodeReason, Reason, Rooms, View};
use pellucid_model::cause::{CauseId, Causes};
use pellucid_model::collections::FxHashMap;
use pellucid_model::{GangKey, NodeIdx, Pod, PodId, PodSpec, cancellation};
use smallvec::SmallVec;

use crate::attempt::alignment::Alignment;
use crate::attempt::chain::{PluginTally, places, prepare};
use crate::attempt::node_result_cache::CycleContext;
use crate::attempt::nominations::{Claimant, nominees};
use crate::attempt::overrides::{leave, of_pod, refused_at_reserve, rooms};
use crate::attempt::reserve::place_nominee;

/// Maximum number of distinct requirements. Further ones share the last bit.
const MAX_BITS: usize = 64;

/// Number of requirements from which on a new one loses its subject, so that those with the same code share a bit.
const FINE_BITS: usize = 48;

/// A requirement of a pod that some node fails: one reason of one plugin. A reason may have a subject that the reason of
/// a cycle has not, so that what one change relaxes is one requirement: a taint, a term, a port, a claim.
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
        self.add_if(node, trial, is_lasting, |_| true);
    }

    /// Adds some of what a node fails in a trial.
    fn add_if(
        &mut self,
        node: NodeIdx,
        trial: &Self,
        is_lasting: bool,
        counts: impl Fn(&Requirement) -> bool,
    ) {
        for (bit, requirement) in trial.requirements(trial.of(node)) {
            if !counts(requirement) {
                continue;
            }
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
        self.add_bits(node, bit, if is_fixed { bit } else { 0 });
    }

    /// Adds bits to what a node fails. Several requirements may share a bit, which is fixed as soon as one of them is.
    fn add_bits(&mut self, node: NodeIdx, failed: u64, fixed: u64) {
        self.failed[node.index()] |= failed;
        self.fixed[node.index()] |= fixed;
    }

    fn bit(&mut self, requirement: Requirement) -> u64 {
        if let Some(bit) = self.bits.get(&requirement) {
            return 1 << bit;
        }
        if self.requirements.len() == MAX_BITS {
            self.truncated = true;
            return 1 << (MAX_BITS - 1);
        }
        let Reason { code, subject } = &requirement.reason;
        if self.requirements.len() >= FINE_BITS
            && subject.is_some()
            && *code != ReasonCode::InsufficientResource
        {
            self.truncated = true;
            return self.bit(Requirement { plugin: requirement.plugin, reason: Reason::of(*code) });
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
    // Nodes that a PreFilter left out are included: the filters refuse them by themselves.
    let (mut nodes, mut mask) = (asked.to_vec(), vec![CauseId::FEASIBLE; n]);
    for (at, value) in &prepared.values {
        let enabled = &ctx.profile.filter[*at];
        let Some(filter) = enabled.plugin.filter() else { continue };
        cancellation::check();
        let mut causes = Causes::default();
        filter.filter(ctx.view, ctx.spec, value, &mut Nodes::new(&mut nodes, &mut causes, &mut mask));
        if nodes.len() == asked.len() {
            continue;
        }
        match filter.every_reason(ctx.view, ctx.spec, value) {
            Some(every) => add_every(&mut masks, asked, &every, (&causes, &mask)),
            None => add_causes(&mut masks, asked, &causes, &mask),
        }
        // The next filter is asked of all nodes again.
        mask.fill(CauseId::FEASIBLE);
        nodes.clear();
        nodes.extend_from_slice(asked);
    }
    let alignment = Alignment::of(ctx.profile, ctx.view, ctx.spec);
    if !alignment.is_idle() {
        let mut causes = Causes::default();
        let mut refused = Vec::new();
        let mut asked = Nodes::new(&mut nodes, &mut causes, &mut mask);
        alignment.filter(ctx, &mut asked, &mut tally, |node| refused.push(node));
        for node in refused {
            let all = alignment.every_cause(ctx, node);
            all.iter().for_each(|cause| masks.add_cause(node, cause, true));
        }
    }
    masks
}

/// Adds every reason that a plugin has against the nodes that its filter refused.
fn add_every(
    masks: &mut Masks,
    asked: &[NodeIdx],
    every: &EveryReason<'_>,
    (causes, mask): (&Causes, &[CauseId]),
) {
    let mut reasons: Vec<NodeReason> = Vec::new();
    let mut bits = RecentBits::default();
    for node in asked {
        let Some(cause) = causes.get(mask[node.index()]) else { continue };
        reasons.clear();
        every(*node, &mut reasons);
        if reasons.is_empty() {
            // A refused node always has a reason.
            reasons.extend(NodeReason::of_cause(cause));
        }
        for NodeReason { reason, is_fixed } in reasons.drain(..) {
            let bit = bits.of(masks, cause.plugin, reason);
            masks.add_bits(*node, bit, if is_fixed { bit } else { 0 });
        }
    }
}

/// The bits of the first requirements that were met with. Most nodes fail the same few, so that comparing is quicker than
/// hashing.
#[derive(Default)]
struct RecentBits(SmallVec<[(&'static str, Rc<Reason>, u64); 4]>);

impl RecentBits {
    fn of(&mut self, masks: &mut Masks, plugin: &'static str, reason: Rc<Reason>) -> u64 {
        let is_it = |known: &Rc<Reason>| Rc::ptr_eq(known, &reason) || *known == reason;
        let known =
            self.0.iter().find(|(of, known, _)| is_it(known) && (std::ptr::eq(*of, plugin) || *of == plugin));
        if let Some((.., bit)) = known {
            return *bit;
        }
        let bit = masks.bit(Requirement { plugin, reason: Reason::clone(&reason) });
        if self.0.len() < self.0.inline_size() {
            self.0.push((plugin, reason, bit));
        }
        bit
    }
}

/// Adds the causes that one filter gave some nodes, each with the reasons that it names.
fn add_causes(masks: &mut Masks, asked: &[NodeIdx], causes: &Causes, mask: &[CauseId]) {
    let mut bits_of = |cause: &Cause| {
        let all = cause
            .reasons
            .iter()
            .map(|reason| masks.bit(Requirement { plugin: cause.plugin, reason: reason.clone() }));
        let bits = all.fold(0, |bits, bit| bits | bit);
        (bits, if cause.code == Code::UnschedulableAndUnresolvable { bits } else { 0 })
    };
    let bits: FxHashMap<CauseId, (u64, u64)> =
        causes.iter().filter(|(id, _)| mask.contains(id)).map(|(id, cause)| (id, bits_of(cause))).collect();
    for node in asked {
        if let Some((failed, fixed)) = bits.get(&mask[node.index()]) {
            masks.add_bits(*node, *failed, *fixed);
        }
    }
}

/// Runs all filters on some nodes for a pod, both with and without the nominated pods that count against it, as a
/// decision does, and on overridden nodes without the absent pods. `cluster` is a copy that may be changed.
pub fn masks_of_pod_on(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, spec): (PodId, &PodSpec),
    nodes: &[NodeIdx],
) -> Masks {
    let pod = cluster.pod(id).map(|record| record.pod.clone());
    let group: Vec<GangKey> = pod.iter().filter_map(|pod| pod.member_of().cloned()).collect();
    let claimant = pod.as_deref().map(|pod| Claimant { id, pod, group: &group });
    let ask = |cluster: &Cluster, nodes: &[NodeIdx], absent: &[PodId]| {
        let view = View::new(cluster).without(absent);
        let view = pod.as_deref().map_or(view, |pod| view.for_pod(pod));
        let aside = Aside::default();
        masks_on(&CycleContext { claimant, aside, ..CycleContext::new(profile, view, spec) }, nodes)
    };
    let mut overridden = overridden_among(cluster, profile, (id, spec), nodes);
    let is_plain = |node: &NodeIdx| overridden.iter().all(|of| of.node != *node);
    let plain: Vec<NodeIdx> = nodes.iter().copied().filter(is_plain).collect();
    let mut masks = ask(cluster, &plain, &[]);
    let mut trials: Vec<(NodeIdx, Masks)> = Vec::new();
    for of in &mut overridden {
        let node = of.node;
        let ask = |cluster: &Cluster, absent: &[PodId]| ask(cluster, &[node], absent);
        trials.push((node, judge_overridden(cluster, (profile, id, spec), of, ask)));
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
    let absent =
        |node: NodeIdx| overridden.iter().find(|of| of.node == node).map_or(&[][..], |of| &of.absent);
    for (node, pods) in promised(cluster, id, nodes) {
        let with = cluster.probe(|cluster| {
            leave(cluster, absent(node));
            for pod in &pods {
                place_nominee(cluster, profile, *pod, node);
            }
            ask(cluster, &[node], absent(node))
        });
        // None of it is fixed, because nominated pods may never come.
        masks.add(node, &with, false);
        masks.promised.insert(node, pods);
    }
    masks
}

/// Judges an overridden node without the pods in whose room the pod fits, which are left as the absent ones. Where it fits in
/// none, what other plugins hold for those that would not be absent is in its way too.
fn judge_overridden(
    cluster: &mut Cluster,
    (profile, id, spec): (&Profile, PodId, &PodSpec),
    of: &mut NodeOverride,
    ask: impl Fn(&Cluster, &[PodId]) -> Masks,
) -> Masks {
    let without = |cluster: &mut Cluster, absent: &[PodId]| {
        cluster.probe(|cluster| {
            leave(cluster, absent);
            ask(cluster, absent)
        })
    };
    let node = of.node;
    let with_spec = |pod: &Arc<Pod>| match *pod.spec == *spec {
        true => pod.clone(),
        false => Arc::new(Pod { spec: Arc::new(spec.clone()), ..Pod::clone(pod) }),
    };
    let pod = cluster.pod(id).map(|record| with_spec(&record.pod));
    let view = View::new(cluster);
    let rooms = pod.as_ref().map(|pod| rooms(profile, (view, spec, pod), node, &of.absent));
    let Rooms { fitting, otherwise } = rooms.unwrap_or_else(|| Rooms::all(&of.absent));
    if fitting.is_empty() {
        let mut masks = without(cluster, &of.absent);
        let stays = of.absent.iter().filter(|id| !otherwise.contains(id)).filter_map(|id| cluster.pod(*id));
        let holders: Vec<&str> = stays.flat_map(|record| &record.holds).map(|hold| hold.plugin).collect();
        if !holders.is_empty() {
            let beside = without(cluster, &otherwise);
            masks.add_if(node, &beside, true, |requirement| holders.contains(&requirement.plugin));
        }
        return masks;
    }
    let (mut refused, all) = (None, of.absent.clone());
    for absent in fitting {
        let mut masks = without(cluster, &absent);
        let is_refused = masks.pod.is_some() || masks.of(node) != 0;
        if let Some(pod) = pod.as_ref().filter(|_| !is_refused) {
            let cause = refused_at_reserve(cluster, profile, (id, pod), node, &all);
            cause.iter().for_each(|cause| masks.add_cause(node, cause, true));
        }
        if refused.is_none() || !is_refused {
            of.absent = absent;
            refused = Some(masks);
        }
        if !is_refused {
            break;
        }
    }
    refused.unwrap_or_default()
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
