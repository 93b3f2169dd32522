//! Drafts what a recording wants of an attempt: its score table and its refused nodes.
//!
//! A draft is made together with the decision, while the node results are current, and recorded only if the decision is
//! carried out: a gang's members are tried in several orders, and one order is carried out.

use std::sync::Arc;

use pellucid_model::collections::FxHashMap;
use pellucid_model::time::Probe;
use pellucid_model::{NodeIdx, Now, Pod};
use pellucid_recording::meter::{Meter, Spender};
use pellucid_recording::recorder::{Choice, RecordedFailure, RecordedRow, RecordedTable};
use pellucid_recording::switches::{Switches, Wanted};
use pellucid_recording::{Decision, Placement};
use smallvec::SmallVec;

use crate::attempt::chain::PluginTally;
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::scheduler::Scheduler;

/// The score table and the refused nodes of one attempt, and the recordings that want them.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    wanted: Wanted,
    table: Option<RecordedTable>,
    failure: Option<RecordedFailure>,
}

/// The recorded score table and the recorded refused nodes of an attempt.
pub(crate) type Recorded = (Option<Arc<RecordedTable>>, Option<Arc<RecordedFailure>>);

impl Draft {
    /// Makes the draft that the switches want, and charges its time to their recordings. Returns `None` if it is empty.
    pub(crate) fn measured(
        switches: &Switches,
        (meter, clock): (&mut Meter, &dyn Probe),
        results: &mut NodeResultCache,
        ctx: &CycleContext<'_>,
        at: (&Pod, u64, Now),
        (decision, is_nominated): (&Decision, bool),
        tally: &mut [PluginTally],
    ) -> Option<Arc<Self>> {
        let start = clock.elapsed();
        let wanted = switches.wanted(at.0, at.2);
        let recordings = wanted.scores.iter().chain(&wanted.failures);
        let spenders: SmallVec<[Spender; 2]> = recordings.map(|r| (r.flag.as_str(), r.id)).collect();
        let table = match decision {
            Decision::Place(placement) if !wanted.scores.is_empty() => {
                let choice = match placement.score {
                    _ if is_nominated => Choice::Nominated,
                    None => Choice::Only,
                    Some(_) => Choice::Best,
                };
                Some(table(results, ctx, at, (*placement, choice), wanted.rows(), tally))
            }
            _ => None,
        };
        let failure = (!wanted.failures.is_empty()).then(|| failure(results, ctx, at));
        let failure = failure.filter(|f| !f.nodes.is_empty());
        let is_something = table.is_some() || failure.is_some();
        let draft = is_something.then(|| Arc::new(Self { wanted, table, failure }));
        meter.add_l1(clock.elapsed().saturating_sub(start), spenders, at.2.monotonic.as_secs());
        draft
    }
}

impl Scheduler {
    /// Records a draft for those recordings that still want it.
    pub(crate) fn record(&mut self, draft: Option<&Arc<Draft>>, now: Now) -> Recorded {
        let Some(draft) = draft else { return (None, None) };
        let table = draft.table.as_ref().and_then(|table| {
            let counted = self.switches.count(&draft.wanted.scores, now);
            let rows = counted.iter().map(|r| r.rows).max()?;
            let mut table = table.clone();
            table.rows.truncate(rows);
            Some(self.records.recorder.push_table(table))
        });
        let failure = draft.failure.as_ref().and_then(|failure| {
            let counted = self.switches.count(&draft.wanted.failures, now);
            (!counted.is_empty()).then(|| self.records.recorder.push_failure(failure.clone()))
        });
        (table, failure)
    }
}

/// Returns the best nodes with their scores. A node that was not chosen by score is the only row.
fn table(
    results: &mut NodeResultCache,
    ctx: &CycleContext<'_>,
    (pod, cycle, at): (&Pod, u64, Now),
    (placement, choice): (Placement, Choice),
    n: usize,
    tally: &mut [PluginTally],
) -> RecordedTable {
    let nodes: Vec<NodeIdx> = match choice {
        Choice::Best => results.chosen_from().collect(),
        Choice::Only | Choice::Nominated => vec![placement.node],
    };
    let rows = results.top_of(ctx, &nodes, n, tally).into_iter();
    let rows = rows.map(|scored| RecordedRow {
        node: ctx.view.name(scored.node).clone(),
        total: scored.total,
        shares: scored.shares,
    });
    RecordedTable {
        pod: pod.key.clone(),
        cycle,
        at,
        chosen: ctx.view.name(placement.node).clone(),
        choice,
        feasible: placement.feasible as usize,
        plugins: ctx.profile.score.iter().map(|e| (e.plugin.name(), e.weight)).collect(),
        rows: rows.collect(),
    }
}

/// Returns every refused node with its cause.
fn failure(
    results: &NodeResultCache,
    ctx: &CycleContext<'_>,
    (pod, cycle, at): (&Pod, u64, Now),
) -> RecordedFailure {
    let (mask, causes) = results.current();
    let causes: FxHashMap<_, _> = causes.iter().map(|(id, c)| (id, Arc::new(c.clone()))).collect();
    let refused = ctx.view.cluster().by_name().iter().filter_map(|n| {
        let cause = causes.get(mask.get(n.index())?)?;
        Some((ctx.view.name(*n).clone(), cause.clone()))
    });
    RecordedFailure { pod: pod.key.clone(), cycle, at, nodes: refused.collect() }
}
