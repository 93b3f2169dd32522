//! Caches the results of every node for the pods of one shape. Start at [`NodeResultCache::run_filters`].
//!
//! The result of a node is the cause that refuses it, or its raw scores and their total. It is recomputed only when
//! something that it reads changed: the pods on the node (most often), the node object, or the set of nodes. When the
//! greatest raw score of a plugin that normalises changes, all totals change by what it gives. A gang of equal members costs one
//! scan of all nodes and one result per placement. Plugins that read anything else (pods on other nodes, volumes) and
//! nominations are not cached; see `global_plugins`.
//!
//! *Invariant:* decisions are the same as with results computed anew each time; a test compares them.

use pellucid_framework::profile::{Aside, Profile};
use pellucid_framework::{Cause, Nodes, View};
use pellucid_model::cause::{CauseId, Causes};
use pellucid_model::collections::FxHashSet;
use pellucid_model::time::{NoProbe, Probe};
use pellucid_model::{NodeIdx, PodSpec};

use crate::attempt::alignment::Alignment;
use crate::attempt::chain::{self, FilterChain, PluginTally, Prepared};
use crate::attempt::changed_nodes::ChangedNodes;
use crate::attempt::global_plugins::{Attempt, Globals};
use crate::attempt::kept_overrides::KeptOverrides;
use crate::attempt::nominations::Claimant;
use crate::attempt::refusal::LastRefusal;
use crate::attempt::reserve::ForReserve;
use crate::attempt::scores::{Recomputed, Scores};
use crate::attempt::work;

/// The inputs of a cycle.
#[derive(Clone, Copy)]
pub struct CycleContext<'a> {
    /// The profile that schedules the pod.
    pub profile: &'a Profile,
    /// View of the cluster state.
    pub view: View<'a>,
    /// The pod's spec.
    pub spec: &'a PodSpec,
    /// The spec without what says nothing about nodes ([`Shapes`](pellucid_cluster::shapes::Shapes)). Pods of different
    /// shapes share it, so it is in the processor's cache more often than theirs.
    pub node_spec: &'a PodSpec,
    /// The pod, where pods that are nominated count against it.
    pub claimant: Option<Claimant<'a>>,
    /// The plugins that the pod does not concern. They are not asked at every attempt.
    pub aside: Aside,
    /// Times the plugins. No decision depends on it.
    pub probe: &'a dyn Probe,
}

impl<'a> CycleContext<'a> {
    /// Makes the inputs for a pod with this spec, of which nothing else is known.
    pub fn new(profile: &'a Profile, view: View<'a>, spec: &'a PodSpec) -> Self {
        Self {
            profile,
            view,
            spec,
            node_spec: spec,
            claimant: None,
            aside: Aside::default(),
            probe: &NoProbe,
        }
    }

    /// Returns the index in `profile.filter` of the plugin behind a cause.
    pub(crate) fn place_of(&self, cause: &Cause) -> Option<usize> {
        self.profile.filter.iter().position(|e| e.plugin.name() == cause.plugin)
    }

    /// Returns the inputs for results that hold for all pods of the node shape.
    fn of_node_shape(self) -> Self {
        Self { spec: self.node_spec, ..self }
    }
}

/// The results of all nodes for one shape in one profile.
#[derive(Default)]
pub struct NodeResultCache {
    position: Option<(u64, u64)>,
    pub(crate) prepared: Prepared,
    pub(crate) causes: Causes,
    /// One entry per node slot.
    pub(crate) mask: Vec<CauseId>,
    pub(crate) n_feasible: usize,
    /// The feasible nodes, ascending; valid while `listed` is set.
    feasible: Vec<NodeIdx>,
    listed: bool,
    pub(crate) scores: Option<Scores>,
    /// Index of the first active filter that reads more than the node object.
    first_usage: usize,
    /// Per cause, whether its plugin comes before `first_usage`.
    lasting: Vec<bool>,
    pub(crate) alignment: Alignment,
    /// The plugins that hold nothing for the pods at Reserve.
    pub(crate) idle_at_reserve: Aside,
    /// What PreFilter of the others prepared for the pods.
    pub(crate) for_reserve: ForReserve,
    /// Nodes that passed the filters and were refused by `alignment`.
    pub(crate) unaligned: FxHashSet<NodeIdx>,
    /// Nodes in tie order, for sampled searches.
    pub(crate) order: Vec<NodeIdx>,
    /// The feasible nodes that the last search found, if it was sampled.
    pub(crate) sample: Vec<NodeIdx>,
    scratch: Scratch,
    pub(crate) last_refusal: LastRefusal,
    pub(crate) globals: Globals,
    /// Results for the current attempt only, if they differ from the cached ones.
    pub(crate) attempt: Option<Attempt>,
    /// Results of overridden nodes that hold for the next attempt too.
    pub(crate) kept: KeptOverrides,
    /// Whether a plugin that may read more than the node took part in the last attempt.
    pub(crate) reads_others: bool,
    /// Work done since it was last taken; see `work` for its unit.
    pub(crate) work: u64,
}

/// Buffers that every catch-up reuses.
#[derive(Default)]
struct Scratch {
    changed: ChangedNodes,
    by_usage: Vec<NodeIdx>,
    by_object: Vec<NodeIdx>,
    touched: Vec<Recomputed>,
}

fn is_candidate(cause: CauseId) -> bool {
    cause != CauseId::ABSENT && cause != CauseId::NOT_EVALUATED
}

impl NodeResultCache {
    /// Brings the results up to date. If `reuse` is false, computes all of them anew.
    pub fn run_filters(&mut self, ctx: &CycleContext<'_>, reuse: bool, tally: &mut [PluginTally]) {
        let ctx = &ctx.of_node_shape();
        let changes = ctx.view.cluster().changes();
        let head = changes.head();
        let reusable = reuse && self.mask.len() == ctx.view.cluster().n_slots();
        let since = self.position.filter(|_| reusable).and_then(|at| changes.since(at));
        match since {
            Some(changed) => {
                let mut scratch = std::mem::take(&mut self.scratch);
                scratch.changed.collect(changed, self.mask.len());
                self.kept.forget(|node| scratch.changed.has(node));
                if !scratch.changed.is_empty() {
                    self.catch_up(ctx, &mut scratch, tally);
                }
                self.scratch = scratch;
            }
            None => self.rebuild(ctx, None, tally),
        }
        self.position = Some(head);
    }

    /// Computes the result of one node; the others count as not evaluated. For questions about that node alone.
    pub(crate) fn look_at(&mut self, ctx: &CycleContext<'_>, node: NodeIdx, tally: &mut [PluginTally]) {
        self.rebuild(ctx, Some(node), tally);
        self.position = None;
    }

    fn rebuild(&mut self, ctx: &CycleContext<'_>, only: Option<NodeIdx>, tally: &mut [PluginTally]) {
        self.last_refusal = LastRefusal::default();
        self.listed = false;
        self.scores = None;
        self.causes = Causes::default();
        self.lasting.clear();
        self.unaligned.clear();
        self.kept.clear();
        self.alignment = Alignment::of(ctx.profile, ctx.view, ctx.spec);
        // What is held on NUMA nodes depends on what all providers agree on.
        self.idle_at_reserve = match self.alignment.is_idle() {
            true => ctx.profile.idle_at_reserve(ctx.view, ctx.spec),
            false => Aside::default(),
        };
        self.order.clear();
        self.mask.clear();
        self.mask.resize(ctx.view.cluster().n_slots(), CauseId::ABSENT);
        for node in ctx.view.nodes() {
            self.mask[node.index()] = CauseId::NOT_EVALUATED;
        }
        self.globals = Globals::of(ctx.profile);
        let local = chain::places(ctx.profile, |e| !chain::filters_globally(e));
        self.prepared = chain::prepare(&local, ctx, tally);
        self.for_reserve = ForReserve::of(ctx.profile, self.idle_at_reserve, &self.prepared);
        self.n_feasible = 0;
        if self.prepared.refused.is_none() {
            let mut nodes = match &self.prepared.candidates {
                Some(some) => some.clone(),
                None => ctx.view.nodes().to_vec(),
            };
            nodes.retain(|node| only.is_none_or(|only| *node == only));
            self.work += nodes.len() as u64;
            self.first_usage = FilterChain { ctx, values: &self.prepared.values }.first_usage();
            self.filter(ctx, 0, &mut nodes, tally);
            self.n_feasible = nodes.len();
        }
    }

    fn filter(
        &mut self,
        ctx: &CycleContext<'_>,
        from: usize,
        nodes: &mut Vec<NodeIdx>,
        tally: &mut [PluginTally],
    ) {
        if !self.unaligned.is_empty() {
            for node in nodes.iter() {
                self.unaligned.remove(node);
            }
        }
        let chain = FilterChain { ctx, values: &self.prepared.values };
        chain.run(from, nodes, &mut self.causes, &mut self.mask, tally);
        if !self.alignment.is_idle() {
            self.work += work::ALIGN * nodes.len() as u64;
            let unaligned = &mut self.unaligned;
            let nodes = &mut Nodes::new(nodes, &mut self.causes, &mut self.mask);
            self.alignment.filter(ctx, nodes, tally, |node| _ = unaligned.insert(node));
        }
        for (_, cause) in self.causes.iter().skip(self.lasting.len()) {
            self.lasting.push(ctx.place_of(cause).is_some_and(|at| at < self.first_usage));
        }
    }

    fn catch_up(&mut self, ctx: &CycleContext<'_>, scratch: &mut Scratch, tally: &mut [PluginTally]) {
        if self.prepared.refused.is_some() {
            return;
        }
        let Scratch { changed, by_usage, by_object, touched } = scratch;
        let objects = changed.objects();
        by_usage.clear();
        // Of the nodes whose pods changed.
        let mut are_feasible = true;
        changed.for_each_usage(|node| {
            let cause = self.mask[node.index()];
            // A refusal by a plugin that does not read pods stays valid.
            let lasts = cause.is_cause()
                && self.lasting.get(usize::from(cause.0) - 1) == Some(&true)
                && !self.unaligned.contains(&node);
            if !lasts && is_candidate(cause) && objects.binary_search(&node).is_err() {
                by_usage.push(node);
                are_feasible &= cause.is_feasible();
                self.last_refusal.note_change(node, cause);
            }
        });
        by_object.clear();
        by_object.extend(objects.iter().copied().filter(|node| is_candidate(self.mask[node.index()])));
        let n_usage = by_usage.len();
        if n_usage + by_object.len() == 0 {
            return;
        }
        let was = |node: NodeIdx| self.mask[node.index()].is_feasible();
        let of_usage =
            |node: &NodeIdx| Recomputed { node: *node, was: are_feasible || was(*node), object: false };
        let of_object = |node: &NodeIdx| Recomputed { node: *node, was: was(*node), object: true };
        touched.clear();
        touched.extend(by_usage.iter().map(of_usage));
        touched.extend(by_object.iter().map(of_object));
        self.work += touched.len() as u64;
        if let Some(scores) = &self.scores {
            scores.prefetch(by_usage);
        }
        self.filter(ctx, self.first_usage, by_usage, tally);
        if are_feasible && by_object.is_empty() && by_usage.len() == n_usage {
            if let Some(scores) = &mut self.scores {
                scores.catch_up_usage(ctx, &self.mask, by_usage, tally);
            }
            return;
        }
        if !by_object.is_empty() {
            self.last_refusal.forget_groups();
        }
        self.filter(ctx, 0, by_object, tally);
        for row in touched.iter() {
            let is = self.mask[row.node.index()].is_feasible();
            self.n_feasible = self.n_feasible + usize::from(is) - usize::from(row.was);
            self.listed &= is == row.was;
        }
        if let Some(scores) = &mut self.scores {
            scores.catch_up(ctx, &self.mask, touched, tally);
        }
    }

    /// Scores the feasible nodes, unless they are scored already.
    pub(crate) fn run_scores(&mut self, ctx: &CycleContext<'_>, tally: &mut [PluginTally]) -> &mut Scores {
        if self.scores.is_none() {
            self.work += self.n_feasible as u64;
        }
        let (mask, has_hints) = (&self.mask, !self.alignment.is_idle());
        self.scores.get_or_insert_with(|| Scores::make(&ctx.of_node_shape(), mask, has_hints, tally))
    }

    /// Returns the best feasible node by total and tie order, if the nodes are scored.
    pub(crate) fn best(&mut self, ctx: &CycleContext<'_>) -> Option<(NodeIdx, i64)> {
        self.scores.as_mut()?.best(ctx)
    }

    /// Returns the cause of every node slot in this attempt, and the table of causes.
    pub(crate) fn current(&self) -> (&[CauseId], &Causes) {
        match &self.attempt {
            Some(attempt) => (&attempt.mask, &attempt.causes),
            None => (&self.mask, &self.causes),
        }
    }

    /// Iterates over the feasible nodes in ascending order.
    pub fn feasible(&self) -> impl Iterator<Item = NodeIdx> {
        let feasible = self.current().0.iter().enumerate().filter(|(_, c)| c.is_feasible());
        feasible.map(|(i, _)| NodeIdx(i as u32))
    }

    /// Returns why PreFilter refused the pod as a whole, if it did.
    pub fn refused_as_a_whole(&self) -> Option<&Cause> {
        let of_attempt = self.attempt.as_ref().and_then(|a| a.refused.as_ref());
        of_attempt.or(self.prepared.refused.as_ref().map(|(_, cause)| cause))
    }

    /// Takes the list of feasible nodes, to be returned with [`Self::give_feasible`]. The list is made if there is no
    /// valid one; most changes leave it valid.
    pub(crate) fn take_feasible(&mut self) -> Vec<NodeIdx> {
        let mut list = std::mem::take(&mut self.feasible);
        if !self.listed || !self.is_feasible_as_cached() {
            list.clear();
            list.extend(self.feasible());
        }
        list
    }

    pub(crate) fn give_feasible(&mut self, list: Vec<NodeIdx>) {
        self.listed = self.is_feasible_as_cached();
        self.feasible = list;
    }

    /// Whether a slot has no node object.
    pub(crate) fn is_absent(&self, node: NodeIdx) -> bool {
        self.mask.get(node.index()).is_none_or(|cause| *cause == CauseId::ABSENT)
    }

    /// Returns why the node was refused, or `None` if no plugin refused it.
    pub fn cause(&self, node: NodeIdx) -> Option<&Cause> {
        let (mask, causes) = self.current();
        causes.get(*mask.get(node.index())?)
    }
}

/// Orders nodes with equal totals: the greater tie hash first, then by name.
pub fn tie_order(view: View<'_>, a: NodeIdx, b: NodeIdx) -> std::cmp::Ordering {
    let ties = view.cluster().ties();
    ties[b.index()].cmp(&ties[a.index()]).then_with(|| view.name(a).cmp(view.name(b)))
}
