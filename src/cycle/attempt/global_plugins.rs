//! Results that hold for one attempt only: those of plugins that may read anything, of nominations and of overridden
//! nodes.
//!
//! Other results are cached per shape. Plugins that read pods on other nodes, volumes or workloads run at every
//! attempt, on the nodes that the cached results leave feasible. For a pod that has nothing to do with such a plugin,
//! only its PreFilter runs and skips; then there is no [`Attempt`], and the cached results decide alone.

use pellucid_framework::plugin::MAX_SCORE;
use pellucid_framework::profile::{Enabled, Profile};
use pellucid_framework::{Code, CycleValue, Nodes};
use pellucid_model::NodeIdx;
use pellucid_model::cause::{Cause, CauseId, Causes};
use smallvec::SmallVec;

use crate::attempt::chain::{self, FilterChain, Places, PluginTally};
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::overrides::{self, Overridden};

/// The results for one attempt, which replace the cached ones.
pub(crate) struct Attempt {
    /// One entry per node slot.
    pub(crate) mask: Vec<CauseId>,
    pub(crate) causes: Causes,
    pub(crate) n_feasible: usize,
    /// Why PreFilter refused the pod as a whole.
    pub(crate) refused: Option<Cause>,
    /// The plugins that restricted the nodes for this attempt, by their index in the profile.
    pub(crate) restricting: SmallVec<[usize; 2]>,
    /// The nodes that the pod sees without some pods, ascending.
    pub(crate) overridden: Vec<Overridden>,
    /// Whether other nodes are the same as in the cached results, and which nodes are feasible.
    pub(crate) beside: Beside,
}

/// How the results of an attempt differ from the cached ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// Whether results of nodes may differ that are not overridden.
    pub(crate) others_differ: bool,
    /// Whether an overridden node is feasible that is refused otherwise, or the other way round.
    pub(crate) feasible_differ: bool,
}

/// The scores that a plugin which runs at every attempt gives some nodes, in their order.
pub(crate) struct GlobalScore {
    /// Index in `profile.score`.
    pub(crate) entry: usize,
    weight: i64,
    raw: Vec<i64>,
    normalized: Vec<i64>,
}

impl GlobalScore {
    /// Adds the weighted scores to the totals of the nodes.
    pub(crate) fn add_to(&self, totals: &mut [i64]) {
        for (total, normalized) in totals.iter_mut().zip(&self.normalized) {
            *total += normalized * self.weight;
        }
    }

    /// Returns the raw, normalised and weighted score of a node.
    pub(crate) fn share(&self, at: usize) -> (i64, i64, i64) {
        (self.raw[at], self.normalized[at], self.normalized[at] * self.weight)
    }
}

impl NodeResultCache {
    /// Runs the filters that must run at every attempt. The cached results must be up to date.
    pub fn run_global_filters(&mut self, ctx: &CycleContext<'_>, tally: &mut [PluginTally]) {
        self.attempt = None;
        self.reads_others = false;
        let prepared = chain::prepare(&self.globals.filters, ctx, tally);
        if let Some((place, cause)) = prepared.refused {
            // If two plugins refuse the pod as a whole, one that no preemption resolves counts, else the first in order.
            self.reads_others = true;
            let rank = |place: usize, cause: &Cause| (cause.code == Code::Unschedulable, place);
            let own = rank(place, &cause);
            if self.prepared.refused.as_ref().is_none_or(|(place, cause)| own < rank(*place, cause)) {
                self.attempt().beside.others_differ = true;
                self.attempt().refused = Some(cause);
                self.attempt().n_feasible = 0;
            }
            return;
        }
        self.reads_others = prepared.is_concerned;
        if self.prepared.refused.is_some() || !prepared.is_concerned {
            return;
        }
        self.work += (ctx.view.nodes().len() * prepared.values.len()) as u64;
        self.attempt().beside.others_differ = true;
        if let Some(only) = &prepared.candidates {
            let attempt = self.attempt();
            attempt.restricting.clone_from(&prepared.restricting);
            for (i, cause) in attempt.mask.iter_mut().enumerate() {
                let is_out = only.binary_search(&NodeIdx(i as u32)).is_err();
                if is_out && *cause != CauseId::ABSENT {
                    attempt.n_feasible -= usize::from(cause.is_feasible());
                    *cause = CauseId::NOT_EVALUATED;
                }
            }
        }
        for value in &prepared.values {
            self.filter_globally(ctx, value, tally);
        }
    }

    /// Runs one filter over the feasible nodes and over those that a later filter, or alignment, refused: the first in
    /// order names the cause, and alignment comes after all filters.
    fn filter_globally(
        &mut self,
        ctx: &CycleContext<'_>,
        value: &(usize, CycleValue),
        tally: &mut [PluginTally],
    ) {
        let place = value.0;
        self.attempt();
        let Some(attempt) = &mut self.attempt else { return };
        let later = attempt.causes.iter().map(|(_, cause)| ctx.place_of(cause) > Some(place));
        let later: Vec<bool> = later.collect();
        let later = |id: CauseId| id.is_cause() && later.get(usize::from(id.0) - 1) == Some(&true);
        // A node that a filter has refused since has another cause than the cached one.
        let unaligned =
            |node: NodeIdx, id: CauseId| self.unaligned.contains(&node) && self.mask[node.index()] == id;
        let all = attempt.mask.iter().enumerate().map(|(i, c)| (NodeIdx(i as u32), *c));
        let asked = all.filter(|(node, c)| c.is_feasible() || later(*c) || unaligned(*node, *c));
        let asked: Vec<(NodeIdx, CauseId)> = asked.collect();
        let mut nodes: Vec<NodeIdx> = asked.iter().map(|(n, _)| *n).collect();
        let chain = FilterChain { ctx, values: std::slice::from_ref(value) };
        chain.run(place, &mut nodes, &mut attempt.causes, &mut attempt.mask, tally);
        for (node, before) in asked {
            let cause = &mut attempt.mask[node.index()];
            if cause.is_feasible() {
                *cause = before;
            } else if before.is_feasible() {
                attempt.n_feasible -= 1;
            }
        }
    }

    /// Sets the result of one node in this attempt: why it is refused, or `None` if it is feasible.
    pub(crate) fn set_result(&mut self, node: NodeIdx, cause: Option<Cause>) {
        let attempt = self.attempt();
        let now = cause.map_or(CauseId::FEASIBLE, |cause| attempt.causes.id(cause));
        let before = std::mem::replace(&mut attempt.mask[node.index()], now);
        attempt.n_feasible += usize::from(now.is_feasible());
        attempt.n_feasible -= usize::from(before.is_feasible());
        attempt.beside.others_differ |= overrides::find(&attempt.overridden, node).is_none();
        attempt.beside.feasible_differ |= now.is_feasible() != before.is_feasible();
    }

    /// Whether the nodes that are feasible in this attempt are those of the cached results.
    pub(crate) fn is_feasible_as_cached(&self) -> bool {
        self.attempt.as_ref().is_none_or(|attempt| attempt.beside == Beside::default())
    }

    /// Replaces the refusal of the pod as a whole by one of every node.
    pub(crate) fn refuse_every_node(&mut self) {
        let attempt = self.attempt();
        let Some(cause) = attempt.refused.take() else { return };
        let id = attempt.causes.id(cause);
        attempt.beside.others_differ = true;
        for known in attempt.mask.iter_mut().filter(|known| known.is_feasible() || known.is_cause()) {
            *known = id;
        }
        attempt.n_feasible = 0;
    }

    pub(crate) fn attempt(&mut self) -> &mut Attempt {
        let (mask, causes, n_feasible) = (&self.mask, &self.causes, self.n_feasible);
        self.attempt.get_or_insert_with(|| Attempt {
            mask: mask.clone(),
            causes: causes.clone(),
            n_feasible,
            refused: None,
            restricting: SmallVec::new(),
            overridden: Vec::new(),
            beside: Beside::default(),
        })
    }

    /// Whether a node is feasible in this attempt.
    pub(crate) fn is_feasible(&self, node: NodeIdx) -> bool {
        self.current().0.get(node.index()).is_some_and(|c| c.is_feasible())
    }

    /// Returns why a filter refuses a node in the current state, which may differ from that of the cached results by
    /// pods on that node and what follows from them; and whether no plugin took part that reads more than the node.
    pub(crate) fn ask_about(
        &self,
        ctx: &CycleContext<'_>,
        node: NodeIdx,
        scratch: &mut OneNode,
        tally: &mut [PluginTally],
    ) -> (Option<Cause>, bool) {
        let global = chain::prepare(&self.globals.filters, ctx, tally);
        if let Some((_, cause)) = global.refused {
            return (Some(cause), false);
        }
        let local = self.prepared.values.iter();
        let mut values: SmallVec<[_; 16]> = local.chain(&global.values).cloned().collect();
        values.sort_by_key(|(at, _)| *at);
        let OneNode { nodes, causes, mask } = scratch;
        *causes = Causes::default();
        nodes.clear();
        nodes.push(node);
        mask.resize(ctx.view.cluster().n_slots().max(mask.len()), CauseId::FEASIBLE);
        FilterChain { ctx, values: &values }.run(0, nodes, causes, mask, tally);
        self.alignment.filter(ctx, &mut Nodes::new(nodes, causes, mask), tally, |_| {});
        (causes.get(mask[node.index()]).cloned(), !global.is_concerned)
    }
}

/// Buffers for queries about one node after another. What the last query left in them does not matter.
#[derive(Default)]
pub(crate) struct OneNode {
    nodes: Vec<NodeIdx>,
    causes: Causes,
    mask: Vec<CauseId>,
}

/// The indices of a profile's plugins that run at every attempt.
#[derive(Clone, Default)]
pub(crate) struct Globals {
    /// Plugins that filter, or refuse pods as a whole.
    filters: Places,
    /// Indices in `profile.score` and in `profile.pre_score`.
    pub(crate) scores: SmallVec<[(usize, Option<usize>); 4]>,
}

impl Globals {
    pub(crate) fn of(profile: &Profile) -> Self {
        let same = |list: &[Enabled], index: usize| list.iter().position(|e| e.index == index);
        let scores = profile.score.iter().enumerate().filter(|(_, e)| chain::scores_globally(e));
        let scores = scores.map(|(at, e)| (at, same(&profile.pre_score, e.index))).collect();
        Self { filters: chain::places(profile, chain::filters_globally), scores }
    }
}

/// Scores nodes with the plugins that run at every attempt. `overridden` has the raw scores of trials.
pub(crate) fn global_scores(
    globals: &Globals,
    ctx: &CycleContext<'_>,
    nodes: &[NodeIdx],
    overridden: &[Overridden],
    tally: &mut [PluginTally],
) -> SmallVec<[GlobalScore; 2]> {
    let mut scores = SmallVec::new();
    for (entry, pre_score) in &globals.scores {
        let (entry, enabled) = (*entry, &ctx.profile.score[*entry]);
        if ctx.aside.has(enabled) {
            continue;
        }
        let Some(plugin) = enabled.plugin.score() else { continue };
        let pre_score = pre_score.map(|at| &ctx.profile.pre_score[at]);
        let Some(value) = chain::prepare_score(pre_score, ctx, nodes) else { continue };
        let mut raw = Vec::new();
        chain::score((enabled, plugin, &value), ctx, nodes, &mut raw, tally);
        if !overridden.is_empty() {
            for (node, raw) in nodes.iter().zip(&mut raw) {
                let own = overrides::find(overridden, *node).and_then(|of| of.global(entry));
                *raw = own.unwrap_or(*raw);
            }
        }
        let mut normalized = raw.clone();
        plugin.normalize_all(ctx.view, &value, nodes, &mut normalized);
        debug_assert!(normalized.iter().all(|s| (0..=MAX_SCORE).contains(s)), "{}", enabled.plugin.name());
        scores.push(GlobalScore { entry, weight: enabled.weight, raw, normalized });
    }
    scores
}

/// Whether the plugins that run at every attempt score overridden nodes alone, or skip the pod.
pub(crate) fn score_overridden_alone(globals: &Globals, ctx: &CycleContext<'_>, nodes: &[NodeIdx]) -> bool {
    globals.scores.iter().all(|(entry, pre_score)| {
        let enabled = &ctx.profile.score[*entry];
        let Some(plugin) = enabled.plugin.score().filter(|_| !ctx.aside.has(enabled)) else { return true };
        let pre_score = pre_score.map(|at| &ctx.profile.pre_score[at]);
        plugin.scores_overridden_alone() || chain::prepare_score(pre_score, ctx, nodes).is_none()
    })
}

/// Returns whether no plugin that runs at every attempt scores the pod's nodes.
pub(crate) fn are_scores_idle(globals: &Globals, ctx: &CycleContext<'_>, nodes: &[NodeIdx]) -> bool {
    globals.scores.iter().all(|(entry, pre_score)| {
        let enabled = &ctx.profile.score[*entry];
        let is_idle = ctx.aside.has(enabled) || enabled.plugin.score().is_none();
        let pre_score = pre_score.map(|at| &ctx.profile.pre_score[at]);
        is_idle || chain::prepare_score(pre_score, ctx, nodes).is_none()
    })
}

/// Returns the raw scores of one of some nodes by the plugins that run at every attempt, each with its index in
/// `profile.score`; 0 where the plugin skips.
pub(crate) fn raw_scores(
    globals: &Globals,
    ctx: &CycleContext<'_>,
    (node, nodes): (NodeIdx, &[NodeIdx]),
    tally: &mut [PluginTally],
) -> SmallVec<[(usize, i64); 2]> {
    let (mut scores, mut raw) = (SmallVec::new(), Vec::new());
    for (entry, pre_score) in &globals.scores {
        let enabled = &ctx.profile.score[*entry];
        if ctx.aside.has(enabled) {
            continue;
        }
        let Some(plugin) = enabled.plugin.score() else { continue };
        let pre_score = pre_score.map(|at| &ctx.profile.pre_score[at]);
        raw.clear();
        if let Some(value) = chain::prepare_score(pre_score, ctx, nodes) {
            chain::score((enabled, plugin, &value), ctx, &[node], &mut raw, tally);
        }
        scores.push((*entry, raw.first().copied().unwrap_or(0)));
    }
    scores
}
