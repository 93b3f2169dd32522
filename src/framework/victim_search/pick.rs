//! Ranks candidates by kube-scheduler's criteria in their order, with a criterion for gangs before the last one and a
//! deterministic tie break.

use std::cmp::Ordering;

use pellucid_cluster::Cluster;
use pellucid_cluster::preemptions::{Candidate, Cost};

use super::search::Target;

/// Returns the cost of the victims, which are ordered by importance, most important first.
pub(super) fn cost(cluster: &Cluster, victims: &[Target]) -> Cost {
    let highest_priority = victims.first().map_or(i32::MIN, |v| v.pod.priority);
    let top = victims.iter().filter(|v| v.pod.priority == highest_priority);
    // A pod that has not started counts as starting now, which is later than all others.
    let earliest_start = top.map(|v| v.pod.started.unwrap_or(i64::MAX)).min();
    Cost {
        budget_violations: victims.iter().filter(|v| v.violates_budget).count(),
        highest_priority,
        priority_sum: victims.iter().map(|v| i64::from(v.pod.priority) + (1 << 31)).sum(),
        victims: victims.len(),
        broken_gangs: super::gangs::broken(cluster, victims),
        earliest_start: earliest_start.filter(|at| *at != i64::MAX),
    }
}

/// Name of a criterion, and a comparison that orders the better cost first.
type Criterion = (&'static str, fn(&Cost, &Cost) -> Ordering);
const CRITERIA: [Criterion; 6] = [
    ("fewest budget violations", |a, b| a.budget_violations.cmp(&b.budget_violations)),
    ("lowest priority of the most important victim", |a, b| a.highest_priority.cmp(&b.highest_priority)),
    ("smallest sum of priorities", |a, b| a.priority_sum.cmp(&b.priority_sum)),
    ("fewest victims", |a, b| a.victims.cmp(&b.victims)),
    ("fewest gangs that lose their quorum", |a, b| a.broken_gangs.cmp(&b.broken_gangs)),
    ("latest start of the most important victims", |a, b| {
        b.earliest_start.unwrap_or(i64::MAX).cmp(&a.earliest_start.unwrap_or(i64::MAX))
    }),
];
/// Name of the tie break used when all criteria are equal.
const TIE: &str = "all equal: hash(seed, node name), the greater first";

/// Orders the lower cost first.
pub(super) fn by_cost(a: &Cost, b: &Cost) -> Ordering {
    CRITERIA.iter().map(|(_, compare)| compare(a, b)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Orders the better candidate first.
pub(super) fn compare(cluster: &Cluster, a: &Candidate, b: &Candidate) -> Ordering {
    by_cost(&a.cost, &b.cost).then_with(|| {
        let tie = |c: &Candidate| cluster.slot(c.node).tie;
        tie(b).cmp(&tie(a)).then_with(|| a.name.cmp(&b.name))
    })
}

/// Returns the name of the first criterion in which two costs differ.
pub fn decided_by(a: &Cost, b: &Cost) -> &'static str {
    CRITERIA.iter().find(|(_, compare)| compare(a, b).is_ne()).map_or(TIE, |(name, _)| name)
}
