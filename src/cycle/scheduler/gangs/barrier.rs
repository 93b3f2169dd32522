//! Holds back the Bindings of a strict quorum until the PreBind of every member has succeeded.
//!
//! Until then the quorum can be given up as a whole, and is when it loses a member. Members beyond the quorum wait
//! behind the same barrier, because without the quorum they would be bound alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{ClusterEvent, Stage};
use pellucid_framework::profile::Aside;
use pellucid_model::{GangKey, Now, Pod, PodId, PodKey};
use pellucid_recording::Outcome;
use pellucid_recording::gang_verdict::{GangOutcome, member_refusal};

use crate::scheduler::Scheduler;

/// A quorum whose Bindings have not begun. It is identified by its pods, because its gangs may be regrouped meanwhile.
pub(super) struct Barrier {
    /// The gangs of the group, and whether each had a quorum before.
    gangs: Vec<(GangKey, bool)>,
    quorum: BTreeSet<PodId>,
    /// The members of the quorum whose PreBind is not ready.
    left: BTreeSet<PodId>,
}

impl Scheduler {
    /// Starts PreBind for the members of a quorum.
    pub(super) fn start_quorum(&mut self, gangs: Vec<(GangKey, bool)>, ids: &[PodId], now: Now) {
        if self.shadow.is_some() {
            return ids.iter().for_each(|id| self.hold_in_shadow(*id, now));
        }
        let quorum: BTreeSet<PodId> = ids.iter().copied().collect();
        self.gangs.barriers.push(Barrier { gangs, left: quorum.clone(), quorum });
        let mut events = Vec::new();
        for id in ids {
            let Some(unit) = self.queue.unit_of(*id) else { continue };
            // A member that failed has taken the others with it.
            if self.cluster.pod(*id).is_none_or(|r| r.node.is_none()) {
                continue;
            }
            self.start_binding(*id, unit, (now, false, Aside::default()), &mut events);
        }
        self.wake_all(&events, now);
    }

    /// Returns the index of the barrier that has a pod in its quorum.
    fn quorum_of(&self, id: PodId) -> Option<usize> {
        self.gangs.barriers.iter().position(|b| b.quorum.contains(&id))
    }

    /// Returns whether the Bindings of some quorum wait for each other.
    pub(crate) fn has_barriers(&self) -> bool {
        !self.gangs.barriers.is_empty()
    }

    /// Notes that a pod's PreBind is ready. Returns the pods whose Bindings may be ordered now, in order: the pod alone
    /// if no barrier holds it, none while its quorum is not ready, or the quorum and the pods that are ready behind it.
    pub(crate) fn pass_barrier(&mut self, id: PodId, pod: &Pod) -> Vec<PodId> {
        let is_behind = |b: &Barrier| {
            let gang = self.gang_of(pod);
            b.gangs.iter().any(|(key, _)| Some(key) == gang)
        };
        let at = self.quorum_of(id).or_else(|| self.gangs.barriers.iter().position(is_behind));
        let Some(at) = at else { return vec![id] };
        self.gangs.barriers[at].left.remove(&id);
        self.open_barrier(at)
    }

    /// Removes a pod that needs no Binding any more from its quorum. Returns the pods whose Bindings may be ordered
    /// now.
    pub(crate) fn leave_barrier(&mut self, id: PodId) -> Vec<PodId> {
        let Some(at) = self.quorum_of(id) else { return Vec::new() };
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
        // Pods beyond the quorum whose PreBind is in progress are bound on their own later.
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

    /// Gives up the quorum of a pod that is about to lose its place, if its Bindings have not begun, and all later
    /// quorums that count on it. The caller handles the pod itself.
    pub(crate) fn break_quorum(&mut self, id: PodId, pod: &Pod, now: Now, out: &mut Vec<ClusterEvent>) {
        let Some(at) = self.quorum_of(id) else { return };
        let mut broken = vec![self.gangs.barriers.remove(at)];
        let gangs: Vec<GangKey> = broken[0].gangs.iter().map(|(key, _)| key.clone()).collect();
        let shares = |b: &Barrier| b.gangs.iter().any(|(key, _)| gangs.contains(key));
        while let Some(at) = self.gangs.barriers.iter().position(shares) {
            broken.push(self.gangs.barriers.remove(at));
        }
        let others = broken.iter().flat_map(|b| self.behind(b).into_iter().chain(b.quorum.iter().copied()));
        let others: BTreeSet<PodId> = others.filter(|other| *other != id).collect();
        let mut others: Vec<PodId> = others.into_iter().collect();
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
        // The gang never had this quorum, so its members are planned together again.
        for (key, had_quorum) in gangs {
            self.cluster.gangs_mut().update(key, |gang| {
                gang.history.is_partial = false;
                gang.history.once_satisfied = *had_quorum;
            });
        }
        let mut members = 0;
        for id in others {
            let Some(record) = self.cluster.pod(*id) else { continue };
            let is_held = matches!(
                record.stage,
                Stage::Reserved | Stage::Waiting | Stage::Permitted | Stage::PreBinding
            );
            let (pod, Some(node), true) = (record.pod.clone(), record.node, is_held) else { continue };
            members += 1;
            self.give_up(*id, now);
            self.report_if_changed(&pod, "SchedulerError", refusal.message());
            self.store_verdict(*id, Outcome::Refused(refusal.clone()), now);
            out.push(ClusterEvent::PodReleased { pod, node });
        }
        let keys: Vec<GangKey> = gangs.iter().map(|(key, _)| key.clone()).collect();
        let outcome =
            GangOutcome::Released { code: ReasonCode::GangQuorumBroken, message: message.into(), members };
        self.keep_gang_verdict(&keys, 0, outcome, now);
    }
}
