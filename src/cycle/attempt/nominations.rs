//! What nominations mean for a decision: the two-pass filter.
//!
//! A pod may go to a node only if it passes the filters there both with the pods of equal or higher priority
//! that are nominated to the node, and without them. With them, because their room is promised. Without
//! them, because they may never come, and a pod that needs one beside it would wait in vain. The second
//! pass is needed only where the first one added something.

use pellucid_cluster::{Cluster, ShapeId, Stage};
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, View};
use pellucid_model::time::Probe;
use pellucid_model::{GangKey, NodeIdx, Pod, PodId};
use smallvec::SmallVec;

use crate::attempt::chain::{OneNode, PluginTally};
use crate::attempt::global_plugins::ShapeFilters;
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::post_filter::KnownNodes;
use crate::attempt::work;
use crate::scheduler::Scheduler;

/// A pod, and how it is scheduled.
#[derive(Clone, Copy)]
pub(crate) struct AttemptContext<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) id: PodId,
    pub(crate) pod: &'a Pod,
    /// How it is looked at.
    pub(crate) kind: AttemptKind<'a>,
    pub(crate) probe: &'a dyn Probe,
}

/// How a pod is looked at.
#[derive(Clone, Copy)]
pub(crate) enum AttemptKind<'a> {
    /// On its own; when it is refused its profile is asked for a way.
    Alone,
    /// As one of a group that is planned together: what is promised to the other members does not count against
    /// it, they are placed beside it.
    Member(&'a [GangKey]),
    /// The same; when it is refused its profile is asked for victims of a priority below this one, besides those
    /// that go already. `known`: what equal members found out about single nodes.
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

    /// Whether the pod is looked at as things are, and not with others gone.
    pub(crate) fn is_real(self) -> bool {
        !matches!(self, Self::Preemptor { .. })
    }

    /// Whether a refused pod's profile is asked for a way.
    pub(crate) fn may_preempt(self) -> bool {
        !matches!(self, Self::Member(_))
    }
}

/// Asks about single nodes on behalf of a pod, on the state itself.
pub(crate) struct NominationFilter<'a> {
    pub(crate) attempt: AttemptContext<'a>,
    pub(crate) cluster: &'a mut Cluster,
    tally: &'a mut [PluginTally],
    scratch: OneNode,
}

impl<'a> NominationFilter<'a> {
    pub(crate) fn new(
        attempt: AttemptContext<'a>,
        cluster: &'a mut Cluster,
        tally: &'a mut [PluginTally],
    ) -> Self {
        Self { attempt, cluster, tally, scratch: OneNode::default() }
    }

    /// The second pass: returns why the pod cannot have the node as it is.
    fn without_nominees(&mut self, filters: &ShapeFilters<'_>, node: NodeIdx) -> Option<Cause> {
        let view = View::new(self.cluster);
        let ctx = CycleContext {
            profile: self.attempt.profile,
            view,
            spec: &self.attempt.pod.spec,
            probe: self.attempt.probe,
        };
        filters.ask_about(&ctx, node, &mut self.scratch, self.tally)
    }

    /// The first pass: the same with the nominees on the node. `None`: there are none.
    fn with_nominees(&mut self, filters: &ShapeFilters<'_>, node: NodeIdx) -> Option<Option<Cause>> {
        let AttemptContext { id, pod, kind, .. } = self.attempt;
        let nominees = nominees(self.cluster, (id, pod), kind.group(), node);
        if nominees.is_empty() {
            return None;
        }
        let (profile, spec, probe) = (self.attempt.profile, &self.attempt.pod.spec, self.attempt.probe);
        let (scratch, tally) = (&mut self.scratch, &mut *self.tally);
        Some(self.cluster.probe(|cluster| {
            for id in nominees {
                cluster.place(id, node, Stage::Reserved);
            }
            let ctx = CycleContext { profile, view: View::new(cluster), spec, probe };
            filters.ask_about(&ctx, node, scratch, tally)
        }))
    }

    /// Both passes.
    pub(crate) fn refusal(&mut self, filters: &ShapeFilters<'_>, node: NodeIdx) -> Option<Cause> {
        match self.with_nominees(filters, node) {
            Some(Some(cause)) => Some(cause),
            Some(None) | None => self.without_nominees(filters, node),
        }
    }

    /// Refuses the nodes, feasible so far, on which the first pass fails. Returns the pod's own nominated
    /// node when it is feasible: then there is nothing to choose.
    pub(crate) fn filter_with_nominated_pods(&mut self, results: &mut NodeResultCache) -> Option<NodeIdx> {
        // Of a pod that is refused as a whole no node is feasible, whatever the kept rows say.
        if self.cluster.nominator().is_empty() || results.refused_as_a_whole().is_some() {
            return None;
        }
        let own = self.cluster.nominator().of(self.attempt.id).map(|n| n.node.clone());
        let own = own.and_then(|name| self.cluster.find_node(&name));
        if let Some(node) = own
            && results.is_feasible(node)
            && !matches!(self.with_nominees(&results.shape_filters(), node), Some(Some(_)))
        {
            return Some(node);
        }
        self.filter_with_others_nominated(results);
        None
    }

    /// Refuses the nodes, feasible so far, on which the first pass fails.
    pub(crate) fn filter_with_others_nominated(&mut self, results: &mut NodeResultCache) {
        if results.refused_as_a_whole().is_some() {
            return;
        }
        let nodes = self.cluster.nominator().nodes().filter_map(|(name, _)| self.cluster.find_node(name));
        let nodes: Vec<NodeIdx> = nodes.filter(|n| results.is_feasible(*n)).collect();
        for node in nodes {
            if let Some(Some(cause)) = self.with_nominees(&results.shape_filters(), node) {
                results.refuse_node(node, cause);
            }
        }
    }
}

/// Returns the pods that are nominated to a node and count against a pod: those of equal or higher priority that are
/// not placed, but for the gangs that are planned together with it.
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
    let is_sibling = |other: &Pod| other.gang.as_ref().is_some_and(|mark| group.contains(&mark.gang));
    let counts = |other: &&PodId| {
        let record = cluster.pod(**other);
        **other != id
            && record
                .is_some_and(|r| r.node.is_none() && r.pod.priority >= pod.priority && !is_sibling(&r.pod))
    };
    nominator.on(&cluster.slot(node).name).iter().filter(counts).copied().collect()
}

impl Scheduler {
    /// Returns why a member of a group does not pass all filters on a node as the state is now.
    pub(crate) fn refusal_on(
        &mut self,
        (id, pod): (PodId, &Pod),
        (profile, shape): (usize, ShapeId),
        node: NodeIdx,
        group: &[GangKey],
        probe: &dyn Probe,
    ) -> Option<Cause> {
        let generation = self.cluster.shapes().generation(shape);
        let results = self.profiles.results.of((profile, shape), generation, self.cycle);
        let (profile, tally) = (&self.profiles.all[profile], &mut self.profiles.tally[profile]);
        let ctx = CycleContext { profile, view: View::new(&self.cluster), spec: &pod.spec, probe };
        results.run_filters(&ctx, self.switches.reuse(), tally);
        self.turns.work += std::mem::take(&mut results.work) + work::ASK;
        if let Some(cause) = results.refused_as_a_whole() {
            return Some(cause.clone());
        }
        let attempt = AttemptContext { profile, id, pod, kind: AttemptKind::Member(group), probe };
        NominationFilter::new(attempt, &mut self.cluster, tally).refusal(&results.shape_filters(), node)
    }
}
