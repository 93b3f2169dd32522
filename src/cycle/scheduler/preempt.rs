//! Carries out preemption: applies the result of PostFilter (`post_filter`), nominates, orders evictions, and tracks
//! them.
//!
//! A plugin chooses the victims (`framework::victim_search`). A victim whose Binding was not ordered yet loses its
//! placement at once; any other is deleted through the API, off the scheduling thread. The preemptor stays nominated
//! and waits until its victims are gone.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::preemptions::{End, GangPart, Plan, Preemption, Victim, VictimChoice, VictimState};
use pellucid_cluster::{ClusterEvent, NominatedBy, Nomination, ShapeId, Stage};
use pellucid_framework::post_filter::PostFiltered;
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::effect::{Effect, EffectId, EventType, EvictOrder, EvictOutcome, PodRef, StatusOrder};
use pellucid_model::{Name, NodeIdx, Now, Pod, PodId};
use pellucid_queue::{RefusedBy, UnitId, WakeupReason};
use pellucid_recording::flight::{Eviction, FlightEvent};
use pellucid_recording::{Outcome, Refusal};

use crate::scheduler::Scheduler;

/// Whom a victim makes room for, and the plugin that chose it.
struct Evictor<'a> {
    plan: &'a Plan,
    preemptor: &'a Pod,
    gang: Option<&'a GangPart>,
}

impl Scheduler {
    /// Refuses a unit, and preempts for it if PostFilter found a node. Returns the plan, if victims were searched for.
    pub(crate) fn after_post_filter(
        &mut self,
        unit: UnitId,
        (id, pod, shape): (PodId, &Arc<Pod>, ShapeId),
        refusal: Arc<Refusal>,
        found: PostFiltered,
        now: Now,
    ) -> (Outcome, Option<Arc<Plan>>) {
        self.cluster.preemptions_mut().count_attempt();
        match found {
            PostFiltered::NotEligible { message } => {
                let refusal = self.with_post_filter_note(refusal, message);
                (self.refuse(unit, pod, shape, refusal, None, now), None)
            }
            PostFiltered::Nothing { message, plan } => {
                let refusal = self.with_post_filter_note(refusal, message);
                let clear = self.end_nomination(id, End::NothingFound, now).then_some(None);
                (self.refuse(unit, pod, shape, refusal, clear, now), Some(plan))
            }
            PostFiltered::Nominate(plan) => {
                let Some(best) = plan.candidates.first() else {
                    return (self.refuse(unit, pod, shape, refusal, None, now), Some(plan));
                };
                let (name, victims) = (best.name.clone(), best.victims.clone());
                let node = Some(Some(name.clone()));
                let outcome = self.refuse(unit, pod, shape, refusal, node, now);
                if self.preempt((id, pod), name, &victims, plan.clone(), None, now) {
                    self.try_again(id, now);
                }
                (outcome, Some(plan))
            }
        }
    }

    /// Returns the refusal with PostFilter's note. Consecutive equal results share one object.
    pub(crate) fn with_post_filter_note(&mut self, refusal: Arc<Refusal>, note: Arc<str>) -> Arc<Refusal> {
        if let Some((base, noted)) = &self.records.last_noted
            && Arc::ptr_eq(base, &refusal)
            && noted.post_filter.as_ref() == Some(&note)
        {
            return noted.clone();
        }
        let noted = Arc::new(refusal.with_post_filter(note));
        self.records.last_noted = Some((refusal, noted.clone()));
        noted
    }

    /// Nominates a pod and evicts its victims. Returns whether there is no victim to wait for.
    pub(crate) fn preempt(
        &mut self,
        (id, pod): (PodId, &Arc<Pod>),
        node: Name,
        victims: &[VictimChoice],
        plan: Arc<Plan>,
        gang: Option<GangPart>,
        now: Now,
    ) -> bool {
        let nominated = self.cluster.nominator().on(&node);
        let of_group = |p: &Pod| {
            p.gang.as_ref().zip(gang.as_ref()).is_some_and(|(mark, part)| part.group.contains(&mark.gang))
        };
        let is_lower = |p: &PodId| {
            self.cluster.pod(*p).is_some_and(|r| r.pod.priority < pod.priority && !of_group(&r.pod))
        };
        let lower: Vec<PodId> = nominated.iter().copied().filter(is_lower).collect();
        let by = Evictor { plan: &plan, preemptor: pod, gang: gang.as_ref() };
        let victims: Vec<Victim> =
            victims.iter().filter_map(|choice| self.evict(choice, &by, &node, now)).collect();
        let preemption = Preemption {
            preemptor: pod.key.clone(),
            uid: pod.uid.clone(),
            priority: pod.priority,
            node: node.clone(),
            decided: now,
            cycle: self.cycle,
            victims,
            plan,
            gang,
            end: None,
        };
        let is_clear = preemption.is_clear();
        let chose_another = self.cluster.preemptions().of(id).is_some_and(|p| p.node != preemption.node);
        self.cluster.preemptions_mut().begin(id, preemption, &lower);
        if chose_another {
            self.record_ended_preemption(id, now);
        }
        for other in lower {
            self.clear_nomination(other, End::Overtaken, now);
        }
        let nomination = Nomination { node, by: NominatedBy::Us, since: now };
        if let Some(before) = self.cluster.nominator_mut().nominate(id, nomination) {
            let ended = ClusterEvent::NominationEnded { pod: pod.clone(), node: before.node };
            self.wake(&ended, now);
        }
        is_clear
    }

    /// Orders an eviction, or takes back a placement that the API server does not know of yet. A victim that is already
    /// on its way is only waited for.
    fn evict(&mut self, choice: &VictimChoice, by: &Evictor<'_>, node: &Name, now: Now) -> Option<Victim> {
        let preemptor = by.preemptor;
        let record = self.cluster.pod(choice.pod)?;
        let (pod, stage) = (record.pod.clone(), record.stage);
        let line = |state, since, is_counted| Victim {
            pod: choice.pod,
            key: pod.key.clone(),
            uid: pod.uid.clone(),
            stands_for: pod.stands_for.clone(),
            priority: pod.priority,
            violates_budget: choice.violates_budget,
            state,
            chosen: now,
            since,
            is_counted,
        };
        if let Some(known) = self.cluster.preemptions().victim(choice.pod) {
            return Some(line(known.state.clone(), known.since, false));
        }
        if pod.deleting {
            return Some(line(VictimState::Terminating, now, false));
        }
        // The eviction was ordered for a preemption that has ended since.
        if self.in_flight.evicting.get(&choice.pod) == Some(&pod.uid) {
            return Some(line(VictimState::Ordered, now, false));
        }
        let mut note = format!("Preempted by pod {} on node {node}", preemptor.uid);
        let state = match stage {
            // The pod lost its place a moment ago, together with another member of its gang.
            Stage::Pending => {
                self.record_eviction((choice, &pod), by, node, now);
                return Some(line(VictimState::Cancelled, now, true));
            }
            // The API server has no such pod: its plugin ends the object, which may say already that it is placed.
            Stage::PreBinding | Stage::Binding | Stage::Bound if pod.stands_for.is_some() => {
                self.record_eviction((choice, &pod), by, node, now);
                self.cluster.stand_in_evicted(&pod, &note.as_str().into());
                VictimState::Ordered
            }
            Stage::Reserved | Stage::Waiting | Stage::PreBinding => {
                note.push_str(" (in kube-scheduler memory).");
                self.record_eviction((choice, &pod), by, node, now);
                self.cancel_placement(choice.pod, node, by.plan.plugin, now);
                VictimState::Cancelled
            }
            _ => {
                let id = self.in_flight.next_effect_id();
                let (scheduler, kind) =
                    (&preemptor.scheduler_name, if by.gang.is_some() { "podgroup" } else { "pod" });
                let message = format!("{scheduler}: preempting to accommodate a higher priority {kind}");
                self.in_flight.evictions.insert(id, (choice.pod, pod.uid.clone()));
                self.in_flight.evicting.insert(choice.pod, pod.uid.clone());
                self.record_eviction((choice, &pod), by, node, now);
                let (victim, preemptor, message) = (PodRef::of(&pod), PodRef::of(preemptor), message.into());
                self.order(Effect::Evict(EvictOrder { id, victim, preemptor, message }));
                VictimState::Ordered
            }
        };
        self.order_event(PodRef::of(&pod), EventType::Normal, ("Preempted", "Preempting"), note.into());
        Some(line(state, now, true))
    }

    /// Records for a victim who evicts it and for what. Call it before the victim's stage changes.
    fn record_eviction(
        &mut self,
        (choice, pod): (&VictimChoice, &Pod),
        by: &Evictor<'_>,
        node: &Name,
        now: Now,
    ) {
        let stage = self.cluster.pod(choice.pod).map(|record| record.stage);
        let eviction = Eviction {
            preemptor: by.preemptor.key.clone(),
            preemptor_priority: by.preemptor.priority,
            priority: pod.priority,
            violates_budget: choice.violates_budget,
            is_ordered: matches!(stage, Some(Stage::Permitted | Stage::Binding | Stage::Bound)),
            gang: by.gang.cloned(),
            lack: by.plan.lack.clone(),
        };
        self.record_event((choice.pod, &pod.key), node, FlightEvent::Evicted(Arc::new(eviction)), now);
    }

    /// Records for the preemptor that its preemption, the newest that has ended, is over.
    pub(crate) fn record_ended_preemption(&mut self, id: PodId, now: Now) {
        let Some(ended) = self.cluster.preemptions().ended().next().cloned() else { return };
        let (key, node) = (ended.preemptor.clone(), ended.node.clone());
        self.record_event((id, &key), &node, FlightEvent::PreemptionEnded(ended), now);
    }

    /// Takes back the placement of a pod whose Binding was not ordered yet, and reports it. The pod's quorum is given
    /// up with it.
    fn cancel_placement(&mut self, id: PodId, name: &Name, plugin: &'static str, now: Now) {
        let Some(record) = self.cluster.pod(id) else { return };
        let (pod, Some(node)) = (record.pod.clone(), record.node) else { return };
        let mut events = Vec::new();
        self.break_quorum(id, &pod, now, &mut events);
        self.give_up(id, now);
        let reason = Reason::about(ReasonCode::PlacementTakenBack, &**name);
        let cause = Cause::new(plugin, Code::Unschedulable, reason);
        let refusal = Arc::new(Refusal::of_pod(cause, self.cluster.present().len(), RefusedBy::default()));
        self.report_if_changed(&pod, "SchedulerError", refusal.message());
        self.store_verdict(id, Outcome::Refused(refusal), now);
        events.push(ClusterEvent::PodReleased { pod, node });
        self.wake_all(&events, now);
    }

    /// Applies the outcome of an evict order, and wakes preemptors that no longer wait for victims.
    pub(crate) fn settle_eviction(&mut self, id: EffectId, uid: &Arc<str>, outcome: EvictOutcome, now: Now) {
        let Some((victim, of)) = self.in_flight.evictions.remove(&id) else { return };
        if self.in_flight.evicting.get(&victim) == Some(&of) {
            self.in_flight.evicting.remove(&victim);
        }
        if self.cluster.pod(victim).is_none_or(|r| r.pod.uid != *uid) {
            return;
        }
        let state = match outcome {
            // The room becomes free when the watch delivers the deletion.
            EvictOutcome::Deleted | EvictOutcome::Gone => VictimState::Terminating,
            EvictOutcome::Refused { status, message } => {
                VictimState::Refused(format!("{message} (HTTP {status})").into())
            }
        };
        for preemptor in self.cluster.preemptions_mut().set_victim_state(victim, state, now) {
            if let Some(unit) = self.queue.unit_of(preemptor).filter(|unit| !self.awaits_victims(*unit)) {
                self.queue.wake_changed(unit, WakeupReason::Preemption, now.monotonic);
            }
        }
    }

    /// Whether a unit waits for victims of any of its pods.
    pub(crate) fn awaits_victims(&self, unit: UnitId) -> bool {
        let book = self.cluster.preemptions();
        let pods = self.queue.unit(unit).map(|unit| unit.pods.iter()).into_iter().flatten();
        pods.filter_map(|id| book.of(*id)).any(|preemption| !preemption.is_clear())
    }

    /// Notes that a pod left the state, and retries the preemptors whose victim it was.
    pub(crate) fn victim_gone(&mut self, id: PodId, now: Now) {
        for preemptor in self.cluster.preemptions_mut().set_victim_state(id, VictimState::Gone, now) {
            self.try_again(preemptor, now);
        }
    }

    /// Activates a preemptor's unit, unless it waits for other victims: a gang waits for those of all its members.
    pub(crate) fn try_again(&mut self, preemptor: PodId, now: Now) {
        if let Some(unit) = self.queue.unit_of(preemptor).filter(|unit| !self.awaits_victims(*unit)) {
            self.queue.activate(unit, now.monotonic);
        }
    }

    /// Adopts a changed `status.nominatedNodeName`, unless it is the echo of our own write: we may have decided
    /// otherwise since.
    pub(crate) fn adopt_nomination(&mut self, id: PodId, old: Option<&Pod>, now: Now) {
        let Some(pod) = self.cluster.pod(id).filter(|r| r.node.is_none()).map(|r| r.pod.clone()) else {
            return;
        };
        if old.is_some_and(|old| old.nominated_node == pod.nominated_node)
            || self.cluster.nominator_mut().take_echo(id, pod.nominated_node.as_ref())
        {
            return;
        }
        let known = self.cluster.nominator().of(id).map(|n| &n.node);
        if known.is_some() && known == pod.nominated_node.as_ref() {
            return;
        }
        self.end_nomination(id, End::NominationChanged, now);
        if let Some(node) = pod.nominated_node.clone() {
            let nomination = Nomination { node, by: NominatedBy::Others, since: now };
            self.cluster.nominator_mut().nominate(id, nomination);
        }
    }

    /// Returns the nomination that the API server should have, if it has another one because a write was lost.
    pub(crate) fn lost_nomination_write(&self, unit: UnitId, pod: &Pod) -> Option<Option<Name>> {
        let id = self.queue.unit(unit)?.pods[0];
        let ours = self.cluster.nominator().of(id).map(|n| &n.node);
        (pod.nominated_node.as_ref() != ours).then(|| ours.cloned())
    }

    /// Clears the nomination of a bound pod. The API server clears it when it binds; this removes one that was written
    /// a moment later.
    pub(crate) fn clear_late_nomination(&mut self, pod: &Pod) {
        let is_late = pod.node_name.is_some() && pod.nominated_node.is_some() && !pod.deleting;
        if is_late && !pod.phase.is_terminal() && self.cluster.is_ours(&pod.scheduler_name) {
            self.order_nomination(pod, None);
        }
    }

    /// Notes a nomination that we write, so that its echo on the watch is not taken for another component's.
    pub(crate) fn expect_nomination(&mut self, order: &StatusOrder) {
        let (Some(nomination), Some(id)) = (&order.nomination, self.cluster.find_pod(&order.pod.key)) else {
            return;
        };
        let known = self.cluster.pod(id).and_then(|r| r.pod.nominated_node.clone());
        self.cluster.nominator_mut().expect_echo(id, known.as_ref(), nomination.clone());
    }

    /// Ends a pod's nomination and the preemption behind it, and wakes units that the nomination kept out. Returns
    /// whether there was one.
    pub(crate) fn end_nomination(&mut self, id: PodId, end: End, now: Now) -> bool {
        if self.cluster.preemptions_mut().end(id, end, now) {
            self.record_ended_preemption(id, now);
        }
        let Some(nomination) = self.cluster.nominator_mut().end(id) else { return false };
        if let Some(pod) = self.cluster.pod(id).map(|r| r.pod.clone()) {
            self.wake(&ClusterEvent::NominationEnded { pod, node: nomination.node }, now);
        }
        true
    }

    /// Like [`Self::end_nomination`], but also clears the nomination in the API and retries the pod.
    pub(crate) fn clear_nomination(&mut self, id: PodId, end: End, now: Now) {
        if !self.end_nomination(id, end, now) {
            return;
        }
        if let Some(pod) = self.cluster.pod(id).map(|r| r.pod.clone()) {
            self.order_nomination(&pod, None);
        }
        if let Some(unit) = self.queue.unit_of(id) {
            self.queue.wake_changed(unit, WakeupReason::Preemption, now.monotonic);
        }
    }

    /// Ends the nomination of a pod that has a place or is gone. Wakes units that the nomination kept out, unless the
    /// pod is on that node.
    pub(crate) fn consume_nomination(&mut self, id: PodId, pod: &Arc<Pod>, node: Option<NodeIdx>, now: Now) {
        let Some(nomination) = self.cluster.nominator_mut().end(id) else { return };
        if node.map(|node| self.cluster.node_name(node)) != Some(&nomination.node) {
            self.wake(&ClusterEvent::NominationEnded { pod: pod.clone(), node: nomination.node }, now);
        }
    }

    /// Wakes nominated pods of higher priority after a pod left their node. They may have been postponed because that
    /// pod was terminating, whatever events the plugins that refused them listen to.
    pub(crate) fn wake_nominees(&mut self, gone: &Pod, node: NodeIdx, now: Now) {
        let nominees = self.cluster.nominator().on(self.cluster.node_name(node));
        let is_higher = |id: &&PodId| self.cluster.pod(**id).is_some_and(|r| r.pod.priority > gone.priority);
        let units: Vec<UnitId> =
            nominees.iter().filter(is_higher).filter_map(|id| self.queue.unit_of(*id)).collect();
        for unit in units {
            let is_gang = self.queue.unit(unit).is_some_and(|u| u.gang.is_some());
            if !is_gang || !self.awaits_victims(unit) {
                self.queue.wake_changed(unit, WakeupReason::Preemption, now.monotonic);
            }
        }
    }

    /// Ends nominations to nodes that no longer exist.
    pub(crate) fn end_nominations_to_missing_nodes(&mut self, now: Now) {
        let cluster = &self.cluster;
        let is_missing = |name: &Name| cluster.find_node(name).and_then(|node| cluster.node(node)).is_none();
        let pods = cluster.nominator().nodes().filter(|(name, _)| is_missing(name));
        let pods: Vec<PodId> = pods.flat_map(|(_, pods)| pods.iter().copied()).collect();
        for pod in pods {
            self.clear_nomination(pod, End::NodeGone, now);
        }
    }

    /// Closes the preemption of a pod that was placed or is gone.
    pub(crate) fn close_preemption(&mut self, id: PodId, now: Now) {
        let Some(preemption) = self.cluster.preemptions().of(id) else { return };
        let node = self.cluster.pod(id).and_then(|r| r.node).map(|n| self.cluster.node_name(n));
        let end = match node {
            None => End::PreemptorGone,
            Some(node) if *node == preemption.node => End::Bound,
            Some(_) => End::PlacedElsewhere,
        };
        let is_of_gang = preemption.gang.is_some();
        if self.cluster.preemptions_mut().end(id, end, now) {
            self.record_ended_preemption(id, now);
        }
        if is_of_gang && end == End::PreemptorGone {
            // The rest of the gang may have waited only for its victims.
            self.try_again(id, now);
        }
    }
}
