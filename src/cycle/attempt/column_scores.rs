//! The plugins of one shape whose scores are functions of a node's columns: most nodes that are scored have only got a pod, and
//! one walk over them does for all these plugins.

use pellucid_framework::plugin::{ColumnScore, CycleValue, MAX_SCORE, Normalize};
use pellucid_framework::profile::Enabled;
use pellucid_model::pages::PAGE;

use crate::attempt::chain::PluginTally;
use crate::attempt::node_result_cache::CycleContext;
use crate::attempt::scores::Recomputed;

/// Scores that are functions of columns, and are not normalised.
#[derive(Default)]
pub(crate) struct ColumnScores(Vec<Entry>);

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
            let is_one = plugin.normalize() == Normalize::Identity && !(has_hints && plugin.reads_affinity());
            let score = is_one.then(|| plugin.by_columns(value)).flatten()?;
            Some(Entry { at, weight: enabled.weight, score, plugin: enabled.index })
        };
        Self(plugins.enumerate().filter_map(entry).collect())
    }

    /// Iterates over the places of these plugins among the raw scores of a node.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|entry| entry.at)
    }

    /// Scores nodes anew of which only the pods changed. `raw` are the raw scores by slot, so many per node, and `deltas` becomes
    /// what the nodes' totals change by. The plugins share the time that it takes.
    pub(crate) fn catch_up(
        &self,
        ctx: &CycleContext<'_>,
        touched: &[Recomputed],
        (raw, width): (&mut [i32], usize),
        deltas: &mut Vec<i64>,
        tally: &mut [PluginTally],
    ) {
        let start = ctx.probe.elapsed();
        let columns = ctx.view.columns();
        deltas.clear();
        deltas.extend(touched.iter().map(|Recomputed { node, .. }| {
            let page = columns.page(*node);
            let raws = &mut raw[node.index() * width..][..width];
            let delta = |Entry { at, weight, score, .. }: &Entry| {
                let new = score.score(page, node.index() % PAGE).clamp(0, MAX_SCORE) as i32;
                let old = std::mem::replace(&mut raws[*at], new);
                i64::from(new - old) * weight
            };
            self.0.iter().map(delta).sum::<i64>()
        }));
        let Some(share) = ((ctx.probe.elapsed() - start).as_nanos() as u64).checked_div(self.0.len() as u64)
        else {
            return;
        };
        for Entry { plugin, .. } in &self.0 {
            let tally = &mut tally[*plugin];
            tally.nanos += share;
            tally.score_calls += 1;
            tally.nodes_scored += touched.len() as u64;
        }
    }
}
