//! Carries out in a simulation what the scheduler ordered: Bindings, evictions, and what controllers make of them.
//!
//! It plays the API server and the controllers of pods. Decisions are the scheduler's.

use std::sync::Arc;

use pellucid_cluster::objects::ObjectKey;
use pellucid_cluster::preemptions::Victim;
use pellucid_cluster::{Cluster, ClusterEvent, Input, PodRecord, Stage};
use pellucid_model::effect::{BindOrder, BindOutcome, Effect, EffectReport, EvictOrder};
use pellucid_model::pod::StandsFor;
use pellucid_model::{CustomKindRef, Name, NodeIdx, PodId, PodKey, cancellation};

use super::edit::replacement;
use super::simulation::Simulation;

/// A pod that would be evicted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evicted {
    /// Namespace and name of the victim.
    pub pod: PodKey,
    /// The object that the victim stands for, if it stands for one.
    pub stands_for: Option<Arc<StandsFor>>,
    /// The victim's node.
    pub node: Name,
    /// The pod for which the victim is evicted.
    pub preemptor: PodKey,
}

impl Simulation {
    /// Takes the effects: confirms Bindings, writes objects that get their places, and notes evictions, which it carries out if
    /// `evict` is true. Drops the others. Returns whether a pod was evicted.
    pub(super) fn settle(&mut self, evict: bool) -> bool {
        let mut gone = false;
        loop {
            let effects = self.scheduler.take_effects();
            let before = (self.stages.len(), self.evicted.len());
            let mut has_written = false;
            for effect in effects {
                match effect {
                    Effect::Bind(order) => self.confirm(order),
                    Effect::Evict(order) => gone |= self.carry_out(&order, evict),
                    Effect::Object(order) => has_written |= self.write(&order),
                    _ => {}
                }
            }
            gone |= self.carry_out_objects(evict);
            gone |= self.end_objects();
            if !has_written && before == (self.stages.len(), self.evicted.len()) {
                return gone;
            }
        }
    }

    /// Confirms a Binding, as the API server would.
    fn confirm(&mut self, order: BindOrder) {
        cancellation::check();
        let cluster = &self.scheduler.cluster;
        let record = cluster.find_pod(&order.pod.key).and_then(|id| cluster.pod(id));
        let Some(stage) = record.filter(|r| r.pod.uid == order.pod.uid).map(|r| r.stage) else { return };
        self.stages.insert(order.pod.key.clone(), stage);
        let (id, uid, outcome) = (order.id, order.pod.uid.clone(), BindOutcome::Bound);
        self.scheduler.apply(Input::Report(EffectReport::BindDone { id, uid, outcome }), self.now);
    }

    /// Notes an eviction, and deletes the victim if `evict` is true. Returns whether it did.
    fn carry_out(&mut self, order: &EvictOrder, evict: bool) -> bool {
        let cluster = &self.scheduler.cluster;
        let victim = order.victim.key.clone();
        let record = cluster.find_pod(&victim).and_then(|id| cluster.pod(id));
        let stands_for = record.and_then(|record| record.pod.stands_for.clone());
        let node = record.and_then(|record| record.node);
        let node = node.map(|node| cluster.node_name(node).clone()).unwrap_or_default();
        if evict {
            self.remove(&victim);
        }
        let preemptor = order.preemptor.key.clone();
        self.evicted.push(Evicted { pod: victim, stands_for, node, preemptor });
        evict
    }

    /// Notes the objects whose pods are to go, and deletes these if `evict` is true. No order says so: their plugin ends
    /// them. Returns whether there were any to delete.
    fn carry_out_objects(&mut self, evict: bool) -> bool {
        let is_known = |pod: &PodKey| self.evicted.iter().any(|known| known.pod == *pod);
        let going = self.awaited(|victim| victim.stands_for.is_some() && !is_known(&victim.key));
        let any = !going.is_empty();
        for eviction in going {
            if evict {
                self.remove(&eviction.pod);
            }
            self.evicted.push(eviction);
        }
        any && evict
    }

    /// Takes as gone the objects that their plugins end by a write. Returns whether there were any.
    fn end_objects(&mut self) -> bool {
        let ending = self.scheduler.cluster.ending_objects();
        for (kind, key) in &ending {
            cancellation::check();
            self.note_end(*kind, key);
            self.scheduler.apply(Input::CustomDeleted(*kind, key.clone()), self.now);
        }
        !ending.is_empty()
    }

    /// Notes where the pod stood that stands for an object which ends.
    fn note_end(&mut self, kind: CustomKindRef, key: &ObjectKey) {
        let cluster = &self.scheduler.cluster;
        let object = cluster.custom_objects().get(kind, key);
        let Some(Some(Ok(pod))) = object.map(|object| &object.pod) else { return };
        let node = cluster.find_pod(&pod.key).and_then(|id| cluster.pod(id)?.node);
        if let Some(node) = node.filter(|_| self.asked.contains(&pod.key)) {
            self.ended.insert(pod.key.clone(), cluster.node_name(node).clone());
        }
    }

    /// Returns the victims of preemptions under way that are still there, sorted.
    fn awaited(&self, which: impl Fn(&Victim) -> bool) -> Vec<Evicted> {
        let cluster = &self.scheduler.cluster;
        let mut going: Vec<Evicted> = Vec::new();
        for (_, preemption) in cluster.preemptions().open() {
            for victim in preemption.victims.iter().filter(|v| v.state.is_awaited() && which(v)) {
                let record = cluster.pod(victim.pod).filter(|record| record.pod.uid == victim.uid);
                let Some(node) = record.and_then(|record| record.node) else { continue };
                let node = cluster.node_name(node).clone();
                let (pod, preemptor) = (victim.key.clone(), preemption.preemptor.clone());
                going.push(Evicted { pod, stands_for: victim.stands_for.clone(), node, preemptor });
            }
        }
        going.sort();
        going
    }

    /// Carries out the evictions that were ordered before the state was published, and whose victims are still there.
    /// Those of requested preemptors are noted.
    pub(super) fn carry_out_earlier(&mut self) {
        for eviction in self.awaited(|_| true) {
            cancellation::check();
            if self.scheduler.cluster.find_pod(&eviction.pod).is_some() {
                self.remove(&eviction.pod);
            }
            if self.asked.contains(&eviction.preemptor) {
                self.evicted.push(eviction);
            }
        }
    }

    /// Lets the pods go that are being deleted. Returns whether there were any.
    pub fn end_terminating(&mut self) -> bool {
        let cluster = &self.scheduler.cluster;
        let going = cluster.pods().filter(|(_, record)| is_terminating(cluster, record));
        let mut going: Vec<PodKey> = going.map(|(_, record)| record.pod.key.clone()).collect();
        going.sort();
        for key in &going {
            cancellation::check();
            self.remove(key);
        }
        !going.is_empty()
    }

    /// Tells waiting pods of placed pods that wait for a write at PreBind, or in shadow mode for the other scheduler,
    /// as if these were bound. Returns whether there were any that were not told of before.
    pub(super) fn announce(&mut self) -> bool {
        let in_flight = &self.scheduler.in_flight;
        let is_permitted = |id: &PodId| in_flight.permit_waits.get(id).is_none();
        let before_binding = in_flight.pre_binding.keys().copied().filter(is_permitted);
        let held = in_flight.shadow_holds.iter().map(|(_, id)| *id);
        let mut placed: Vec<PodId> = before_binding.chain(held).collect();
        placed.sort_unstable();
        placed.retain(|id| self.announced.insert(*id));
        for id in &placed {
            let Some(node) = self.scheduler.cluster.pod(*id).and_then(|record| record.node) else { continue };
            self.scheduler.wake_all(&[ClusterEvent::PodBound { id: *id, node }], self.now);
        }
        !placed.is_empty()
    }

    /// Tells waiting pods of the placed pods whose Bindings nobody has confirmed, as if somebody had.
    pub(super) fn announce_unconfirmed(&mut self) {
        let is_told = |r: &PodRecord| r.stage.is_assumed() && r.stage != Stage::Waiting;
        let placed = self.scheduler.cluster.pods().filter(|(_, record)| is_told(record));
        let placed: Vec<(PodId, NodeIdx)> =
            placed.filter_map(|(id, record)| Some((id, record.node?))).collect();
        for (id, node) in placed {
            self.announced.insert(id);
            self.scheduler.wake_all(&[ClusterEvent::PodBound { id, node }], self.now);
        }
    }

    /// Whether something depends on the writes before the Bindings of pods that were told of as bound: one of these has lost its
    /// place, or stands in the room of an object that may end with its Binding, or the volumes that the writes bring about are
    /// needed by others.
    pub(super) fn depends_on_writes(&self) -> bool {
        let record = |id: &PodId| self.scheduler.cluster.pod(*id);
        let has_lost = |id: &PodId| record(id).is_none_or(|record| record.node.is_none());
        let is_guest = |id: &PodId| record(id).is_some_and(|record| record.host.is_some());
        self.announced.iter().any(|id| has_lost(id) || is_guest(id)) || self.shares_unbound_claims()
    }

    /// Whether the plan depends on a volume that nobody has made: another requested pod uses a claim of a pod that was told of
    /// as bound. From where its volume can be used is known only once it is there.
    fn shares_unbound_claims(&self) -> bool {
        let cluster = &self.scheduler.cluster;
        let claims = |id: PodId| {
            let pod = cluster.pod(id).map(|record| &record.pod).into_iter();
            pod.flat_map(|pod| pod.spec.volumes.claims.iter().map(|used| (&pod.key.namespace, &used.claim)))
        };
        let is_unbound = |(namespace, claim): (&Name, &Name)| {
            cluster.objects().claim(namespace, claim).is_some_and(|claim| claim.volume.is_empty())
        };
        let told = self.announced.iter().flat_map(|id| claims(*id).map(move |claim| (*id, claim)));
        let unbound: Vec<_> = told.filter(|(_, claim)| is_unbound(*claim)).collect();
        let is_shared = |user: PodId| {
            claims(user).any(|claim| unbound.iter().any(|(id, known)| *id != user && *known == claim))
        };
        !unbound.is_empty() && self.asked.iter().filter_map(|key| cluster.find_pod(key)).any(is_shared)
    }

    /// Deletes a pod, and adds the one that replaces it.
    pub(super) fn remove(&mut self, key: &PodKey) {
        let cluster = &self.scheduler.cluster;
        let gone = cluster.find_pod(key).and_then(|id| cluster.pod(id)).map(|record| record.pod.clone());
        self.scheduler.apply(Input::PodDeleted(key.clone()), self.now);
        let Some((pod, controller)) = gone.filter(|_| self.replaces).and_then(|pod| {
            let controller = pod.controller.clone()?;
            Some((pod, controller))
        }) else {
            return;
        };
        let is_known =
            matches!(&*controller.kind, "ReplicaSet" | "ReplicationController" | "StatefulSet" | "Job");
        if !is_known || !self.scheduler.cluster.is_ours(&pod.scheduler_name) {
            self.is_unsure = true;
            return;
        }
        if pod.deleting && &*controller.kind != "StatefulSet" {
            // It was replaced when its deletion began.
            return;
        }
        self.asked.insert(key.clone());
        self.arrive(key.clone());
        self.scheduler.apply(Input::PodApplied(Arc::new(replacement(&pod))), self.now);
    }
}

/// Whether a pod on a node is being deleted and will leave. Nobody confirms the end of a pod on a node that is not reached.
pub fn is_terminating(cluster: &Cluster, record: &PodRecord) -> bool {
    let is_reached = |node: NodeIdx| {
        let node = cluster.node(node);
        node.is_some_and(|node| node.taints.iter().all(|t| &*t.key != "node.kubernetes.io/unreachable"))
    };
    record.pod.deleting && record.pod.can_leave() && record.node.is_some_and(is_reached)
}
