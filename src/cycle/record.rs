//! What flags `s` and `f` keep of an attempt: the score table, and the nodes that were refused.

use std::sync::Arc;

use super::chain::PluginTally;
use super::decision::Placement;
use super::rows::{Rows, Subject};
use crate::diagnosis::recorder::{RecordedFailure, RecordedRow, RecordedTable};
use crate::model::collections::FxHashMap;
use crate::model::{Now, Pod};

/// Returns the best nodes with their scores.
pub(super) fn table(
    rows: &mut Rows,
    of: &Subject<'_>,
    (pod, cycle, at): (&Pod, u64, Now),
    placement: Placement,
    n: usize,
    tally: &mut [PluginTally],
) -> RecordedTable {
    let row = |scored: super::search::Scored| RecordedRow {
        node: of.view.name(scored.node).clone(),
        total: scored.total,
        shares: scored.shares,
    };
    RecordedTable {
        pod: pod.key.clone(),
        cycle,
        at,
        chosen: of.view.name(placement.node).clone(),
        feasible: placement.feasible as usize,
        plugins: of.profile.score.iter().map(|e| (e.plugin.name(), e.weight)).collect(),
        rows: rows.top(of, n, tally).into_iter().map(row).collect(),
    }
}

/// Returns every refused node with its cause.
pub(super) fn failure(rows: &Rows, of: &Subject<'_>, (pod, cycle, at): (&Pod, u64, Now)) -> RecordedFailure {
    let causes: FxHashMap<_, _> = rows.current().1.iter().map(|(id, c)| (id, Arc::new(c.clone()))).collect();
    let mask = rows.current().0;
    let refused = of.view.cluster().by_name().iter().filter_map(|n| {
        let cause = causes.get(mask.get(n.index())?)?;
        Some((of.view.name(*n).clone(), cause.clone()))
    });
    RecordedFailure { pod: pod.key.clone(), cycle, at, nodes: refused.collect() }
}
