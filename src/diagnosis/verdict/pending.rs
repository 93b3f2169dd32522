//! The verdicts on all pending pods of a snapshot, worked out once per snapshot for all readers.
//!
//! Pods of one shape share one verdict. The work is bounded: beyond the bound a verdict rests on the recorded node
//! groups alone, and `truncated` says so.

use std::sync::Arc;

use pellucid_cluster::ShapeId;
use pellucid_cycle::Snapshot;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{Now, PodId, cancellation};
use pellucid_recording::Outcome;

use super::{PodVerdict, of_groups, told};

/// Largest number of nodes, summed over shapes, that are evaluated.
const MOST_EVALUATED: usize = 1_000_000;

/// The verdicts on the refused and gated pods of a snapshot.
#[derive(Default)]
pub struct Verdicts {
    by_pod: FxHashMap<PodId, Arc<PodVerdict>>,
    /// Whether some verdicts rest on recorded node groups alone, because there were too many shapes.
    pub truncated: bool,
}

impl Verdicts {
    /// Returns the verdict on a pod, or `None` when it was neither refused nor gated.
    pub fn of(&self, id: PodId) -> Option<&PodVerdict> {
        self.by_pod.get(&id).map(|verdict| &**verdict)
    }
}

/// What pods must have in common to share a verdict: profile, shape, preemption policy, and whether the pod as a whole
/// was refused.
type Alike = (usize, ShapeId, bool, bool);

/// Returns the verdicts on all pending pods.
pub fn verdicts(snapshot: &Snapshot, now: Now) -> Arc<Verdicts> {
    snapshot.memo.get_or_init(|| work_out(snapshot, now))
}

fn work_out(snapshot: &Snapshot, now: Now) -> Verdicts {
    let mut all = Verdicts::default();
    let mut known: FxHashMap<Alike, Arc<PodVerdict>> = FxHashMap::default();
    let mut left = MOST_EVALUATED;
    let nodes = snapshot.cluster.present().len().max(1);
    for (id, record) in snapshot.cluster.pods().filter(|(_, record)| record.node.is_none()) {
        cancellation::check();
        let Some(outcome) = snapshot.last_attempts.get(id.index()).and_then(|last| last.outcome()) else {
            continue;
        };
        let (Outcome::Refused(refusal) | Outcome::Gated(refusal)) = outcome else { continue };
        let Some((profile, _)) = snapshot.profile_of(record) else { continue };
        let is_whole = refusal.pod_cause.is_some();
        let is_own = is_whole || snapshot.cluster.nominator().of(id).is_some();
        let alike = (profile, record.shape, record.pod.never_preempts, is_whole);
        if let Some(same) = known.get(&alike).filter(|_| !is_own) {
            all.by_pod.insert(id, same.clone());
            continue;
        }
        let is_cheap = is_whole && record.pod.member_of().is_some() || matches!(outcome, Outcome::Gated(_));
        let verdict = match left.checked_sub(if is_cheap { 0 } else { nodes }) {
            Some(rest) => {
                left = rest;
                told(snapshot, id, false, now)
            }
            None => {
                all.truncated = true;
                Some(of_groups(refusal))
            }
        };
        let Some(verdict) = verdict.map(Arc::new) else { continue };
        if !is_own {
            known.insert(alike, verdict.clone());
        }
        all.by_pod.insert(id, verdict);
    }
    all
}
