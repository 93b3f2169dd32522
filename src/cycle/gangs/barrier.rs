//! The Bindings of a strict quorum begin together: none is ordered before every PreBind of it succeeded.
//!
//! Until then the quorum can still be given up as a whole, and is when one of its members is lost. Members beyond
//! the quorum wait behind the same barrier: without the quorum they would be bound alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;

use super::verdict::{GangOutcome, member_refusal};
use crate::cluster::ClusterEvent;
use crate::cycle::decision::Outcome;
use crate::cycle::scheduler::Scheduler;
use crate::model::{GangKey, Now, Pod, PodId, PodKey};

/// A quorum whose Bindings did not begin.
pub(super) struct Barrier {
    /// Its members.
    quorum: BTreeSet<PodId>,
    /// Those of them whose PreBind is not ready.
    left: BTreeSet<PodId>,
}

impl Scheduler {
    /// Starts what comes after the decision for the members of a quorum.
    pub(super) fn start_quorum(&mut self, rep: &GangKey, ids: &[PodId], now: Now) {
        if self.shadow.is_some() {
            for id in ids {
                self.hold_in_shadow(*id, now);
            }
            return;
        }
        let quorum: BTreeSet<PodId> = ids.iter().copied().collect();
        self.gangs.barriers.insert(rep.clone(), Barrier { left: quorum.clone(), quorum });
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

    fn barrier_of(&self, pod: &Pod) -> Option<GangKey> {
        let rep = self.gangs.of.get(self.gang_of(pod)?)?;
        self.gangs.barriers.contains_key(rep).then(|| rep.clone())
    }

    /// The PreBind of a pod is ready. Returns the pods whose Bindings may be ordered now, in their order: it
    /// alone, none while its quorum is not ready, or the whole quorum and whoever waited behind it.
    pub(in crate::cycle) fn pass_barrier(&mut self, id: PodId, pod: &Pod) -> Vec<PodId> {
        let Some(rep) = self.barrier_of(pod) else { return vec![id] };
        let Some(barrier) = self.gangs.barriers.get_mut(&rep) else { return vec![id] };
        barrier.left.remove(&id);
        if !barrier.left.is_empty() {
            return Vec::new();
        }
        let quorum = self.gangs.barriers.remove(&rep).map(|b| b.quorum).unwrap_or_default();
        let mut all = self.behind(&rep);
        let key = |id: &PodId| self.cluster.pod(*id).map(|r| r.pod.key.clone());
        all.sort_by_cached_key(|id| (!quorum.contains(id), key(id)));
        all
    }

    /// Returns the pods of a group whose PreBind began and whose Binding was not ordered.
    fn behind(&self, rep: &GangKey) -> Vec<PodId> {
        let Some(group) = self.gangs.groups.get(rep) else { return Vec::new() };
        let gangs = group.keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let members = gangs.flat_map(|g| g.members.keys().copied());
        members.filter(|id| self.pre_binding.contains_key(id)).collect()
    }

    /// A pod is about to lose its place, or is gone: if it is of a quorum whose Bindings did not begin, the others
    /// cannot stay either. The pod itself is left to the caller.
    pub(in crate::cycle) fn break_quorum(
        &mut self,
        id: PodId,
        pod: &Pod,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) {
        let Some(rep) = self.barrier_of(pod) else { return };
        if !self.gangs.barriers.get(&rep).is_some_and(|b| b.quorum.contains(&id)) {
            return;
        }
        let quorum = self.gangs.barriers.remove(&rep).map(|b| b.quorum).unwrap_or_default();
        let mut others = self.behind(&rep);
        others.extend(quorum);
        others.retain(|other| *other != id);
        others.sort_by_cached_key(|other| self.cluster.pod(*other).map(|r| r.pod.key.clone()));
        others.dedup();
        self.give_up_all(&rep, &pod.key, &others, now, out);
    }

    fn give_up_all(
        &mut self,
        rep: &GangKey,
        lost: &PodKey,
        others: &[PodId],
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) {
        let message = format!("{rep}: {lost} was lost before the first Binding of its quorum");
        let refusal = member_refusal(ReasonCode::GangQuorumBroken, &message, self.cluster.present().len());
        let refusal = Arc::new(refusal);
        let mut members = 0;
        for id in others {
            let Some(record) = self.cluster.pod(*id) else { continue };
            let (pod, Some(node)) = (record.pod.clone(), record.node) else { continue };
            members += 1;
            self.give_up(*id, now);
            self.tell_changed(&pod, "SchedulerError", refusal.message());
            self.store_verdict(*id, Outcome::Refused(refusal.clone()), None, now);
            out.push(ClusterEvent::PodReleased { pod, node });
        }
        let keys = self.gangs.groups.get(rep).map(|g| g.keys.clone()).unwrap_or_default();
        for key in &keys {
            self.cluster.gangs_mut().note(key, |gang| gang.history.is_partial = false);
        }
        let outcome =
            GangOutcome::Released { code: ReasonCode::GangQuorumBroken, message: message.into(), members };
        self.keep_gang_verdict(&keys, 0, outcome, now);
    }
}
