//! Metrics of shadow mode, read from the snapshot on each scrape. There are none without it.

use pellucid_cycle::scheduler::shadow::ShadowTally;
use prometheus_client::registry::Registry;

use crate::metrics::counters_by;

/// Registers the judgements of the shadowed scheduler's decisions.
pub(super) fn shadow(tally: &ShadowTally, registry: &mut Registry) {
    let judged = &tally.judged;
    let all = [
        ("same_node", judged.same_node),
        ("equal_score", judged.equal_score),
        ("lower_score", judged.lower_score - judged.within_sampling),
        ("lower_score_within_sampling", judged.within_sampling),
        ("infeasible", judged.infeasible),
        ("refused_by_them", judged.refused_by_them),
        ("not_judged", judged.not_judged),
    ];
    let help = "Decisions of the shadowed scheduler by what they are to us";
    registry.register("pellucid_shadow_decisions", help, counters_by("judgement", all));
}
