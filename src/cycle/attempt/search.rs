//! Selects a node from the results of an attempt, or makes the refusal that says why there is none.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::preemptions::{Lack, LackedAmount};
use pellucid_framework::plugin::{Measure, PreFiltered};
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, View};
use pellucid_model::cause::CauseId;
use pellucid_model::{NodeIdx, PodSpec};
use pellucid_queue::RefusedBy;
use pellucid_recording::{Decision, Group, GroupMeasure, Placement, Refusal};
use smallvec::SmallVec;

use crate::attempt::alignment;
use crate::attempt::chain::{self, PluginTally};
use crate::attempt::global_plugins::{self, GlobalScore};
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache, tie_order};
use crate::attempt::overrides::{self, Overridden};

/// Number of example nodes per group of a refusal.
const EXAMPLES: usize = 3;
/// A sampled search looks for at least this many feasible nodes, as kube-scheduler does.
const MIN_FEASIBLE: usize = 100;

/// A row of a score table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scored {
    /// Slot of the node.
    pub node: NodeIdx,
    /// Sum of the weighted scores.
    pub total: i64,
    /// Per entry of `profile.score`: raw, normalised and weighted score; `None` if the plugin skipped.
    pub shares: Vec<Option<(i64, i64, i64)>>,
}

impl NodeResultCache {
    /// Selects a node, or returns the refusal. `start` is the index at which a sampled search begins; each search
    /// advances it.
    pub fn select_node(
        &mut self,
        ctx: &CycleContext<'_>,
        start: &mut usize,
        tally: &mut [PluginTally],
    ) -> Decision {
        let n_feasible = self.attempt.as_ref().map_or(self.n_feasible, |a| a.n_feasible);
        self.sample.clear();
        if n_feasible == 0 {
            return Decision::Refuse(self.refuse(ctx));
        }
        let total = ctx.view.nodes().len();
        let evaluated = self.n_candidates(ctx);
        if let Some(wanted) = sample_size(ctx.profile.percentage_of_nodes_to_score, evaluated) {
            return self.decide_sampled(ctx, wanted, start, tally);
        }
        let chosen = if self.attempt.is_some() || !self.globals.scores.is_empty() {
            let feasible = self.take_feasible();
            let chosen = self.choose(ctx, &feasible, tally);
            self.give_feasible(feasible);
            chosen
        } else if n_feasible == 1 {
            let scored = self.best(ctx).map(|(node, _)| node);
            scored.or_else(|| self.feasible().next()).map(|node| (node, None))
        } else {
            self.run_scores(ctx, tally);
            self.best(ctx).map(|(node, score)| (node, Some(score)))
        };
        let Some((node, score)) = chosen else { return Decision::Refuse(self.refuse(ctx)) };
        let (feasible, evaluated, total) = (n_feasible as u32, evaluated as u32, total as u32);
        Decision::Place(Placement { node, score, feasible, evaluated, total })
    }

    /// Returns the number of nodes that PreFilter left.
    fn n_candidates(&self, ctx: &CycleContext<'_>) -> usize {
        self.prepared.candidates.as_ref().map_or(ctx.view.nodes().len(), Vec::len)
    }

    /// Returns the best of some feasible nodes, with its total if there was a choice.
    fn choose(
        &mut self,
        ctx: &CycleContext<'_>,
        nodes: &[NodeIdx],
        tally: &mut [PluginTally],
    ) -> Option<(NodeIdx, Option<i64>)> {
        if let [only] = nodes {
            return Some((*only, None));
        }
        if let Some(best) = self.choose_beside(ctx, nodes, tally) {
            return Some(best);
        }
        let global = global_plugins::global_scores(&self.globals, ctx, nodes, self.overridden(), tally);
        self.work += (nodes.len() * global.len()) as u64;
        if global.is_empty() && self.attempt.is_none() && nodes.len() == self.n_feasible {
            self.run_scores(ctx, tally);
            return self.best(ctx).map(|(node, score)| (node, Some(score)));
        }
        self.run_scores(ctx, tally);
        let totals = self.totals_over(nodes, &global)?;
        let totals = nodes.iter().copied().zip(totals);
        let best = totals.min_by(|(a, x), (b, y)| y.cmp(x).then_with(|| tie_order(ctx.view, *a, *b)));
        best.map(|(node, score)| (node, Some(score)))
    }

    /// Does the same where the cached totals of all but the overridden nodes hold for this attempt: then only the overridden
    /// ones are looked at, and the best of the others.
    fn choose_beside(
        &mut self,
        ctx: &CycleContext<'_>,
        nodes: &[NodeIdx],
        tally: &mut [PluginTally],
    ) -> Option<(NodeIdx, Option<i64>)> {
        let attempt = self.attempt.as_ref().filter(|attempt| !attempt.beside.others_differ)?;
        if attempt.overridden.is_empty() || nodes.len() != attempt.n_feasible {
            return None;
        }
        if !global_plugins::score_overridden_alone(&self.globals, ctx, nodes) {
            return None;
        }
        let overridden: &[Overridden] = &attempt.overridden;
        let own: Vec<NodeIdx> = overridden
            .iter()
            .map(|of| of.node)
            .filter(|node| attempt.mask[node.index()].is_feasible())
            .collect();
        let scores = self.scores.as_mut()?;
        let greatest = scores.greatest_beside(&self.mask, overridden, &own)?;
        let global = global_plugins::global_scores(&self.globals, ctx, &own, overridden, tally);
        let mut totals = scores.totals_over(&own, overridden, &greatest);
        global.iter().for_each(|score| score.add_to(&mut totals));
        let plain = scores.best_beside(ctx, overridden);
        let all = own.into_iter().zip(totals).chain(plain);
        let best = all.min_by(|(a, x), (b, y)| y.cmp(x).then_with(|| tie_order(ctx.view, *a, *b)));
        best.map(|(node, score)| (node, Some(score)))
    }

    /// Returns the totals of some nodes, or `None` when nothing was scored.
    fn totals_over(&self, nodes: &[NodeIdx], global: &[GlobalScore]) -> Option<Vec<i64>> {
        let (scores, overridden) = (self.scores.as_ref()?, self.overridden());
        let greatest = scores.greatest_over(nodes, overridden);
        let mut totals = scores.totals_over(nodes, overridden, &greatest);
        global.iter().for_each(|score| score.add_to(&mut totals));
        Some(totals)
    }

    /// Returns the feasible nodes with their totals, in no particular order.
    pub(crate) fn totals(
        &mut self,
        ctx: &CycleContext<'_>,
        tally: &mut [PluginTally],
    ) -> Vec<(NodeIdx, i64)> {
        let nodes: Vec<NodeIdx> = self.feasible().collect();
        self.run_scores(ctx, tally);
        let global = global_plugins::global_scores(&self.globals, ctx, &nodes, self.overridden(), tally);
        let totals = self.totals_over(&nodes, &global).unwrap_or_else(|| vec![0; nodes.len()]);
        nodes.into_iter().zip(totals).collect()
    }

    /// Searches as kube-scheduler does with `percentageOfNodesToScore`: visits nodes in a fixed order from a rotating
    /// start until enough are feasible. The fixed order is the tie order.
    fn decide_sampled(
        &mut self,
        ctx: &CycleContext<'_>,
        wanted: usize,
        start: &mut usize,
        tally: &mut [PluginTally],
    ) -> Decision {
        let (found, evaluated) = self.visit(ctx, wanted, *start);
        let total = self.order.len();
        *start = (*start % total + evaluated) % total;
        let Some((node, score)) = self.choose(ctx, &found, tally) else {
            return Decision::Refuse(self.refuse(ctx));
        };
        let (feasible, evaluated, total) = (found.len() as u32, evaluated as u32, total as u32);
        self.sample = found;
        Decision::Place(Placement { node, score, feasible, evaluated, total })
    }

    /// Returns the nodes among which a search that begins at `start` chooses.
    pub(crate) fn rivals(&mut self, ctx: &CycleContext<'_>, start: usize) -> Vec<NodeIdx> {
        match sample_size(ctx.profile.percentage_of_nodes_to_score, self.n_candidates(ctx)) {
            Some(wanted) => self.visit(ctx, wanted, start).0,
            None => {
                let nodes = self.take_feasible();
                let rivals = nodes.clone();
                self.give_feasible(nodes);
                rivals
            }
        }
    }

    /// Visits nodes until enough are feasible. Returns those, and how many were visited.
    fn visit(&mut self, ctx: &CycleContext<'_>, wanted: usize, start: usize) -> (Vec<NodeIdx>, usize) {
        if self.order.is_empty() {
            self.order.extend_from_slice(ctx.view.nodes());
            self.order.sort_unstable_by(|a, b| tie_order(ctx.view, *a, *b));
        }
        let (before, after) = self.order.split_at(start % self.order.len());
        let mut found = Vec::new();
        let mut evaluated = 0;
        for node in after.iter().chain(before).copied() {
            let cause = self.current().0[node.index()];
            if cause == CauseId::NOT_EVALUATED {
                continue;
            }
            evaluated += 1;
            if cause.is_feasible() {
                found.push(node);
                if found.len() == wanted {
                    break;
                }
            }
        }
        (found, evaluated)
    }

    /// Returns the best `n` of some feasible nodes with their scores, normalised as if there were no others, the best
    /// first.
    pub fn top_of(
        &mut self,
        ctx: &CycleContext<'_>,
        nodes: &[NodeIdx],
        n: usize,
        tally: &mut [PluginTally],
    ) -> Vec<Scored> {
        self.run_scores(ctx, tally);
        let Some(scores) = &self.scores else { return Vec::new() };
        let overridden = self.overridden();
        let greatest = scores.greatest_over(nodes, overridden);
        let global = global_plugins::global_scores(&self.globals, ctx, nodes, overridden, tally);
        let mut totals = scores.totals_over(nodes, overridden, &greatest);
        global.iter().for_each(|score| score.add_to(&mut totals));
        let mut totals: Vec<(i64, usize)> = totals.into_iter().zip(0..).collect();
        let order = |a: &(i64, usize), b: &(i64, usize)| {
            b.0.cmp(&a.0).then_with(|| tie_order(ctx.view, nodes[a.1], nodes[b.1]))
        };
        if n < totals.len() {
            totals.select_nth_unstable_by(n, order);
            totals.truncate(n);
        }
        totals.sort_unstable_by(order);
        let row = |(total, at): (i64, usize)| {
            let mut shares = scores.shares(ctx.profile.score.len(), (nodes[at], overridden), &greatest);
            for score in &global {
                shares[score.entry] = Some(score.share(at));
            }
            Scored { node: nodes[at], total, shares }
        };
        totals.into_iter().map(row).collect()
    }

    /// Iterates over the nodes among which the last decision chose.
    pub(crate) fn chosen_from(&self) -> impl Iterator<Item = NodeIdx> {
        let all = self.sample.is_empty().then(|| self.feasible());
        self.sample.iter().copied().chain(all.into_iter().flatten())
    }

    /// Returns the best `n` feasible nodes with their scores, the best first.
    pub fn top(&mut self, ctx: &CycleContext<'_>, n: usize, tally: &mut [PluginTally]) -> Vec<Scored> {
        let feasible: Vec<NodeIdx> = self.feasible().collect();
        self.top_of(ctx, &feasible, n, tally)
    }

    /// Returns the refusal, which accounts for every node. It is reused while the results do not change, unless the
    /// attempt has results of its own.
    fn refuse(&mut self, ctx: &CycleContext<'_>) -> Arc<Refusal> {
        if let (Some(known), None) = (&self.refusal, &self.attempt) {
            return known.clone();
        }
        let total = ctx.view.nodes().len();
        self.work += total as u64;
        let refusal = match self.refused_as_a_whole() {
            Some(cause) => refusal_of_pod(ctx.profile, cause.clone(), total),
            None => {
                let groups = self.groups(ctx);
                self.refusal_of_nodes(ctx.profile, groups, total)
            }
        };
        let refusal = Arc::new(refusal);
        if self.attempt.is_none() {
            self.refusal = Some(refusal.clone());
        }
        refusal
    }

    /// Returns the refusal by nodes. Plugins that left nodes out at PreFilter refused the pod there.
    fn refusal_of_nodes(&self, profile: &Profile, groups: Vec<Group>, total: usize) -> Refusal {
        let of_attempt = self.attempt.iter().flat_map(|attempt| &attempt.restricting);
        let restricting: SmallVec<[usize; 2]> =
            self.prepared.restricting.iter().chain(of_attempt).copied().collect();
        if let Some(first) = restricting.first().filter(|_| groups.is_empty()) {
            let plugin = profile.plugins[*first].name();
            let cause = chain::left_no_node(profile, ReasonCode::PluginsDisagree, plugin, &restricting);
            return refusal_of_pod(profile, cause, total);
        }
        let mut by = refused_by(profile, groups.iter().map(|g| &g.cause));
        restricting.iter().for_each(|plugin| by.insert(*plugin));
        let names = chain::plugin_names(profile, &restricting);
        Refusal::of_nodes(groups, total, by).with_left_out_by(&names)
    }

    fn groups(&self, ctx: &CycleContext<'_>) -> Vec<Group> {
        let (mask, causes) = self.current();
        let mut counts = vec![0; causes.iter().count()];
        for id in mask.iter().filter(|id| id.is_cause()) {
            counts[usize::from(id.0) - 1] += 1;
        }
        let mut members: Vec<Vec<NodeIdx>> = counts.into_iter().map(Vec::with_capacity).collect();
        for node in ctx.view.cluster().by_name() {
            let id = mask[node.index()];
            if id.is_cause() {
                members[usize::from(id.0) - 1].push(*node);
            }
        }
        let group = |((_, cause), nodes): ((CauseId, &Cause), Vec<NodeIdx>)| Group {
            cause: cause.clone(),
            count: nodes.len(),
            examples: nodes.iter().take(EXAMPLES).map(|n| ctx.view.name(*n).clone()).collect(),
            measures: self.measures(ctx, cause, &nodes),
        };
        causes.iter().zip(members).filter(|(_, nodes)| !nodes.is_empty()).map(group).collect()
    }

    /// Returns what a refused node lacks for the pod, or `None` when it was not refused by itself. An amount that only
    /// nominated pods make too small is left out.
    pub(crate) fn lack(&self, ctx: &CycleContext<'_>, node: NodeIdx) -> Option<Lack> {
        let cause = self.cause(node)?.clone();
        let all = self.measures(ctx, &cause, &[node]).into_iter().filter(|m| m.requested > m.available);
        let amounts = all.map(|m| LackedAmount {
            resource: m.resource,
            requested: m.requested,
            available: m.available,
        });
        Some(Lack { amounts: amounts.collect(), cause })
    }

    /// Returns the numbers behind a cause over the nodes refused with it: of overridden nodes those of their trials.
    fn measures(&self, ctx: &CycleContext<'_>, cause: &Cause, nodes: &[NodeIdx]) -> Vec<GroupMeasure> {
        let all = match self.overridden() {
            [] => measure(ctx, cause, nodes),
            overridden => {
                let is_plain = |node: &NodeIdx| overrides::find(overridden, *node).is_none();
                let plain: Vec<NodeIdx> = nodes.iter().copied().filter(is_plain).collect();
                let all = if plain.is_empty() { Vec::new() } else { measure(ctx, cause, &plain) };
                let own = nodes.iter().filter_map(|node| overrides::find(overridden, *node));
                own.flat_map(|of| &of.measures).fold(all, |all, one| with_nearest(ctx.view, all, one))
            }
        };
        let shown = |m: Measure| GroupMeasure {
            resource: m.resource,
            requested: m.requested,
            available: m.available,
            best_node: ctx.view.name(m.best_node).clone(),
        };
        all.into_iter().map(shown).collect()
    }
}

/// Returns the numbers behind a cause over some nodes.
pub(crate) fn measure(ctx: &CycleContext<'_>, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
    let filter = ctx.place_of(cause).and_then(|at| ctx.profile.filter[at].plugin.filter());
    filter.map_or_else(Vec::new, |filter| filter.measure(ctx.view, ctx.spec, cause, nodes))
}

/// Adds a measure, unless that of another node for the same resource is nearer to what the pod needs. The tie order
/// decides between equal nodes.
fn with_nearest(view: View<'_>, mut all: Vec<Measure>, one: &Measure) -> Vec<Measure> {
    let lack = |m: &Measure| m.requested.saturating_sub(m.available);
    let order = |a: &Measure, b: &Measure| {
        lack(a).cmp(&lack(b)).then_with(|| tie_order(view, a.best_node, b.best_node))
    };
    match all.iter_mut().find(|known| known.resource == one.resource) {
        Some(known) if order(one, known).is_lt() => *known = one.clone(),
        Some(_) => {}
        None => all.push(one.clone()),
    }
    all
}

/// Returns the refusal of a pod as a whole, by the plugin behind the cause.
pub(crate) fn refusal_of_pod(profile: &Profile, cause: Cause, total_nodes: usize) -> Refusal {
    let by = refused_by(profile, std::iter::once(&cause));
    Refusal::of_pod(cause, total_nodes, by)
}

/// Returns the set of plugins behind these causes.
fn refused_by<'c>(profile: &Profile, causes: impl Iterator<Item = &'c Cause>) -> RefusedBy {
    let mut by = RefusedBy::default();
    for cause in causes {
        if let Some(at) = profile.plugins.iter().position(|p| p.name() == cause.plugin) {
            by.insert(at);
        }
        for enabled in alignment::also_behind(profile, cause) {
            by.insert(enabled.index);
        }
    }
    // What they keep for the pod may come to stand where another plugin refused it.
    for enabled in &profile.node_overrides {
        by.insert(enabled.index);
    }
    by
}

/// Returns the plugins that may refuse nodes to a pod: those that filter, the providers of topology hints, and those that
/// override nodes. Others whose PreFilter skips the pod are left out.
pub(crate) fn plugins_that_filter(profile: &Profile, view: View<'_>, spec: &PodSpec) -> RefusedBy {
    let mut all = RefusedBy::default();
    for (place, at) in chain::places(profile, |_| true) {
        let enabled = place.map(|place| &profile.pre_filter[place]).or(at.map(|at| &profile.filter[at]));
        let Some(enabled) = enabled else { continue };
        let pre_filter = place.and_then(|_| enabled.plugin.pre_filter());
        if pre_filter.is_none_or(|p| !matches!(p.pre_filter(view, spec), PreFiltered::Skip)) {
            all.insert(enabled.index);
        }
    }
    alignment::providers(profile, view, spec).for_each(|plugin| all.insert(plugin));
    profile.node_overrides.iter().for_each(|enabled| all.insert(enabled.index));
    all
}

/// Returns how many feasible nodes are enough, or `None` if all are wanted. Follows kube-scheduler's rule, except that
/// 0 means all: results are reused, so evaluating all nodes is cheap.
fn sample_size(percentage: u8, n_nodes: usize) -> Option<usize> {
    if percentage == 0 || percentage >= 100 || n_nodes < MIN_FEASIBLE {
        return None;
    }
    let wanted = (n_nodes * usize::from(percentage) / 100).max(MIN_FEASIBLE);
    (wanted < n_nodes).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_sizes_are_upstreams() {
        for (percentage, n, want) in [
            (0, 5000, None),
            (100, 5000, None),
            (10, 99, None),
            (10, 100, None),
            (10, 5000, Some(500)),
            (1, 5000, Some(100)),
            (42, 1000, Some(420)),
        ] {
            assert_eq!(sample_size(percentage, n), want, "{percentage} % of {n}");
        }
    }
}
