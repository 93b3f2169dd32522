//! The two-pass filter for nominated pods.
//!
//! A pod may go to a node only if it passes the filters there both with and without the pods of equal or higher
//! priority that are nominated to the node. With them, because their room is reserved. Without them, because they may
//! never come, and a pod that needs one beside it would wait in vain. The second pass is needed only where the first
//! one added pods.

use std::sync::Arc;

use pellucid_cluster::Cluster;
use pellucid_framework::plugin::PreFilter;
use pellucid_framework::profile::{Aside, Profile};
use pellucid_framework::{Cause, View};
use pellucid_model::time::Probe;
use pellucid_model::{GangKey, NodeIdx, Pod, PodId};
use smallvec::SmallVec;

use crate::attempt::chain::PluginTally;
use crate::attempt::global_plugins::OneNode;
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::overrides::{judged_without, leave, refused_at_reserve, rooms};
use crate::attempt::post_filter::KnownNodes;
use crate::attempt::reserve::place_nominee;

/// A pod and how it is scheduled.
#[derive(Clone, Copy)]
pub(crate) struct AttemptContext<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) id: PodId,
    pub(crate) pod: &'a Pod,
    pub(crate) kind: AttemptKind<'a>,
    pub(crate) aside: Aside,
    pub(crate) probe: &'a dyn Probe,
}

impl<'a> AttemptContext<'a> {
    /// Makes it, and asks the plugins whether the pod concerns them.
    pub(crate) fn new(
        profile: &'a Profile,
        (id, pod): (PodId, &'a Pod),
        kind: AttemptKind<'a>,
        cluster: &Cluster,
        probe: &'a dyn Probe,
    ) -> Self {
        let aside = profile.aside(View::new(cluster), &pod.spec, pod);
        Self { profile, id, pod, kind, aside, probe }
    }

    /// Returns the inputs of a cycle for the pod in a trial without some pods.
    pub(crate) fn without(self, absent: &'a [PodId], cluster: &'a Cluster) -> CycleContext<'a> {
        let ctx = self.on(cluster);
        CycleContext { view: ctx.view.without(absent), ..ctx }
    }

    /// Returns the inputs of a cycle for the pod in a state.
    pub(crate) fn on(self, cluster: &'a Cluster) -> CycleContext<'a> {
        let Self { profile, id, pod, probe, kind, aside } = self;
        // A question may be about a pod that differs from the one in the state.
        let known = cluster.pod(id).filter(|record| Arc::ptr_eq(&record.pod.spec, &pod.spec));
        let node_spec = known.and_then(|record| cluster.shapes().node_spec(record.shape));
        let claimant = Some(Claimant { id, pod, group: kind.group() });
        CycleContext {
            profile,
            view: View::new(cluster).for_pod(pod),
            spec: &pod.spec,
            node_spec: node_spec.unwrap_or(&pod.spec),
            claimant,
            aside,
            probe,
        }
    }
}

/// A pod against which nominated pods count, but for those of the gangs that are planned together with it.
#[derive(Clone, Copy)]
pub struct Claimant<'a> {
    /// Id of the pod.
    pub id: PodId,
    /// The pod.
    pub pod: &'a Pod,
    /// The gangs that are planned together with it.
    pub group: &'a [GangKey],
}

impl Claimant<'_> {
    /// Returns whether a nominated pod counts: one without a place, of equal or higher priority.
    fn concedes_to(&self, cluster: &Cluster, other: PodId) -> bool {
        let is_sibling =
            |other: &Pod| other.gang.as_ref().is_some_and(|mark| self.group.contains(&mark.gang));
        other != self.id
            && cluster.pod(other).is_some_and(|record| {
                record.node.is_none() && record.pod.priority >= self.pod.priority && !is_sibling(&record.pod)
            })
    }
}

impl CycleContext<'_> {
    /// Returns why a plugin must leave what all nodes share to nominated pods. Of pods of equal priority that are
    /// nominated each has its part, so they do not wait for each other.
    pub(crate) fn refused_beside_nominees(&self, plugin: &dyn PreFilter) -> Option<Cause> {
        let (claimant, cluster) = (self.claimant.as_ref()?, self.view.cluster());
        let nominator = cluster.nominator();
        if nominator.is_empty() || !plugin.counts_nominees() {
            return None;
        }
        let is_nominated = nominator.of(claimant.id).is_some();
        let counts = |pod: &&Pod| !is_nominated || pod.priority > claimant.pod.priority;
        let all = nominator.nodes().flat_map(|(_, pods)| pods).copied();
        let all = all.filter(|other| claimant.concedes_to(cluster, *other));
        let pods: Vec<&Pod> = all.filter_map(|id| Some(&*cluster.pod(id)?.pod)).filter(counts).collect();
        if pods.is_empty() { None } else { plugin.beside_nominees(self.view, self.spec, &pods) }
    }
}

/// How a pod is scheduled.
#[derive(Clone, Copy)]
pub(crate) enum AttemptKind<'a> {
    /// The pod is scheduled on its own. If it is refused, PostFilter runs.
    Alone,
    /// The pod is planned together with its gang group. Nominations of the other members do not count against it,
    /// because they are placed beside it.
    Member(&'a [GangKey]),
    /// As `Member`, and PostFilter runs if the pod is refused. Victims must have a priority below `below` and come on
    /// top of `earlier`. `known` holds what equal members found out about single nodes.
    Preemptor { group: &'a [GangKey], below: i32, earlier: &'a [PodId], known: &'a KnownNodes },
}

impl<'a> AttemptKind<'a> {
    /// Returns the gangs that are planned together with the pod.
    fn group(self) -> &'a [GangKey] {
        match self {
            Self::Alone => &[],
            Self::Member(group) | Self::Preemptor { group, .. } => group,
        }
    }

    /// Whether the pod is scheduled on the actual state, not on one without victims.
    pub(crate) fn is_real(self) -> bool {
        !matches!(self, Self::Preemptor { .. })
    }

    /// Whether PostFilter runs for a refused pod.
    pub(crate) fn may_preempt(self) -> bool {
        !matches!(self, Self::Member(_))
    }
}

/// Filters single nodes for a pod, on the state itself.
pub(crate) struct NominationFilter<'a> {
    pub(crate) attempt: AttemptContext<'a>,
    pub(crate) cluster: &'a mut Cluster,
    pub(super) tally: &'a mut [PluginTally],
    pub(super) scratch: &'a mut OneNode,
}

impl<'a> NominationFilter<'a> {
    pub(crate) fn new(
        attempt: AttemptContext<'a>,
        cluster: &'a mut Cluster,
        tally: &'a mut [PluginTally],
        scratch: &'a mut OneNode,
    ) -> Self {
        Self { attempt, cluster, tally, scratch }
    }

    /// Runs the first pass, with the nominated pods on the node. Returns why a filter refuses the node, or `None` if
    /// there are no such pods.
    fn with_nominees(&mut self, results: &NodeResultCache, node: NodeIdx) -> Option<Cause> {
        let attempt = self.attempt;
        let nominees = nominees(self.cluster, (attempt.id, attempt.pod), attempt.kind.group(), node);
        if nominees.is_empty() { None } else { self.ask(results, node, &nominees) }
    }

    /// Returns why a filter refuses the node with these nominated pods placed on it, and without those that are absent
    /// there for the pod.
    pub(super) fn ask(
        &mut self,
        results: &NodeResultCache,
        node: NodeIdx,
        nominees: &[PodId],
    ) -> Option<Cause> {
        let (attempt, absent) = (self.attempt, results.absent_on(node));
        if absent.is_empty() && nominees.is_empty() {
            return results.ask_about(&attempt.on(self.cluster), node, self.scratch, self.tally).0;
        }
        let mut refused = None;
        let of_pod = (View::new(self.cluster), &*attempt.pod.spec, attempt.pod);
        for room in judged_without(rooms(attempt.profile, of_pod, node, absent), absent) {
            let (scratch, tally) = (&mut *self.scratch, &mut *self.tally);
            let with_nominees = |cluster: &mut Cluster| {
                nominees.iter().for_each(|id| place_nominee(cluster, attempt.profile, *id, node));
            };
            let cause = self.cluster.probe(|cluster| {
                leave(cluster, &room);
                with_nominees(cluster);
                results.ask_about(&attempt.without(&room, cluster), node, scratch, tally).0
            });
            let Some(cause) = cause else {
                return self.cluster.probe(|cluster| {
                    with_nominees(cluster);
                    refused_at_reserve(cluster, attempt.profile, (attempt.id, attempt.pod), node, absent)
                });
            };
            refused.get_or_insert(cause);
        }
        refused
    }

    /// Runs both passes. Returns why a filter refuses the node.
    pub(crate) fn refusal(&mut self, results: &NodeResultCache, node: NodeIdx) -> Option<Cause> {
        self.with_nominees(results, node).or_else(|| self.ask(results, node, &[]))
    }

    /// Returns the pod's own nominated node if it is feasible: then there is no choice. Otherwise refuses the feasible
    /// nodes on which the first pass fails.
    pub(crate) fn filter_with_nominated_pods(&mut self, results: &mut NodeResultCache) -> Option<NodeIdx> {
        // A pod that is refused as a whole has no feasible node, whatever the cached results say.
        if self.cluster.nominator().is_empty() || results.refused_as_a_whole().is_some() {
            return None;
        }
        let own = self.cluster.nominator().of(self.attempt.id).map(|n| n.node.clone());
        let own = own.and_then(|name| self.cluster.find_node(&name));
        if let Some(node) = own
            && results.is_feasible(node)
            && self.with_nominees(results, node).is_none()
        {
            return Some(node);
        }
        self.filter_with_others_nominated(results);
        None
    }

    /// Refuses the feasible nodes on which the first pass fails.
    pub(crate) fn filter_with_others_nominated(&mut self, results: &mut NodeResultCache) {
        if results.refused_as_a_whole().is_some() {
            return;
        }
        let nodes = self.cluster.nominator().nodes().filter_map(|(name, _)| self.cluster.find_node(name));
        let nodes: Vec<NodeIdx> = nodes.filter(|n| results.is_feasible(*n)).collect();
        for node in nodes {
            if let Some(cause) = self.with_nominees(results, node) {
                results.set_result(node, Some(cause));
            }
        }
    }
}

/// Returns the pods that are nominated to a node and count against a pod: pending ones of equal or higher priority,
/// except for the gangs that are planned together with it.
pub(crate) fn nominees(
    cluster: &Cluster,
    (id, pod): (PodId, &Pod),
    group: &[GangKey],
    node: NodeIdx,
) -> SmallVec<[PodId; 2]> {
    let nominator = cluster.nominator();
    if nominator.is_empty() {
        return SmallVec::new();
    }
    let claimant = Claimant { id, pod, group };
    let on_node = nominator.on(cluster.node_name(node)).iter().copied();
    on_node.filter(|other| claimant.concedes_to(cluster, *other)).collect()
}
