//! The plugins of one shape whose scores are functions of a node's columns: one walk over the nodes does for all of them.

use pellucid_framework::plugin::{ColumnScore, CycleValue, MAX_SCORE, Normalize};
use pellucid_framework::profile::Enabled;
use pellucid_model::NodeIdx;
use pellucid_model::pages::PAGE;

use crate::attempt::chain::PluginTally;
use crate::attempt::node_result_cache::CycleContext;

/// Scores that are functions of columns, and are not normalised.
pub(crate) struct ColumnScores {
    entries: Vec<Entry>,
    /// Buffer: scores of nodes, by node, then plugin.
    made: Vec<i32>,
}

struct Entry {
    /// Place among the raw scores of a node.
    at: usize,
    weight: i64,
    score: Box<dyn ColumnScore>,
    /// Index of the plugin in the profile.
    plugin: usize,
}

impl ColumnScores {
    /// Asks the plugins that score pods, which come with the values of their PreScore. `has_hints` says whether a provider of
    /// topology hints has something to say of the pods.
    pub(crate) fn of<'a>(
        plugins: impl Iterator<Item = (&'a Enabled, &'a CycleValue)>,
        has_hints: bool,
    ) -> Self {
        let entry = |(at, (enabled, value)): (usize, (&Enabled, &CycleValue))| {
            let plugin = enabled.plugin.score()?;
            let is_aligned = has_hints && plugin.reads_affinity();
            let is_one = plugin.normalize() == Normalize::Identity && !is_aligned;
            let score = is_one.then(|| plugin.by_columns(value)).flatten()?;
            Some(Entry { at, weight: enabled.weight, score, plugin: enabled.index })
        };
        let entries: Vec<Entry> = plugins.enumerate().filter_map(entry).collect();
        Self { entries, made: Vec::new() }
    }

    /// Whether the plugin at this place among the raw scores of a node is one of them.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.entries.iter().any(|entry| entry.at == at)
    }

    /// Scores nodes. `raw` are the raw scores by slot, so many per node.
    pub(crate) fn fill(
        &mut self,
        ctx: &CycleContext<'_>,
        nodes: &[NodeIdx],
        (raw, width): (&mut [i32], usize),
        tally: &mut [PluginTally],
    ) {
        self.score(ctx, nodes.iter().copied(), tally);
        let n = self.entries.len().max(1);
        for (node, made) in nodes.iter().zip(self.made.chunks_exact(n)) {
            let raws = &mut raw[node.index() * width..][..width];
            self.entries.iter().zip(made).for_each(|(entry, new)| raws[entry.at] = *new);
        }
    }

    /// Scores nodes anew of which only the pods changed. `deltas` becomes what the nodes' totals change by.
    pub(crate) fn catch_up(
        &mut self,
        ctx: &CycleContext<'_>,
        nodes: &[NodeIdx],
        (raw, width): (&mut [i32], usize),
        deltas: &mut Vec<i64>,
        tally: &mut [PluginTally],
    ) {
        deltas.clear();
        if self.entries.is_empty() {
            return deltas.resize(nodes.len(), 0);
        }
        self.score(ctx, nodes.iter().copied(), tally);
        let rows = nodes.iter().zip(self.made.chunks_exact(self.entries.len()));
        deltas.extend(rows.map(|(node, made)| {
            let raws = &mut raw[node.index() * width..][..width];
            let delta = |(entry, new): (&Entry, &i32)| {
                let old = std::mem::replace(&mut raws[entry.at], *new);
                i64::from(new - old) * entry.weight
            };
            self.entries.iter().zip(made).map(delta).sum::<i64>()
        }));
    }

    /// Makes the scores of nodes. They are written down first, because columns are in the processor's cache, where raw scores of
    /// many shapes are not: a short loop waits for several of these at once. The plugins share the time that it takes.
    fn score(
        &mut self,
        ctx: &CycleContext<'_>,
        nodes: impl ExactSizeIterator<Item = NodeIdx>,
        tally: &mut [PluginTally],
    ) {
        let start = ctx.probe.nanos();
        let (columns, n_nodes) = (ctx.view.columns(), nodes.len() as u64);
        self.made.clear();
        for node in nodes {
            let page = columns.page(node);
            let of = |entry: &Entry| entry.score.score(page, node.index() % PAGE).clamp(0, MAX_SCORE) as i32;
            self.made.extend(self.entries.iter().map(of));
        }
        let took = ctx.probe.nanos().saturating_sub(start);
        let share = took.checked_div(self.entries.len() as u64).unwrap_or(0);
        for entry in &self.entries {
            let tally = &mut tally[entry.plugin];
            tally.nanos += share;
            tally.score_calls += 1;
            tally.nodes_scored += n_nodes;
        }
    }
}
