//! Judges overridden nodes: those that the pod of an attempt sees without some pods ([`NodeOverrides`]).
//!
//! Each is scored in a trial in which these pods are gone, and filtered in trials in which those are gone whose room the pod
//! may have ([`Rooms`]); where plugins hold something for one of them, Reserve has the last word ([`refused_at_reserve`]). The
//! results replace those of the actual state in this [`Attempt`] alone; what is kept per shape stays
//! as it is. Every later question about a single node, with nominated pods or without victims, passes [`NominationFilter`],
//! which leaves the same pods out.
//!
//! [`Attempt`]: crate::attempt::global_plugins::Attempt
//! [`NodeOverrides`]: pellucid_framework::NodeOverrides

use pellucid_cluster::{Cluster, Stage};
use pellucid_framework::plugin::Measure;
use pellucid_framework::profile::{Aside, Profile};
use pellucid_framework::{Absent, Cause, NodeOverride, NodeOverrides, NumaAffinity, Rooms, View};
use pellucid_model::cause::CauseId;
use pellucid_model::{NodeIdx, Pod, PodId, PodSpec};
use smallvec::{SmallVec, smallvec};

use crate::attempt::alignment;
use crate::attempt::chain::PluginTally;
use crate::attempt::global_plugins;
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::nominations::NominationFilter;
use crate::attempt::refusal::measure;
use crate::attempt::reserve::reserve;
use crate::attempt::work;

/// An overridden node of an attempt.
pub(crate) struct Overridden {
    pub(crate) node: NodeIdx,
    /// The pods that are gone in its trials.
    pub(crate) absent: Absent,
    /// Raw scores of the plugins whose scores are cached, in their order; empty if the node is not scored.
    pub(crate) cached: Vec<i32>,
    /// Raw scores of the plugins that run at every attempt, by index in `profile.score`.
    pub(crate) global: SmallVec<[(usize, i64); 2]>,
    pub(crate) is_scored: bool,
    /// The numbers behind the cause for which a filter refuses the node.
    pub(crate) measures: Vec<Measure>,
}

impl Overridden {
    /// Returns the raw score of a plugin that runs at every attempt, if the node is scored.
    pub(crate) fn global(&self, entry: usize) -> Option<i64> {
        self.global.iter().find(|(known, _)| *known == entry).map(|(_, raw)| *raw)
    }
}

/// Finds a node among overridden ones, which are ascending.
pub(crate) fn find(all: &[Overridden], node: NodeIdx) -> Option<&Overridden> {
    all.binary_search_by_key(&node, |of| of.node).ok().map(|at| &all[at])
}

/// Returns the nodes that a pod sees without some pods, ascending, as all plugins of a profile say together.
pub(crate) fn of_pod(profile: &Profile, view: View<'_>, spec: &PodSpec, pod: &Pod) -> Vec<NodeOverride> {
    let plugins = profile.node_overrides.iter().filter_map(|enabled| enabled.plugin.node_overrides());
    let mut all: Vec<NodeOverride> = plugins.flat_map(|p| p.overrides(view, spec, pod)).collect();
    all.sort_by_key(|of| of.node);
    all.dedup_by(|next, first| {
        let is_same = next.node == first.node;
        if is_same {
            first.absent.append(&mut next.absent);
        }
        is_same
    });
    for NodeOverride { node, absent } in &mut all {
        absent.retain(|id| view.cluster().pod(*id).is_some_and(|record| record.node == Some(*node)));
        absent.sort_unstable();
        absent.dedup();
    }
    all.retain(|of| !of.absent.is_empty());
    all
}

/// Returns of the pods that are absent from a node those that stay so while the node is judged, as all plugins of a profile
/// say together.
pub(crate) fn rooms(
    profile: &Profile,
    (view, spec, pod): (View<'_>, &PodSpec, &Pod),
    node: NodeIdx,
    absent: &[PodId],
) -> Rooms {
    let plugins = profile.node_overrides.iter().filter_map(|enabled| enabled.plugin.node_overrides());
    plugins.fold(Rooms::all(absent), |rooms, plugin| {
        let narrowed = |set: &Absent| plugin.rooms(view, spec, pod, node, set);
        let Rooms { fitting, otherwise } = narrowed(&rooms.otherwise);
        let of_set = |set: &Absent| match *set == rooms.otherwise {
            true => fitting.clone(),
            false => narrowed(set).fitting,
        };
        Rooms { fitting: rooms.fitting.iter().flat_map(of_set).collect(), otherwise }
    })
}

/// Returns the sets of absent pods with which a node is judged, in turn until one is not refused. If the pod fits in none, it
/// is judged without all of them, so that the plugin which says so refuses it.
pub(crate) fn judged_without(rooms: Rooms, absent: &[PodId]) -> SmallVec<[Absent; 1]> {
    if rooms.fitting.is_empty() { smallvec![absent.into()] } else { rooms.fitting }
}

/// Returns why Reserve refuses a pod that the filters let onto a node without the pods that are absent there: what plugins hold
/// for one of these may be all that the pod gets of them, and only they know whether it is enough.
pub(crate) fn refused_at_reserve(
    cluster: &mut Cluster,
    profile: &Profile,
    (id, pod): (PodId, &Pod),
    node: NodeIdx,
    absent: &[PodId],
) -> Option<Cause> {
    let has_holds = |id: &PodId| cluster.pod(*id).is_some_and(|record| !record.holds.is_empty());
    let is_placed = cluster.pod(id).is_none_or(|record| record.node.is_some());
    let mut plugins = profile.node_overrides.iter().filter_map(|enabled| enabled.plugin.node_overrides());
    if is_placed || !absent.iter().any(has_holds) || plugins.any(|plugin| plugin.ignores(&pod.spec)) {
        return None;
    }
    cluster.probe(|cluster| match affinity(cluster, profile, pod, node) {
        Ok(affinity) => {
            cluster.place(id, node, Stage::Reserved);
            reserve(cluster, profile, (id, pod), node, affinity).err()
        }
        Err(cause) => Some(cause),
    })
}

/// Returns the pods of a node that a pod ignores, for which it needs their room.
pub(crate) fn ignored(
    cluster: &Cluster,
    profile: &Profile,
    aside: Aside,
    pod: &Pod,
    node: NodeIdx,
) -> Absent {
    let asked = profile.node_overrides.iter().filter(|enabled| !aside.has(enabled));
    let ignores = |of: &dyn NodeOverrides| of.ignores(&pod.spec);
    let mut plugins = asked.filter_map(|enabled| enabled.plugin.node_overrides());
    if !plugins.any(ignores) {
        return Absent::new();
    }
    let all = of_pod(profile, View::new(cluster), &pod.spec, pod);
    all.into_iter().find(|of| of.node == node).map(|of| of.absent).unwrap_or_default()
}

/// Takes pods off their nodes. Must be called in a trial.
pub(crate) fn leave(cluster: &mut Cluster, absent: &[PodId]) {
    for id in absent {
        cluster.release(*id);
    }
}

/// Returns the affinity of a pod on a node as the filters saw it, without the pods that are absent there for the pod.
/// The pod must not be placed yet. Fails with the cause for which the node is refused.
pub(crate) fn affinity(
    cluster: &mut Cluster,
    profile: &Profile,
    pod: &Pod,
    node: NodeIdx,
) -> Result<Option<NumaAffinity>, Cause> {
    let ask = |cluster: &Cluster| alignment::affinity(profile, View::new(cluster), &pod.spec, node);
    if profile.topology_hints.is_empty() || profile.node_overrides.is_empty() {
        return ask(cluster);
    }
    let mut all = of_pod(profile, View::new(cluster), &pod.spec, pod).into_iter();
    let Some(of) = all.find(|of| of.node == node) else { return ask(cluster) };
    let rooms = rooms(profile, (View::new(cluster), &pod.spec, pod), node, &of.absent);
    let mut refused = None;
    for room in judged_without(rooms, &of.absent) {
        let asked = cluster.probe(|cluster| {
            leave(cluster, &room);
            ask(cluster)
        });
        match asked {
            Ok(affinity) => return Ok(affinity),
            Err(cause) => _ = refused.get_or_insert(cause),
        }
    }
    refused.map_or(Ok(None), Err)
}

impl NominationFilter<'_> {
    /// Finds the overridden nodes for the pod. Until the attempt ends, questions about single nodes leave out the pods
    /// that are absent there.
    pub(crate) fn find_overrides(&mut self, results: &mut NodeResultCache) {
        let (profile, pod) = (self.attempt.profile, self.attempt.pod);
        if profile.node_overrides.iter().all(|enabled| self.attempt.aside.has(enabled)) {
            return;
        }
        let found = of_pod(profile, View::new(self.cluster), &pod.spec, pod);
        if found.is_empty() {
            return;
        }
        // What plugins say may depend on anything, and on more of the pod than its shape.
        results.reads_others = true;
        let overridden = |NodeOverride { node, absent }| Overridden {
            node,
            absent,
            cached: Vec::new(),
            global: SmallVec::new(),
            is_scored: false,
            measures: Vec::new(),
        };
        results.attempt().overridden = found.into_iter().map(overridden).collect();
    }

    /// Finds the overridden nodes for the pod, and filters each in a trial. All other nodes must be filtered already.
    pub(crate) fn filter_overridden_nodes(&mut self, results: &mut NodeResultCache) {
        let reads_others = results.reads_others;
        self.find_overrides(results);
        // What refuses the pod for its spec alone refuses it without other pods too.
        if results.overridden().is_empty() || results.prepared.refused.is_some() {
            return;
        }
        let are_scored = self.can_score_at_once(results);
        let lasts = !reads_others && self.lasts(results);
        let nodes = results.overridden().iter().map(|of| of.node).filter(|node| results.is_evaluated(*node));
        let nodes: Vec<NodeIdx> = nodes.collect();
        let judged: Vec<(NodeIdx, Option<Cause>)> =
            nodes.into_iter().map(|node| (node, self.judge(results, node, are_scored, lasts))).collect();
        results.work += work::ASK * judged.len() as u64;
        if results.refused_as_a_whole().is_some() {
            if judged.iter().all(|(_, cause)| cause.is_some()) {
                return;
            }
            results.refuse_every_node();
        }
        for (node, cause) in judged {
            results.set_result(node, cause);
        }
    }

    /// Whether an overridden node can be scored in the trial in which it is filtered: which of the others are feasible says
    /// nothing about its raw scores. Then the other nodes are scored, too.
    fn can_score_at_once(&mut self, results: &mut NodeResultCache) -> bool {
        if results.refused_as_a_whole().is_some() {
            return false;
        }
        let ctx = self.attempt.on(self.cluster);
        let feasible = results.take_feasible();
        let can = global_plugins::score_overridden_alone(&results.globals, &ctx, &feasible);
        results.give_feasible(feasible);
        if can {
            results.run_scores(&ctx, self.tally);
        }
        can
    }

    /// Whether what trials find of overridden nodes holds for the next pod of this shape too, while the nodes stay as they are.
    fn lasts(&mut self, results: &mut NodeResultCache) -> bool {
        let ctx = self.attempt.on(self.cluster);
        let mut all = self.attempt.profile.node_overrides.iter().filter(|enabled| !ctx.aside.has(enabled));
        let last = |of: &dyn NodeOverrides| of.lasts(ctx.view, ctx.spec);
        if !all.all(|enabled| enabled.plugin.node_overrides().is_none_or(last)) {
            return false;
        }
        let feasible = results.take_feasible();
        let idle = global_plugins::are_scores_idle(&results.globals, &ctx, &feasible);
        results.give_feasible(feasible);
        idle
    }

    /// Filters an overridden node in a trial. Notes the numbers behind its refusal, or scores it if `is_scored`. What `lasts` is
    /// kept.
    fn judge(
        &mut self,
        results: &mut NodeResultCache,
        node: NodeIdx,
        is_scored: bool,
        lasts: bool,
    ) -> Option<Cause> {
        if lasts && let Some(known) = results.recall(node, is_scored) {
            return known;
        }
        let absent: Absent = results.absent_on(node).into();
        let of_pod = (self.attempt.id, self.attempt.pod);
        let in_view = (View::new(self.cluster), &*self.attempt.pod.spec, self.attempt.pod);
        let mut refused = None;
        for room in judged_without(rooms(self.attempt.profile, in_view, node, &absent), &absent) {
            let (attempt, scratch, tally) = (self.attempt, &mut *self.scratch, &mut *self.tally);
            let judged = self.cluster.probe(|cluster| {
                leave(cluster, &room);
                let ctx = attempt.without(&room, cluster);
                let (cause, is_local) = results.ask_about(&ctx, node, scratch, tally);
                match &cause {
                    Some(cause) if refused.is_none() => {
                        let measures = measure(&ctx, cause, &[node]);
                        results.change_overridden(node, |of| of.measures = measures);
                    }
                    None if is_scored && room == absent => results.score_overridden(&ctx, node, &[], tally),
                    _ => {}
                }
                if lasts && is_local {
                    results.keep(node, cause.as_ref());
                }
                cause
            });
            match judged {
                None => return refused_at_reserve(self.cluster, self.attempt.profile, of_pod, node, &absent),
                Some(cause) => _ = refused.get_or_insert(cause),
            }
        }
        refused
    }

    /// Scores the feasible overridden nodes that are not scored yet, each in a trial. `start` is where a sampled search begins.
    pub(crate) fn score_overridden_nodes(&mut self, results: &mut NodeResultCache, start: usize) {
        let unscored = results.overridden().iter().filter(|of| !of.is_scored).map(|of| of.node);
        let feasible: Vec<NodeIdx> = unscored.filter(|node| results.is_feasible(*node)).collect();
        if feasible.is_empty() || results.refused_as_a_whole().is_some() {
            return;
        }
        let attempt = self.attempt;
        let ctx = attempt.on(self.cluster);
        results.run_scores(&ctx, self.tally);
        let rivals = results.rivals(&ctx, start);
        for node in feasible {
            let tally = &mut *self.tally;
            let absent: Absent = results.absent_on(node).into();
            self.cluster.probe(|cluster| {
                leave(cluster, &absent);
                results.score_overridden(&attempt.without(&absent, cluster), node, &rivals, tally);
            });
        }
    }
}

impl NodeResultCache {
    /// Returns the overridden nodes of this attempt, ascending.
    pub(crate) fn overridden(&self) -> &[Overridden] {
        self.attempt.as_ref().map_or(&[], |attempt| &attempt.overridden)
    }

    /// Returns the pods that are absent from a node for the pod of this attempt.
    pub(crate) fn absent_on(&self, node: NodeIdx) -> &[PodId] {
        find(self.overridden(), node).map_or(&[], |of| &of.absent)
    }

    fn change_overridden(&mut self, node: NodeIdx, change: impl FnOnce(&mut Overridden)) {
        let Some(attempt) = &mut self.attempt else { return };
        if let Ok(at) = attempt.overridden.binary_search_by_key(&node, |of| of.node) {
            change(&mut attempt.overridden[at]);
        }
    }

    /// Whether the node exists and PreFilter did not leave it out.
    fn is_evaluated(&self, node: NodeIdx) -> bool {
        let cause = self.current().0.get(node.index());
        cause.is_some_and(|cause| *cause != CauseId::ABSENT && *cause != CauseId::NOT_EVALUATED)
    }

    /// Scores one node in the state of a trial. `rivals` are the nodes that it is compared with.
    fn score_overridden(
        &mut self,
        ctx: &CycleContext<'_>,
        node: NodeIdx,
        rivals: &[NodeIdx],
        tally: &mut [PluginTally],
    ) {
        self.work += work::ASK;
        let global = global_plugins::raw_scores(&self.globals, ctx, (node, rivals), tally);
        let cached = self.scores.as_mut().map(|scores| scores.raw_in(ctx, node, tally));
        self.change_overridden(node, |of| {
            (of.cached, of.global, of.is_scored) = (cached.unwrap_or_default(), global, true);
        });
    }
}
