//! The raw scores, totals and best node among the feasible nodes of one shape.
//!
//! - `active`: a plugin that scores the pods
//! - `column_scores`: scores that are functions of a node's columns
//! - `greatest`: the greatest raw score of a plugin that normalises
//! - `shares`: what raw scores come to, normalised and weighted
//! - `best`: the totals, and the best of them

use pellucid_framework::plugin::{MAX_SCORE, Normalize, Reads};
use pellucid_model::cause::CauseId;
use pellucid_model::{NodeIdx, prefetch_index};
use smallvec::SmallVec;

use crate::attempt::chain::{self, PluginTally};
use crate::attempt::node_result_cache::CycleContext;
use crate::attempt::overrides::{self, Overridden};

mod active;
mod best;
mod column_scores;
mod greatest;
mod shares;

use active::{Active, greatest_raw};
use best::Tournament;
use column_scores::ColumnScores;
use greatest::Greatest;
use shares::Shares;

/// A node whose result was recomputed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recomputed {
    pub(crate) node: NodeIdx,
    /// Whether the node was feasible before.
    pub(crate) was: bool,
    /// Whether more than the pods on the node changed.
    pub(crate) object: bool,
}

/// Scores of the feasible nodes.
pub(crate) struct Scores {
    active: Vec<Active>,
    by_columns: ColumnScores,
    others: Others,
    /// Whether a provider of topology hints has something to say of the pods.
    has_hints: bool,
    /// Raw scores by slot, one per active plugin; meaningless for refused nodes.
    raw: Vec<i32>,
    /// The greatest raw score per active plugin, kept up to date for those that normalise.
    greatest: Vec<Greatest>,
    /// Sum of weighted scores per slot. Refused nodes do not compete.
    totals: Tournament,
    scratch: Scratch,
}

/// The plugins whose scores are not functions of columns, by index.
struct Others {
    all: Vec<usize>,
    /// Those that read the pods on a node.
    of_usage: Vec<usize>,
}

#[derive(Default)]
struct Scratch {
    by_usage: Vec<NodeIdx>,
    by_object: Vec<NodeIdx>,
    out: Vec<i64>,
    /// What the totals of `by_usage` change by.
    deltas: Vec<i64>,
}

/// Plugins whose greatest raw score has changed, with the one before.
type Moved = SmallVec<[(usize, i32); 2]>;

impl Scores {
    /// Scores the feasible nodes. `has_hints` says whether a provider of topology hints has something to say of the pods.
    pub(crate) fn make(
        ctx: &CycleContext<'_>,
        mask: &[CauseId],
        has_hints: bool,
        tally: &mut [PluginTally],
    ) -> Self {
        let feasible = feasible_in(mask);
        let values = chain::prepare_scores(ctx, &feasible).into_iter().enumerate();
        let active = values.filter_map(|(entry, value)| {
            let enabled = &ctx.profile.score[entry];
            let (plugin, value) = (enabled.plugin.score()?, value?);
            let (reads, normalize) = (plugin.reads(), plugin.normalize());
            let (weight, most, shares) = (enabled.weight, greatest_raw(normalize), Shares::default());
            Some(Active { entry, value, reads, normalize, weight, most, shares })
        });
        let active: Vec<Active> = active.collect();
        let scoring = active.iter().map(|active| (&ctx.profile.score[active.entry], &active.value));
        let by_columns = ColumnScores::of(scoring, has_hints);
        let all: Vec<usize> = (0..active.len()).filter(|at| !by_columns.has(*at)).collect();
        let of_usage = all.iter().copied().filter(|at| active[*at].reads >= Reads::Usage).collect();
        let most = active.iter().map(|active| active.weight.saturating_mul(MAX_SCORE));
        let most = most.fold(0, i64::saturating_add);
        let mut scores = Self {
            raw: vec![0; mask.len() * active.len()],
            greatest: vec![Greatest::default(); active.len()],
            totals: Tournament::new(mask.len(), most),
            scratch: Scratch::default(),
            active,
            by_columns,
            others: Others { all, of_usage },
            has_hints,
        };
        scores.fill(ctx, &feasible, Reads::Node, tally);
        for (at, _) in scores.normalising() {
            scores.find_greatest(at, mask);
        }
        scores.total_all(ctx, &feasible);
        scores
    }

    pub(crate) fn best(&mut self, ctx: &CycleContext<'_>) -> Option<(NodeIdx, i64)> {
        self.totals.best(ctx.view)
    }

    /// Has the processor fetch what is known of nodes while they are filtered. Those of many shapes do not fit into its cache.
    pub(crate) fn prefetch(&self, nodes: &[NodeIdx]) {
        let width = self.active.len();
        for node in nodes {
            prefetch_index(&self.raw[..], node.index() * width);
            self.totals.prefetch(*node);
        }
    }

    /// Fills in the raw scores of nodes, for the plugins that read at least as much as `least`.
    fn fill(&mut self, ctx: &CycleContext<'_>, nodes: &[NodeIdx], least: Reads, tally: &mut [PluginTally]) {
        if nodes.is_empty() {
            return;
        }
        let width = self.active.len();
        self.by_columns.fill(ctx, nodes, (&mut self.raw, width), tally);
        let others = if least >= Reads::Usage { &self.others.of_usage } else { &self.others.all };
        for at in others.iter().copied() {
            let active = &self.active[at];
            let enabled = &ctx.profile.score[active.entry];
            let Some(plugin) = enabled.plugin.score() else { continue };
            let out = &mut self.scratch.out;
            let by = ((enabled, plugin, &active.value), self.has_hints);
            chain::score_with(by, ctx, nodes, out, tally);
            for (node, raw) in nodes.iter().zip(out) {
                self.raw[node.index() * width + at] = active.stored(*raw);
            }
        }
    }

    /// Returns the raw scores of a node in another state, one per active plugin.
    pub(crate) fn raw_in(
        &mut self,
        ctx: &CycleContext<'_>,
        node: NodeIdx,
        tally: &mut [PluginTally],
    ) -> Vec<i32> {
        let out = &mut self.scratch.out;
        let raw = self.active.iter().map(|active| {
            let enabled = &ctx.profile.score[active.entry];
            let Some(plugin) = enabled.plugin.score() else { return 0 };
            chain::score((enabled, plugin, &active.value), ctx, &[node], out, tally);
            out.first().map_or(0, |raw| active.stored(*raw))
        });
        raw.collect()
    }

    /// Updates the scores of nodes that were filtered again.
    pub(crate) fn catch_up(
        &mut self,
        ctx: &CycleContext<'_>,
        mask: &[CauseId],
        touched: &[Recomputed],
        tally: &mut [PluginTally],
    ) {
        let is_feasible = |n: NodeIdx| mask[n.index()].is_feasible();
        let (mut by_usage, mut by_object) =
            (std::mem::take(&mut self.scratch.by_usage), std::mem::take(&mut self.scratch.by_object));
        by_usage.clear();
        by_object.clear();
        for row in touched.iter().filter(|t| is_feasible(t.node)) {
            if row.was && !row.object { by_usage.push(row.node) } else { by_object.push(row.node) }
        }
        let moved = self.with_greatest(mask, touched, |scores| {
            scores.fill(ctx, &by_usage, Reads::Usage, tally);
            scores.fill(ctx, &by_object, Reads::Node, tally);
        });
        (self.scratch.by_usage, self.scratch.by_object) = (by_usage, by_object);
        if !moved.is_empty() {
            return self.normalise_anew(ctx, mask, touched.iter().map(|row| row.node), &moved);
        }
        for row in touched {
            let total = is_feasible(row.node).then(|| self.total_of(row.node));
            self.totals.set(ctx.view, row.node, total);
        }
    }

    /// Does the same for nodes that were feasible and are, and of which only the pods changed: as most are. Adds to their totals
    /// what these change by.
    pub(crate) fn catch_up_usage(
        &mut self,
        ctx: &CycleContext<'_>,
        mask: &[CauseId],
        nodes: &[NodeIdx],
        tally: &mut [PluginTally],
    ) {
        let (width, has_hints) = (self.active.len(), self.has_hints);
        let (Scratch { deltas, out, .. }, raw) = (&mut self.scratch, &mut self.raw[..]);
        self.by_columns.catch_up(ctx, nodes, (raw, width), deltas, tally);
        let (mut moved, mut lost) = (Moved::new(), SmallVec::<[usize; 2]>::new());
        for at in self.others.of_usage.iter().copied() {
            let active = &mut self.active[at];
            let enabled = &ctx.profile.score[active.entry];
            let Some(plugin) = enabled.plugin.score() else { continue };
            let by = ((enabled, plugin, &active.value), has_hints);
            chain::score_with(by, ctx, nodes, out, tally);
            if active.normalize == Normalize::Identity {
                for ((node, new), delta) in nodes.iter().zip(out.iter()).zip(deltas.iter_mut()) {
                    let new = active.stored(*new);
                    let old = std::mem::replace(&mut raw[node.index() * width + at], new);
                    *delta += (i64::from(new) - i64::from(old)) * active.weight;
                }
                continue;
            }
            let greatest = &mut self.greatest[at];
            moved.push((at, greatest.raw));
            if !active.exchange(greatest, (raw, width, at), nodes, out, deltas) {
                lost.push(at);
            }
        }
        lost.into_iter().for_each(|at| self.find_greatest(at, mask));
        moved.retain(|(at, was)| self.greatest[*at].raw != *was);
        let changed = nodes.iter().zip(&self.scratch.deltas).filter(|(_, delta)| **delta != 0);
        if moved.is_empty() {
            changed.for_each(|(node, delta)| self.totals.add(*node, *delta));
        } else if moved.iter().all(|(at, was)| self.greatest[*at].raw < *was) {
            // No new raw score is beyond what was the greatest, so that these totals are in range before they are normalised.
            changed.for_each(|(node, delta)| self.totals.add_unranked(*node, *delta));
            self.follow_greatest(&moved);
        } else {
            self.normalise_anew(ctx, mask, nodes.iter().copied(), &moved);
        }
    }

    /// Applies a change of raw scores, and updates the greatest ones. Returns the plugins of which those changed, by index, and
    /// what they were.
    fn with_greatest(
        &mut self,
        mask: &[CauseId],
        touched: &[Recomputed],
        change: impl FnOnce(&mut Self),
    ) -> Moved {
        let is_feasible = |n: NodeIdx| mask[n.index()].is_feasible();
        // A score that does not read the pods on the node stays the same while the node is feasible.
        let moves = |reads: Reads, row: &Recomputed| {
            reads >= Reads::Usage || row.object || !row.was || !is_feasible(row.node)
        };
        let kinds = self.normalising();
        let width = self.active.len();
        let mut before: SmallVec<[(i32, bool); 4]> = SmallVec::new();
        for (at, reads) in &kinds {
            let was = self.greatest[*at].raw;
            for row in touched.iter().filter(|t| t.was && moves(*reads, t)) {
                self.greatest[*at].remove(self.raw[row.node.index() * width + at]);
            }
            // When no node has the greatest score any more, the second greatest takes its place.
            before.push((was, self.greatest[*at].count == 0));
        }
        change(self);
        let mut moved = Moved::new();
        for ((at, reads), (was, is_lost)) in kinds.iter().zip(before) {
            for row in touched.iter().filter(|t| is_feasible(t.node) && moves(*reads, t)) {
                self.greatest[*at].add(self.raw[row.node.index() * width + at]);
            }
            if is_lost && !self.greatest[*at].settle() {
                self.find_greatest(*at, mask);
            }
            if self.greatest[*at].raw != was {
                moved.push((*at, was));
            }
        }
        moved
    }

    /// Updates all totals after greatest raw scores have changed. Of nodes other than these, whose results are as before, only what
    /// these plugins give is another.
    fn normalise_anew(
        &mut self,
        ctx: &CycleContext<'_>,
        mask: &[CauseId],
        nodes: impl Iterator<Item = NodeIdx> + Clone,
        moved: &Moved,
    ) {
        nodes.clone().for_each(|node| self.totals.set_unranked(ctx.view, node, None));
        self.follow_greatest(moved);
        for node in nodes.filter(|node| mask[node.index()].is_feasible()) {
            let total = self.total_of(node);
            self.totals.set(ctx.view, node, Some(total));
        }
    }

    /// Adds to all totals what they change by with the greatest raw scores.
    fn follow_greatest(&mut self, moved: &Moved) {
        for (at, was) in moved.iter().copied() {
            let active = &mut self.active[at];
            let difference = active.shares.advance(active.weighing(), was, self.greatest[at].raw);
            let raw = (&self.raw[..], self.active.len(), at);
            match difference.table() {
                Some(table) => self.totals.add_from(raw, table),
                None => self.totals.add_to_all(raw, |raw| difference.of(raw)),
            }
        }
    }

    /// Returns the indices of the active plugins whose scores are normalised, and what these read.
    fn normalising(&self) -> SmallVec<[(usize, Reads); 4]> {
        let normalising = self.active.iter().enumerate().filter(|(_, a)| a.normalize != Normalize::Identity);
        normalising.map(|(at, a)| (at, a.reads)).collect()
    }

    fn find_greatest(&mut self, at: usize, mask: &[CauseId]) {
        let raws = mask.iter().zip(self.raw.chunks_exact(self.active.len()));
        let feasible = raws.filter(|(cause, _)| cause.is_feasible());
        self.greatest[at] = Greatest::of(feasible.map(|(_, raws)| raws[at]));
    }

    fn total_all(&mut self, ctx: &CycleContext<'_>, feasible: &[NodeIdx]) {
        let greatest: SmallVec<[i32; 8]> = self.greatest.iter().map(|greatest| greatest.raw).collect();
        let totals = self.weighted_totals(feasible, &greatest);
        for (node, total) in feasible.iter().zip(totals) {
            self.totals.set_unranked(ctx.view, *node, Some(total));
        }
        self.totals.rank_all();
    }

    /// Returns the totals of some nodes in the actual state, plugin by plugin, given the greatest raw scores.
    fn weighted_totals(&self, nodes: &[NodeIdx], greatest: &[i32]) -> Vec<i64> {
        let mut totals = vec![0; nodes.len()];
        for ((at, active), greatest) in self.active.iter().enumerate().zip(greatest) {
            let shares = totals.iter_mut().zip(self.column(at, nodes));
            match active.normalize {
                Normalize::Identity => {
                    shares.for_each(|(total, raw)| *total += i64::from(raw) * active.weight)
                }
                _ => shares.for_each(|(total, raw)| *total += active.weighted(raw, *greatest).1),
            }
        }
        totals
    }

    /// Iterates over the raw scores that one active plugin gives some nodes.
    fn column(&self, at: usize, nodes: &[NodeIdx]) -> impl Iterator<Item = i32> {
        let width = self.active.len();
        nodes.iter().map(move |node| self.raw[node.index() * width + at])
    }

    fn raw_of(&self, node: NodeIdx) -> &[i32] {
        let width = self.active.len();
        &self.raw[node.index() * width..][..width]
    }

    #[inline(always)]
    fn total_of(&self, node: NodeIdx) -> i64 {
        let shares = self.active.iter().zip(self.raw_of(node)).zip(&self.greatest);
        shares.map(|((a, raw), greatest)| a.shares.get(a.weighing(), *raw, greatest.raw)).sum()
    }

    /// Returns the raw scores of a node in an attempt: those of its trial if it is overridden.
    fn raw_among<'r>(&'r self, overridden: &'r [Overridden], node: NodeIdx) -> &'r [i32] {
        let own = overrides::find(overridden, node).map(|of| &of.cached[..]);
        own.filter(|raw| raw.len() == self.active.len()).unwrap_or_else(|| self.raw_of(node))
    }

    /// Returns the greatest raw score over some nodes of each active plugin that normalises; 0 for the others.
    pub(crate) fn greatest_over(&self, nodes: &[NodeIdx], overridden: &[Overridden]) -> Vec<i32> {
        let mut all = vec![0; self.active.len()];
        for (at, _) in self.normalising() {
            let greatest = match overridden {
                [] => self.column(at, nodes).max(),
                _ => nodes.iter().map(|node| self.raw_among(overridden, *node)[at]).max(),
            };
            all[at] = greatest.unwrap_or(0);
        }
        all
    }

    /// Returns the greatest raw scores of an attempt, if the kept totals of the nodes that are not overridden hold for it:
    /// if the greatest ones are the same with the overridden nodes' own raw scores (`own` are the feasible ones) in place
    /// of those that are kept. `mask` is that of the kept scores.
    pub(crate) fn greatest_beside(
        &self,
        mask: &[CauseId],
        overridden: &[Overridden],
        own: &[NodeIdx],
    ) -> Option<Vec<i32>> {
        let mut all = vec![0; self.active.len()];
        for (at, _) in self.normalising() {
            let Greatest { raw, count, .. } = self.greatest[at];
            let kept = overridden.iter().filter(|of| mask[of.node.index()].is_feasible());
            let gone = kept.filter(|of| self.raw_of(of.node)[at] == raw).count();
            let own = own.iter().map(|node| self.raw_among(overridden, *node)[at]).max();
            let is_same = match own {
                Some(own) if own > raw => false,
                Some(own) if own == raw => true,
                _ => (count as usize) > gone,
            };
            if !is_same {
                return None;
            }
            all[at] = raw;
        }
        Some(all)
    }

    /// Returns the best of the nodes that are not overridden, with its kept total.
    pub(crate) fn best_beside(
        &mut self,
        ctx: &CycleContext<'_>,
        overridden: &[Overridden],
    ) -> Option<(NodeIdx, i64)> {
        let totals = &mut self.totals;
        let take = |totals: &mut Tournament, node: NodeIdx| {
            let total = totals.total(node);
            totals.set(ctx.view, node, None);
            total
        };
        let kept: SmallVec<[Option<i64>; 8]> = overridden.iter().map(|of| take(totals, of.node)).collect();
        let best = totals.best(ctx.view);
        overridden.iter().zip(kept).for_each(|(of, total)| totals.set(ctx.view, of.node, total));
        best
    }

    /// Returns the totals of some nodes in an attempt, given the greatest raw scores.
    pub(crate) fn totals_over(
        &self,
        nodes: &[NodeIdx],
        overridden: &[Overridden],
        greatest: &[i32],
    ) -> Vec<i64> {
        let total = |raw: &[i32]| -> i64 {
            let shares = self.active.iter().zip(raw).zip(greatest);
            shares.map(|((active, raw), greatest)| active.weighted(*raw, *greatest).1).sum()
        };
        match overridden {
            [] => self.weighted_totals(nodes, greatest),
            _ => nodes.iter().map(|node| total(self.raw_among(overridden, *node))).collect(),
        }
    }

    /// Returns the raw, normalised and weighted score of a node for each entry of `profile.score`.
    pub(crate) fn shares(
        &self,
        n_entries: usize,
        (node, overridden): (NodeIdx, &[Overridden]),
        greatest: &[i32],
    ) -> Vec<Option<(i64, i64, i64)>> {
        let mut shares = vec![None; n_entries];
        let raw = self.raw_among(overridden, node);
        for ((active, raw), greatest) in self.active.iter().zip(raw).zip(greatest) {
            let (normalized, weighted) = active.weighted(*raw, *greatest);
            shares[active.entry] = Some((i64::from(*raw), normalized, weighted));
        }
        shares
    }
}

/// Lists the feasible nodes, ascending.
fn feasible_in(mask: &[CauseId]) -> Vec<NodeIdx> {
    let feasible = mask.iter().enumerate().filter(|(_, c)| c.is_feasible());
    feasible.map(|(i, _)| NodeIdx(i as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::active::stored;
    use super::*;

    #[test]
    fn raw_scores_out_of_range_count_as_its_nearest_end() {
        let of = |normalize: Normalize| {
            let most = greatest_raw(normalize);
            [-5, 0, 99, 101, i64::MAX].map(|raw| stored(raw, most))
        };
        assert_eq!(of(Normalize::Identity), [0, 0, 99, 100, 100]);
        assert_eq!(of(Normalize::Proportional), [0, 0, 99, 101, i32::MAX]);
    }
}
