//! What the judgements of the shadowed scheduler's Bindings came to: classes, distances, causes, times and disagreements.
//!
//! Numbers and shared values only; `diagnosis` makes text of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pellucid_framework::Cause;
use pellucid_model::{Name, PodKey};

/// Number of the newest disagreements that are kept.
const KEPT: usize = 1_000;
/// Number of the newest times of which quantiles are taken.
const TIMES: usize = 1_000;
/// What infeasible Bindings to a node that PreFilter does not consider are counted as.
pub const LEFT_OUT: &str = "LeftOut";
/// Upper bounds of the buckets of score distances; the last bucket has no bound.
pub const DISTANCES: [i64; 7] = [1, 2, 5, 10, 20, 50, 100];

/// What a Binding of the shadowed scheduler is to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// We would have chosen the same node.
    SameNode,
    /// Its node has the best total score, and the tie is broken otherwise.
    EqualScore,
    /// Its node is feasible, and others have a better total score.
    LowerScore {
        /// Total score of its node, and the best one.
        totals: (i64, i64),
        /// Number of feasible nodes with a better total.
        better: usize,
        /// Number of feasible nodes.
        feasible: usize,
        /// Whether kube-scheduler's default sampling alone may explain it.
        is_within_sampling: bool,
    },
    /// We refuse its node.
    Infeasible {
        /// Why; `None` where PreFilter leaves the node out.
        cause: Option<Arc<Cause>>,
        /// Whether we refuse every node.
        is_everywhere: bool,
    },
    /// It said that the pod is unschedulable while we find a feasible node.
    RefusedByThem,
}

/// The weighted scores of a plugin for our node and for theirs; `None` where the plugin was skipped.
pub type Shares = (&'static str, Option<i64>, Option<i64>);

/// A decision of the shadowed scheduler, and what it is to us.
#[derive(Clone, Debug)]
pub struct JudgedDecision {
    /// Namespace and name of the pod.
    pub pod: PodKey,
    /// Priority of the pod.
    pub priority: i32,
    /// Wall time of the judgement, since 1970.
    pub at: Duration,
    /// Where it put the pod; `None` when it refused it.
    pub theirs: Option<Name>,
    /// Where we would have put it; `None` when we refuse it.
    pub ours: Option<Name>,
    /// What this is to us.
    pub judgement: Judgement,
    /// Of a lower score, the plugins whose weighted scores differ.
    pub shares: Vec<Shares>,
}

/// The newest times of one kind.
#[derive(Clone, Debug, Default)]
pub struct Times {
    newest: VecDeque<Duration>,
}

impl Times {
    /// Adds a time; the oldest goes when there are too many.
    pub(super) fn add(&mut self, time: Duration) {
        if self.newest.len() == TIMES {
            self.newest.pop_front();
        }
        self.newest.push_back(time);
    }

    /// Returns how many there are, the median and the 0.99 quantile; `None` without any.
    pub fn quantiles(&self) -> Option<(usize, Duration, Duration)> {
        let mut all: Vec<Duration> = self.newest.iter().copied().collect();
        all.sort_unstable();
        let at =
            |percent: usize| all.get((all.len() * percent / 100).min(all.len().checked_sub(1)?)).copied();
        Some((all.len(), at(50)?, at(99)?))
    }
}

/// All judgements so far.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Bindings to the node that we would have chosen.
    pub same_node: u64,
    /// Bindings to another node with the best total score.
    pub equal_score: u64,
    /// Bindings to a node with a lower total score.
    pub lower_score: u64,
    /// Of them, those that kube-scheduler's default sampling alone may explain.
    pub within_sampling: u64,
    /// Bindings to a node that we refuse.
    pub infeasible: u64,
    /// Of them, those of pods that we refuse everywhere.
    pub infeasible_everywhere: u64,
    /// Pods that it called unschedulable while we found a feasible node.
    pub refused_by_them: u64,
    /// Bindings that were not judged: several in one list, or too many in a second.
    pub not_judged: u64,
    /// Lower scores by distance from the best, in the buckets of [`DISTANCES`] and one above them.
    pub distances: [u64; DISTANCES.len() + 1],
    /// Infeasible Bindings by the code of the first reason.
    pub causes: BTreeMap<&'static str, u64>,
    /// From first seeing a pod to our placement.
    pub ours_took: Times,
    /// From first seeing a pod to the arrival of its Binding.
    pub theirs_took: Times,
    /// The newest disagreements, the oldest first.
    pub disagreements: VecDeque<Arc<JudgedDecision>>,
}

impl Judged {
    /// Returns the number of Bindings that were judged.
    pub fn bindings(&self) -> u64 {
        self.same_node + self.equal_score + self.lower_score + self.infeasible
    }

    /// Counts a judgement, and keeps it if it is a disagreement.
    pub(super) fn count(&mut self, decision: JudgedDecision) {
        match &decision.judgement {
            Judgement::SameNode => return self.same_node += 1,
            Judgement::EqualScore => return self.equal_score += 1,
            Judgement::LowerScore { totals: (theirs, best), is_within_sampling, .. } => {
                self.lower_score += 1;
                self.within_sampling += u64::from(*is_within_sampling);
                let distance = best.saturating_sub(*theirs);
                let bucket = DISTANCES.iter().position(|most| distance <= *most);
                self.distances[bucket.unwrap_or(DISTANCES.len())] += 1;
            }
            Judgement::Infeasible { cause, is_everywhere } => {
                self.infeasible += 1;
                self.infeasible_everywhere += u64::from(*is_everywhere);
                let reason = cause.as_ref().and_then(|cause| cause.reasons.first());
                *self.causes.entry(reason.map_or(LEFT_OUT, |reason| reason.code.as_str())).or_default() += 1;
            }
            Judgement::RefusedByThem => self.refused_by_them += 1,
        }
        if self.disagreements.len() == KEPT {
            self.disagreements.pop_front();
        }
        self.disagreements.push_back(Arc::new(decision));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lower(theirs: i64, best: i64) -> JudgedDecision {
        let judgement = Judgement::LowerScore {
            totals: (theirs, best),
            better: 1,
            feasible: 9,
            is_within_sampling: false,
        };
        JudgedDecision {
            pod: PodKey::new("d", "p"),
            priority: 0,
            at: Duration::ZERO,
            theirs: None,
            ours: None,
            judgement,
            shares: vec![],
        }
    }

    #[test]
    fn distances_fall_into_the_first_bucket_that_holds_them() {
        let mut judged = Judged::default();
        for (theirs, best) in [(99, 100), (95, 100), (94, 100), (0, 100), (0, 101)] {
            judged.count(lower(theirs, best));
        }
        assert_eq!(judged.distances, [1, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!((judged.lower_score, judged.bindings(), judged.disagreements.len()), (5, 5, 5));
        (0..KEPT).for_each(|_| judged.count(lower(0, 1)));
        assert_eq!(judged.disagreements.len(), KEPT);
    }

    #[test]
    fn quantiles_are_of_the_newest() {
        let mut times = Times::default();
        assert_eq!(times.quantiles(), None);
        (0..=TIMES as u64).for_each(|n| times.add(Duration::from_millis(n)));
        let ms = Duration::from_millis;
        assert_eq!(times.quantiles(), Some((TIMES, ms(501), ms(991))));
    }
}
