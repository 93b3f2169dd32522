//! The Bindings of a strict quorum begin together: none is ordered before every PreBind of it succeeded.
//!
//! Until then the quorum can still be given up as a whole, and is when one of its members is lost. Members beyond
//! the quorum wait behind the same barrier: without the quorum they would be bound alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{ClusterEvent, Stage};
use pellucid_model::{GangKey, Now, Pod, PodId, PodKey};
use pellucid_recording::Outcome;
use pellucid_recording::gang_verdict::{GangOutcome, member_refusal};

use crate::scheduler::Scheduler;

/// A quorum whose Bindings did not begin. It is known by its pods: groups may be formed anew meanwhile.
pub(super) struct Barrier {
    /// The gangs of the group, each with whether it had had a quorum before.
    gangs: Vec<(GangKey, bool)>,
    /// Its members.
    quorum: BTreeSet<PodId>,
    /// Those of them whose PreBind is not ready.
    left: BTreeSet<PodId>,
}

impl Barrier {
    fn concerns(&self, id: PodId, gang: Option<&GangKey>) -> bool {
        self.quorum.contains(&id) || self.gangs.iter().any(|(key, _)| Some(key) == gang)
    }
}

impl Scheduler {
    /// Starts what comes after the decision for the members of a quorum.
    pub(super) fn start_quorum(&mut self, gangs: Vec<(GangKey, bool)>, ids: &[PodId], now: Now) {
        if self.shadow.is_some() {
            for id in ids {
                self.hold_in_shadow(*id, now);
            }
            return;
        }
        let quorum: BTreeSet<PodId> = ids.iter().copied().collect();
        self.gangs.barriers.push(Barrier { gangs, left: quorum.clone(), quorum });
        let mut events = Vec::new();
        for id in ids {
            let Some(unit) = self.queue.unit_of(*id) else { continue };
            // One that failed has taken the others with it.
            if self.cluster.pod(*id).is_none_or(|r| r.node.is_none()) {
                continue;
            }
            self.start_binding(*id, unit, now, &mut events);
        }
        for event in &events {
            self.wake(event, now);
        }
    }

    /// Returns the barrier that a pod is of or behind.
    fn barrier_of(&self, id: PodId, pod: &Pod) -> Option<usize> {
        let barriers = &self.gangs.barriers;
        let own = barriers.iter().position(|b| b.quorum.contains(&id));
        own.or_else(|| barriers.iter().position(|b| b.concerns(id, self.gang_of(pod))))
    }

    /// The PreBind of a pod is ready. Returns the pods whose Bindings may be ordered now, in their order: it
    /// alone, none while its quorum is not ready, or the whole quorum and whoever is ready behind it.
    pub(crate) fn pass_barrier(&mut self, id: PodId, pod: &Pod) -> Vec<PodId> {
        let Some(at) = self.barrier_of(id, pod) else { return vec![id] };
        self.gangs.barriers[at].left.remove(&id);
        self.open_barrier(at)
    }

    /// A pod is bound or gone by other ways: nobody waits for it any more. Returns whose Bindings may be ordered.
    pub(crate) fn leave_barrier(&mut self, id: PodId) -> Vec<PodId> {
        let Some(at) = self.gangs.barriers.iter().position(|b| b.quorum.contains(&id)) else {
            return Vec::new();
        };
        let barrier = &mut self.gangs.barriers[at];
        barrier.quorum.remove(&id);
        barrier.left.remove(&id);
        self.open_barrier(at)
    }

    fn open_barrier(&mut self, at: usize) -> Vec<PodId> {
        if !self.gangs.barriers[at].left.is_empty() {
            return Vec::new();
        }
        let barrier = self.gangs.barriers.remove(at);
        let mut all = self.behind(&barrier);
        // Those beyond the quorum whose PreBind goes on are bound on their own when it is ready.
        all.retain(|id| barrier.quorum.contains(id) || self.is_ready_to_bind(*id));
        let key = |id: &PodId| self.cluster.pod(*id).map(|r| r.pod.key.clone());
        all.sort_by_cached_key(|id| (!barrier.quorum.contains(id), key(id)));
        all
    }

    /// Returns the pods of a quorum, and those behind it, whose PreBind began and whose Binding was not ordered.
    fn behind(&self, barrier: &Barrier) -> Vec<PodId> {
        let gangs = barrier.gangs.iter().filter_map(|(key, _)| self.cluster.gangs().get(key));
        let members = gangs.flat_map(|g| g.members.keys().copied());
        let all: BTreeSet<PodId> = members.chain(barrier.quorum.iter().copied()).collect();
        all.into_iter().filter(|id| self.in_flight.pre_binding.contains_key(id)).collect()
    }

    /// A pod is about to lose its place, or is gone: if it is of a quorum whose Bindings did not begin, the others
    /// cannot stay either, nor can a later quorum that counts on them. The pod itself is left to the caller.
    pub(crate) fn break_quorum(&mut self, id: PodId, pod: &Pod, now: Now, out: &mut Vec<ClusterEvent>) {
        let Some(at) = self.gangs.barriers.iter().position(|b| b.quorum.contains(&id)) else { return };
        let mut broken = vec![self.gangs.barriers.remove(at)];
        let gangs: Vec<GangKey> = broken[0].gangs.iter().map(|(key, _)| key.clone()).collect();
        let shares = |b: &Barrier| b.gangs.iter().any(|(key, _)| gangs.contains(key));
        while let Some(at) = self.gangs.barriers.iter().position(shares) {
            broken.push(self.gangs.barriers.remove(at));
        }
        let mut others: Vec<PodId> = broken.iter().flat_map(|b| self.behind(b)).collect();
        others.extend(broken.iter().flat_map(|b| b.quorum.iter().copied()));
        others.retain(|other| *other != id);
        others.sort();
        others.dedup();
        others.sort_by_cached_key(|other| self.cluster.pod(*other).map(|r| r.pod.key.clone()));
        self.give_up_all(&broken[0].gangs, &pod.key, &others, now, out);
    }

    fn give_up_all(
        &mut self,
        gangs: &[(GangKey, bool)],
        lost: &PodKey,
        others: &[PodId],
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) {
        let names: Vec<String> = gangs.iter().map(|(key, _)| key.to_string()).collect();
        let message = format!("{}: {lost} was lost before the first Binding of its quorum", names.join(", "));
        let refusal = member_refusal(ReasonCode::GangQuorumBroken, &message, self.cluster.present().len());
        let refusal = Arc::new(refusal);
        // It never had this quorum: its members are planned together again.
        for (key, had_quorum) in gangs {
            self.cluster.gangs_mut().note(key, |gang| {
                gang.history.is_partial = false;
                gang.history.once_satisfied = *had_quorum;
            });
        }
        let mut members = 0;
        for id in others {
            let Some(record) = self.cluster.pod(*id) else { continue };
            let is_held = matches!(record.stage, Stage::Reserved | Stage::Permitted | Stage::PreBinding);
            let (pod, Some(node), true) = (record.pod.clone(), record.node, is_held) else { continue };
            members += 1;
            self.give_up(*id, now);
            self.report_if_changed(&pod, "SchedulerError", refusal.message());
            self.store_verdict(*id, Outcome::Refused(refusal.clone()), None, now);
            out.push(ClusterEvent::PodReleased { pod, node });
        }
        let keys: Vec<GangKey> = gangs.iter().map(|(key, _)| key.clone()).collect();
        let outcome =
            GangOutcome::Released { code: ReasonCode::GangQuorumBroken, message: message.into(), members };
        self.keep_gang_verdict(&keys, 0, outcome, now);
    }
}
