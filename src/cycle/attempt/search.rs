//! Selects a node from the results of an attempt. Why there is none is said by [`refusal`](super::refusal).

use pellucid_model::NodeIdx;
use pellucid_model::cause::CauseId;
use pellucid_recording::{Decision, Placement};

use crate::attempt::chain::PluginTally;
use crate::attempt::global_plugins::{self, GlobalScore};
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache, tie_order};
use crate::attempt::overrides::Overridden;

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
