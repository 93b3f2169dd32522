//! The verdicts on all pending pods of a snapshot, worked out once per snapshot for all readers.
//!
//! Pods of one shape that nodes refused for the same reasons share one verdict. The work is bounded: beyond the bound a
//! verdict rests on the recorded node groups alone, and `truncated` says so.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{PodRecord, ShapeId};
use pellucid_cycle::Snapshot;
use pellucid_model::collections::{FxHashMap, HashMap};
use pellucid_model::{GangKey, Now, PodId, cancellation};
use pellucid_recording::{Outcome, Refusal};

use super::{PodVerdict, of_gate, of_groups, told};
use crate::gangs::gang_state::HeldBack;
use crate::gangs::member::{InGang, Outlooks};
use crate::known::known;
use crate::requirements::outlook;

/// Largest number of nodes, summed over shapes, that are evaluated.
const MOST_EVALUATED: usize = 1_000_000;

/// The verdicts on the refused and gated pods of a snapshot.
#[derive(Default)]
pub struct Verdicts {
    /// By the number of the pod; empty when there is no verdict at all.
    by_pod: Vec<Option<Arc<PodVerdict>>>,
    /// Whether some verdicts rest on recorded node groups alone, because there were too many shapes, or some gangs were
    /// not planned, because there were too many members.
    pub truncated: bool,
}

impl Verdicts {
    /// Returns the verdict on a pod, or `None` when it was neither refused nor gated.
    pub fn of(&self, id: PodId) -> Option<&PodVerdict> {
        self.by_pod.get(id.index())?.as_deref()
    }
}

/// What pods must have in common to share a verdict: profile, shape, preemption policy, whether the pod as a whole
/// was refused, and the number of its [`Why`]: a plugin may read more of a pod than its shape, such as the name by which it
/// owns a Reservation. What their gangs make of it comes on top.
type Alike = (usize, ShapeId, bool, bool, usize);

/// The reasons for which nodes refused a pod, by plugin, sorted, and the plugins that left nodes out.
type Why = (Vec<(&'static str, ReasonCode)>, Arc<[&'static str]>);

/// Returns the verdicts on all pending pods.
pub fn verdicts(snapshot: &Snapshot, now: Now) -> Arc<Verdicts> {
    known(snapshot).verdicts(|| work_out(snapshot, now))
}

fn work_out(snapshot: &Snapshot, now: Now) -> Verdicts {
    let by_pod = vec![None; snapshot.cluster.n_pod_slots()];
    let mut all = Verdicts { by_pod, truncated: false };
    let mut work = Work {
        snapshot,
        now,
        why: HashMap::default(),
        by_shape: FxHashMap::default(),
        by_gang: FxHashMap::default(),
        outlooks: Outlooks::new(snapshot, now),
        held_back: HeldBack::new(snapshot),
        left: MOST_EVALUATED,
        is_cut: false,
    };
    for (id, record) in snapshot.cluster.pods().filter(|(_, record)| record.node.is_none()) {
        cancellation::check();
        all.by_pod[id.index()] = work.verdict(id, record);
    }
    all.truncated = work.is_cut || work.outlooks.is_cut;
    all
}

/// The verdicts worked out so far.
struct Work<'s> {
    snapshot: &'s Snapshot,
    now: Now,
    /// The number of each in the order in which they came.
    why: HashMap<Why, usize>,
    by_shape: FxHashMap<Alike, Arc<PodVerdict>>,
    /// The verdicts on members of gangs; the flag tells those beyond the quorum from the others.
    by_gang: FxHashMap<(Alike, &'s GangKey, bool), Arc<PodVerdict>>,
    outlooks: Outlooks<'s>,
    held_back: HeldBack<'s>,
    /// Number of nodes that may still be evaluated.
    left: usize,
    is_cut: bool,
}

impl<'s> Work<'s> {
    fn verdict(&mut self, id: PodId, record: &'s PodRecord) -> Option<Arc<PodVerdict>> {
        let snapshot = self.snapshot;
        let outcome = snapshot.last_attempts.get(id.index())?.outcome()?;
        let (Outcome::Refused(refusal) | Outcome::Gated(refusal)) = outcome else { return None };
        let (profile, _) = snapshot.profile_of(record)?;
        if matches!(outcome, Outcome::Gated(_)) {
            return self.gated(id, record, refusal);
        }
        let is_whole = refusal.pod_cause.is_some();
        let is_own = is_whole || snapshot.cluster.nominator().of(id).is_some();
        let why = self.number_of(refusal);
        let alike = (profile, record.shape, record.pod.never_preempts, is_whole, why);
        let alone = match self.by_shape.get(&alike).filter(|_| !is_own) {
            Some(same) => same.clone(),
            None => {
                let is_cheap = is_whole && record.pod.member_of().is_some();
                let made = Arc::new(self.made(id, refusal, is_cheap)?);
                if !is_own {
                    self.by_shape.insert(alike, made.clone());
                }
                made
            }
        };
        let of = self.outlooks.of((id, record));
        let is_told = matches!(of, InGang::Alone) || matches!(of, InGang::Beside) && !alone.waits();
        let Some(gang) = record.pod.member_of().filter(|_| !is_told) else { return Some(alone) };
        let key = (alike, gang, !matches!(of, InGang::Known(_)));
        if let Some(same) = self.by_gang.get(&key).filter(|_| !is_own) {
            return Some(same.clone());
        }
        let verdict = Arc::new(match of {
            InGang::Known(outlook) => PodVerdict::clone(&alone).with_outlook(outlook),
            InGang::LeftOut | InGang::Beside | InGang::Alone => PodVerdict::clone(&alone).untold(),
        });
        if !is_own {
            self.by_gang.insert(key, verdict.clone());
        }
        Some(verdict)
    }

    /// Returns the number of what a refusal says of nodes.
    fn number_of(&mut self, refusal: &Refusal) -> usize {
        let causes = refusal.groups.iter().map(|group| &group.cause);
        let reasons = causes.flat_map(|cause| cause.reasons.iter().map(|reason| (cause.plugin, reason.code)));
        let mut reasons: Vec<_> = reasons.collect();
        reasons.sort_unstable();
        reasons.dedup();
        let next = self.why.len();
        *self.why.entry((reasons, refusal.left_out_by.clone())).or_insert(next)
    }

    /// Returns the verdict on a pod that is held back before the queue. It costs next to nothing.
    fn gated(&mut self, id: PodId, record: &'s PodRecord, said: &Refusal) -> Option<Arc<PodVerdict>> {
        let current = self.held_back.now(record, said);
        let verdict = of_gate(self.snapshot, id, current.as_ref().unwrap_or(said))?;
        let of_gang = match self.outlooks.of((id, record)) {
            InGang::Known(outlook) => Some(outlook),
            InGang::LeftOut | InGang::Beside | InGang::Alone => None,
        };
        let of_gang = of_gang.filter(|of| of.code == outlook::HELD || verdict.outlook.is_none());
        Some(Arc::new(match of_gang {
            Some(outlook) => verdict.with_outlook(outlook),
            None => verdict,
        }))
    }

    /// Works a verdict out as if the pod had no gang, or by the recorded node groups if there is no work left.
    fn made(&mut self, id: PodId, refusal: &Refusal, is_cheap: bool) -> Option<PodVerdict> {
        let nodes = self.snapshot.cluster.present().len().max(1);
        let Some(rest) = self.left.checked_sub(if is_cheap { 0 } else { nodes }) else {
            self.is_cut = true;
            return Some(of_groups(refusal));
        };
        self.left = rest;
        told(self.snapshot, id, false, self.now)
    }
}
