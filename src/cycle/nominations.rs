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

use super::attempt::Asked;
use super::chain::{OneNode, PluginTally};
use super::post_filter::KnownNodes;
use super::rows::{Rows, Subject};
use super::scheduler::Scheduler;
use super::work;

/// A pod, and how it is scheduled.
#[derive(Clone, Copy)]
pub(super) struct Who<'a> {
    pub(super) profile: &'a Profile,
    pub(super) id: PodId,
    pub(super) pod: &'a Pod,
    /// How it is looked at.
    pub(super) how: How<'a>,
    pub(super) probe: &'a dyn Probe,
}

/// How a pod is looked at.
#[derive(Clone, Copy)]
pub(super) enum How<'a> {
    /// On its own; when it is refused its profile is asked for a way.
    Alone,
    /// As one of a group that is planned together: what is promised to the other members does not count against
    /// it, they are placed beside it.
    Member(&'a [GangKey]),
    /// The same; when it is refused its profile is asked for victims of a priority below this one, besides those
    /// that go already. `known`: what equal members found out about single nodes.
    Preemptor { group: &'a [GangKey], below: i32, earlier: &'a [PodId], known: &'a KnownNodes },
}

impl<'a> How<'a> {
    /// Returns the gangs that are planned together with the pod.
    fn group(self) -> &'a [GangKey] {
        match self {
            Self::Alone => &[],
            Self::Member(group) | Self::Preemptor { group, .. } => group,
        }
    }

    /// Whether the pod is looked at as things are, and not with others gone.
    pub(super) fn is_real(self) -> bool {
        !matches!(self, Self::Preemptor { .. })
    }

    /// Whether a refused pod's profile is asked for a way.
    pub(super) fn may_preempt(self) -> bool {
        !matches!(self, Self::Member(_))
    }
}

/// Asks about single nodes on behalf of a pod, on the state itself.
pub(super) struct Asker<'a> {
    pub(super) who: Who<'a>,
    pub(super) cluster: &'a mut Cluster,
    tally: &'a mut [PluginTally],
    scratch: OneNode,
}

impl<'a> Asker<'a> {
    pub(super) fn new(who: Who<'a>, cluster: &'a mut Cluster, tally: &'a mut [PluginTally]) -> Self {
        Self { who, cluster, tally, scratch: OneNode::default() }
    }

    /// The second pass: returns why the pod cannot have the node as it is.
    fn without_nominees(&mut self, asked: &Asked<'_>, node: NodeIdx) -> Option<Cause> {
        let view = View::new(self.cluster);
        let of = Subject { profile: self.who.profile, view, spec: &self.who.pod.spec, probe: self.who.probe };
        asked.ask_about(&of, node, &mut self.scratch, self.tally)
    }

    /// The first pass: the same with the nominees on the node. `None`: there are none.
    fn with_nominees(&mut self, asked: &Asked<'_>, node: NodeIdx) -> Option<Option<Cause>> {
        let Who { id, pod, how, .. } = self.who;
        let nominees = nominees(self.cluster, (id, pod), how.group(), node);
        if nominees.is_empty() {
            return None;
        }
        let (profile, spec, probe) = (self.who.profile, &self.who.pod.spec, self.who.probe);
        let (scratch, tally) = (&mut self.scratch, &mut *self.tally);
        Some(self.cluster.probe(|cluster| {
            for id in nominees {
                cluster.place(id, node, Stage::Reserved);
            }
            let of = Subject { profile, view: View::new(cluster), spec, probe };
            asked.ask_about(&of, node, scratch, tally)
        }))
    }

    /// Both passes.
    pub(super) fn refusal(&mut self, asked: &Asked<'_>, node: NodeIdx) -> Option<Cause> {
        match self.with_nominees(asked, node) {
            Some(Some(cause)) => Some(cause),
            Some(None) | None => self.without_nominees(asked, node),
        }
    }

    /// Refuses the nodes, feasible so far, on which the first pass fails. Returns the pod's own nominated
    /// node when it is feasible: then there is nothing to choose.
    pub(super) fn heed(&mut self, rows: &mut Rows) -> Option<NodeIdx> {
        // Of a pod that is refused as a whole no node is feasible, whatever the kept rows say.
        if self.cluster.nominator().is_empty() || rows.refused_as_a_whole().is_some() {
            return None;
        }
        let own = self.cluster.nominator().of(self.who.id).map(|n| n.node.clone());
        let own = own.and_then(|name| self.cluster.find_node(&name));
        if let Some(node) = own
            && rows.is_feasible(node)
            && !matches!(self.with_nominees(&rows.asked(), node), Some(Some(_)))
        {
            return Some(node);
        }
        self.heed_others(rows);
        None
    }

    /// Refuses the nodes, feasible so far, on which the first pass fails.
    pub(super) fn heed_others(&mut self, rows: &mut Rows) {
        if rows.refused_as_a_whole().is_some() {
            return;
        }
        let nodes = self.cluster.nominator().nodes().filter_map(|(name, _)| self.cluster.find_node(name));
        let nodes: Vec<NodeIdx> = nodes.filter(|n| rows.is_feasible(*n)).collect();
        for node in nodes {
            if let Some(Some(cause)) = self.with_nominees(&rows.asked(), node) {
                rows.refuse_node(node, cause);
            }
        }
    }
}

/// Returns the pods that are nominated to a node and count against a pod: those of equal or higher priority that are
/// not placed, but for the gangs that are planned together with it.
pub(super) fn nominees(
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
    pub(super) fn refusal_on(
        &mut self,
        (id, pod): (PodId, &Pod),
        (profile, shape): (usize, ShapeId),
        node: NodeIdx,
        group: &[GangKey],
        probe: &dyn Probe,
    ) -> Option<Cause> {
        let generation = self.cluster.shapes().generation(shape);
        let rows = self.rows.of((profile, shape), generation, self.cycle);
        let (profile, tally) = (&self.profiles[profile], &mut self.tally[profile]);
        let of = Subject { profile, view: View::new(&self.cluster), spec: &pod.spec, probe };
        rows.sync(&of, self.switches.reuse(), tally);
        self.work += std::mem::take(&mut rows.work) + work::ASK;
        if let Some(cause) = rows.refused_as_a_whole() {
            return Some(cause.clone());
        }
        let who = Who { profile, id, pod, how: How::Member(group), probe };
        Asker::new(who, &mut self.cluster, tally).refusal(&rows.asked(), node)
    }
}
