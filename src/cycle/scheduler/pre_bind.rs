//! Permit and PreBind: what is waited for between the decision and the Binding.
//!
//! A placed pod is first asked about at Permit until all plugins say yes, then at PreBind until all are ready. The
//! scheduler asks when the pod is placed, when one of the plugins' writes is settled, and when something changes that
//! a plugin listens to. It never blocks: a pod that waits for minutes keeps its place, and other pods go on. The writes
//! themselves are ordered in [`super::object_orders`].

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{ClusterEvent, EventKinds, PodRecord, Stage, due_marks_of};
use pellucid_framework::plugin::{Plugin, PreBound};
use pellucid_framework::profile::{Aside, Enabled};
use pellucid_framework::{Cause, Code, Permitted, Reason, View};
use pellucid_model::effect::{BindOrder, Effect, EffectId, ObjectWrite, WriteOutcome};
use pellucid_model::{NodeIdx, Now, ObjectKind, PodId};
use pellucid_queue::{Listening, UnitId};
use pellucid_recording::{Outcome, Refusal};

use crate::attempt::refusal::refusal_of_pod;
use crate::scheduler::Scheduler;
use crate::scheduler::object_orders::{Ordered, Wanted};

/// A placed pod whose Binding is not ordered yet.
#[derive(Clone, Debug)]
pub(crate) struct PreBinding {
    unit: UnitId,
    /// The scheduling cycle that placed the pod.
    attempt: u64,
    /// When the pod was placed, or when Permit let it go on.
    since: Duration,
    /// Whether all plugins said yes at Permit.
    is_permitted: bool,
    /// The plugins that the pod did not concern when it was placed.
    aside: Aside,
    /// When the placement is given up; `Duration::MAX` while no plugin waits.
    deadline: Duration,
    /// The plugin whose wait ends first; empty while none waits.
    plugin: &'static str,
    /// The kinds of events that the plugins which wait listen to.
    listens: EventKinds,
    /// Writes ordered so far.
    pub(super) ordered: Vec<Ordered>,
}

impl PreBinding {
    /// Sets what is waited for.
    fn wait(&mut self, waits: &Waits) {
        self.deadline = self.since.saturating_add(waits.at_most);
        (self.plugin, self.listens) = (waits.plugin, waits.listens);
    }

    /// Returns whether the pod waits at Permit.
    pub(super) fn waits_at_permit(&self) -> bool {
        !self.is_permitted && !self.plugin.is_empty()
    }

    /// Notes that nothing is waited for.
    fn stop_waiting(&mut self) {
        (self.deadline, self.plugin, self.listens) = (Duration::MAX, "", EventKinds::NONE);
    }
}

/// A pod that waits at Permit, for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitWait {
    /// The plugin whose wait ends first.
    pub plugin: &'static str,
    /// When the pod loses its place, on the monotonic clock.
    pub deadline: Duration,
}

/// Where a pod is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Point {
    Permit,
    PreBind,
}

/// What the plugins at a point say together.
enum Answer {
    Ready,
    Wait(Waits),
    Failed(Cause),
}

/// What the plugins that are not ready want.
struct Waits {
    plugin: &'static str,
    at_most: Duration,
    listens: EventKinds,
    writes: Vec<Wanted>,
}

impl Answer {
    /// Adds a plugin that waits.
    fn wait(&mut self, plugin: &dyn Plugin, writes: Vec<ObjectWrite>, at_most: Duration) {
        let name = plugin.name();
        let listens = plugin.hints().map_or(Listening::ALL, |hints| hints.events());
        let writes = writes.into_iter().map(|write| Wanted { plugin: name, write });
        match self {
            Self::Wait(waits) => {
                if at_most < waits.at_most {
                    (waits.plugin, waits.at_most) = (name, at_most);
                }
                waits.listens = waits.listens.with(listens);
                waits.writes.extend(writes);
            }
            _ => *self = Self::Wait(Waits { plugin: name, at_most, listens, writes: writes.collect() }),
        }
    }
}

impl Scheduler {
    /// Starts Permit, unless the pod has passed it in the decision, PreBind and then the Binding. Returns the refusal
    /// if the placement is given up at once.
    pub(crate) fn start_binding(
        &mut self,
        id: PodId,
        unit: UnitId,
        (now, is_permitted, aside): (Now, bool, Aside),
        out: &mut Vec<ClusterEvent>,
    ) -> Option<Arc<Refusal>> {
        let entry = PreBinding {
            unit,
            attempt: self.cycle,
            since: now.monotonic,
            is_permitted,
            aside,
            deadline: Duration::MAX,
            plugin: "",
            listens: EventKinds::NONE,
            ordered: Vec::new(),
        };
        // Most pods wait for nothing and nobody.
        if !self.has_barriers() && matches!(self.ask_about(id, &entry), Some((_, Answer::Ready))) {
            self.order_binding_of(id, &entry);
            return None;
        }
        self.in_flight.pre_binding.insert(id, entry);
        self.resume_binding(id, now, out)
    }

    /// Asks the plugins whether a pod can go on, and acts on it. Returns the refusal if the placement is given up.
    pub(super) fn resume_binding(
        &mut self,
        id: PodId,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) -> Option<Arc<Refusal>> {
        // A pod that others have just bound needs no Binding any more.
        if !self.cluster.pod(id)?.stage.is_assumed() {
            return None;
        }
        let (point, answer) = self.ask_binding(id)?;
        if point == Point::PreBind {
            self.pass_permit(id, now);
        }
        match (point, answer) {
            (_, Answer::Ready) => {
                self.in_flight.pre_binding.get_mut(&id)?.stop_waiting();
                let pod = self.cluster.pod(id)?.pod.clone();
                self.cluster.set_stage(id, Stage::PreBinding);
                for id in self.pass_barrier(id, &pod) {
                    self.order_binding(id);
                }
            }
            (Point::Permit, Answer::Wait(waits)) => {
                self.announce_place(id);
                self.wait_at_permit(id, &waits);
            }
            (Point::Permit, Answer::Failed(cause)) => return self.refuse_at_permit(id, cause, now, out),
            (Point::PreBind, Answer::Wait(waits)) => {
                self.cluster.set_stage(id, Stage::PreBinding);
                self.in_flight.pre_binding.get_mut(&id)?.wait(&waits);
                self.announce_place(id);
                if let Err(cause) = self.order_pre_bind_writes(id, waits.writes) {
                    return self.fail_binding(id, cause, now, out);
                }
            }
            (Point::PreBind, Answer::Failed(cause)) => return self.fail_binding(id, cause, now, out),
        }
        None
    }

    /// Writes the node of a placed pod that has to wait for its Binding to `status.nominatedNodeName`, as kube-scheduler
    /// does since 1.35 (NominatedNodeNameForExpectation): others can count on it, and the next leader tries it first.
    fn announce_place(&mut self, id: PodId) {
        let Some(record) = self.cluster.pod(id) else { return };
        let (pod, Some(node)) = (record.pod.clone(), record.node) else { return };
        let node = self.cluster.node_name(node).clone();
        if self.cluster.nominator().written(id, pod.nominated_node.as_ref()) != Some(&node) {
            self.order_nomination(&pod, Some(node));
        }
    }

    /// Asks the plugins at Permit about a pod, unless it has passed, and once all say yes those at PreBind.
    fn ask_binding(&self, id: PodId) -> Option<(Point, Answer)> {
        self.ask_about(id, self.in_flight.pre_binding.get(&id)?)
    }

    fn ask_about(&self, id: PodId, entry: &PreBinding) -> Option<(Point, Answer)> {
        let record = self.cluster.pod(id)?;
        let (node, profile) = (record.node?, &self.profiles.all[self.queue.unit(entry.unit)?.profile]);
        let view = View::new(&self.cluster);
        if !entry.is_permitted {
            let said = ask_all(&profile.permit, entry.aside, |plugin| permit(plugin, view, record, node));
            if !matches!(said, Answer::Ready) {
                return Some((Point::Permit, said));
            }
        }
        let said = ask_all(&profile.pre_bind, entry.aside, |plugin| pre_bind(plugin, view, record, node));
        Some((Point::PreBind, said))
    }

    pub(crate) fn is_ready_to_bind(&self, id: PodId) -> bool {
        self.in_flight.pre_binding.get(&id).is_some_and(|entry| entry.is_permitted)
            && matches!(self.ask_binding(id), Some((_, Answer::Ready)))
    }

    fn pass_permit(&mut self, id: PodId, now: Now) {
        let Some(entry) = self.in_flight.pre_binding.get_mut(&id).filter(|e| !e.is_permitted) else { return };
        let did_wait = entry.waits_at_permit();
        (entry.since, entry.is_permitted) = (now.monotonic, true);
        if did_wait {
            self.in_flight.permit_waits.remove(&id);
        }
    }

    /// Keeps a pod waiting at Permit. To its gang a member counts as permitted, because it waits for no other member.
    fn wait_at_permit(&mut self, id: PodId, waits: &Waits) {
        let is_member = self.cluster.pod(id).is_some_and(|record| self.gang_of(&record.pod).is_some());
        self.cluster.set_stage(id, if is_member { Stage::PreBinding } else { Stage::Waiting });
        let Some(entry) = self.in_flight.pre_binding.get_mut(&id) else { return };
        entry.wait(waits);
        let wait = PermitWait { plugin: entry.plugin, deadline: entry.deadline };
        if self.in_flight.permit_waits.get(&id) != Some(&wait) {
            self.in_flight.permit_waits.insert(id, wait);
        }
    }

    /// Gives up the placement of a pod that a plugin refuses at Permit, or that waited there for too long.
    fn refuse_at_permit(
        &mut self,
        id: PodId,
        cause: Cause,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) -> Option<Arc<Refusal>> {
        self.records.counters.refused += 1;
        self.lose_place(id, cause, "Unschedulable", now, out)
    }

    pub(crate) fn order_binding(&mut self, id: PodId) {
        if let Some(entry) = self.in_flight.pre_binding.remove(&id) {
            self.order_binding_of(id, &entry);
        }
    }

    fn order_binding_of(&mut self, id: PodId, entry: &PreBinding) {
        let Some(record) = self.cluster.pod(id) else { return };
        let (pod, Some(node)) = (record.pod.clone(), record.node) else { return };
        let marks = due_marks_of(&record.holds);
        let node = self.cluster.node_name_in_page(node);
        self.cluster.set_stage(id, Stage::Permitted);
        let effect = self.in_flight.next_effect_id();
        self.in_flight.bindings.insert(effect, (id, entry.unit));
        self.in_flight.effect_of.insert(id, effect);
        self.order(Effect::Bind(BindOrder { id: effect, pod, node, marks, attempt: entry.attempt }));
    }

    /// Applies the outcome of a write of PreBind: asks the plugins again, or gives up the placement.
    pub(super) fn settle_pre_bind_write(
        &mut self,
        id: PodId,
        effect: EffectId,
        outcome: WriteOutcome,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) {
        let Some(entry) = self.in_flight.pre_binding.get(&id) else { return };
        let Some(plugin) = entry.ordered.iter().find(|o| o.effect == effect).map(|o| o.plugin) else {
            return;
        };
        match outcome {
            WriteOutcome::Written | WriteOutcome::AlreadyExists => drop(self.resume_binding(id, now, out)),
            WriteOutcome::Refused { status, message } => {
                let reason = Reason::about(ReasonCode::PreBindFailed, &*format!("{message} (HTTP {status})"));
                self.fail_binding(id, Cause::new(plugin, Code::Unschedulable, reason), now, out);
            }
        }
    }

    /// Asks about placed pods again when an event changed something that their plugins may wait for.
    pub(crate) fn recheck_pre_bind(&mut self, event: &ClusterEvent, now: Now, out: &mut Vec<ClusterEvent>) {
        if self.in_flight.pre_binding.is_empty() {
            return;
        }
        let kinds = event.kinds();
        let concerns_all = match event {
            ClusterEvent::ObjectChanged { old, new } => {
                let kind = new.as_ref().or(old.as_ref()).map(|o| o.kind());
                matches!(kind, Some(ObjectKind::PersistentVolume | ObjectKind::PersistentVolumeClaim))
            }
            ClusterEvent::NodeRemoved(..) => true,
            _ => false,
        };
        // At PreBind plugins wait for objects. Pods come and go too often to ask again each time.
        let is_object = matches!(
            event,
            ClusterEvent::ObjectChanged { .. }
                | ClusterEvent::CustomChanged { .. }
                | ClusterEvent::PluginStateChanged { .. }
        );
        if !concerns_all && !is_object && self.in_flight.permit_waits.is_empty() {
            return;
        }
        let may_help = |e: &PreBinding| e.listens.any(kinds) && (is_object || !e.is_permitted);
        self.ask_again(|e| concerns_all || may_help(e), now, out);
    }

    /// Asks again about the pods that wait at Permit.
    pub(super) fn recheck_permit(&mut self, now: Now, out: &mut Vec<ClusterEvent>) -> bool {
        self.ask_again(|e| !e.is_permitted, now, out)
    }

    /// Asks again about the pods that fit, in the order of their ids. Returns whether there were any.
    fn ask_again(
        &mut self,
        fits: impl Fn(&PreBinding) -> bool,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) -> bool {
        let waiting = self.in_flight.pre_binding.iter().filter(|(_, e)| fits(e));
        let mut waiting: Vec<PodId> = waiting.map(|(id, _)| *id).collect();
        waiting.sort();
        for id in &waiting {
            self.resume_binding(*id, now, out);
        }
        !waiting.is_empty()
    }

    /// Gives up placements whose wait at Permit or PreBind ran out. Returns whether there were any.
    pub(crate) fn expire_pre_binding(&mut self, now: Now) -> bool {
        let late = self.in_flight.pre_binding.iter().filter(|(_, e)| e.deadline <= now.monotonic);
        let mut late: Vec<(PodId, &'static str)> = late.map(|(id, e)| (*id, e.plugin)).collect();
        late.sort();
        let mut out = Vec::new();
        for (id, plugin) in &late {
            // The pod may have lost its place together with another one.
            let Some(entry) = self.in_flight.pre_binding.get(id) else { continue };
            if entry.is_permitted {
                let reason = Reason::about(ReasonCode::PreBindFailed, "it took too long");
                self.fail_binding(*id, Cause::new(plugin, Code::Unschedulable, reason), now, &mut out);
            } else {
                let reason = Reason::about(ReasonCode::PermitTimedOut, *plugin);
                self.refuse_at_permit(*id, Cause::new(plugin, Code::Unschedulable, reason), now, &mut out);
            }
        }
        self.wake_all(&out, now);
        !late.is_empty()
    }

    pub(crate) fn pre_binding_deadline(&self) -> Option<Duration> {
        self.in_flight.pre_binding.values().map(|e| e.deadline).min().filter(|at| *at != Duration::MAX)
    }

    /// Gives up the placement of a pod that cannot be bound; the pod is retried after a backoff.
    pub(crate) fn fail_binding(
        &mut self,
        id: PodId,
        cause: Cause,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) -> Option<Arc<Refusal>> {
        self.records.counters.bind_failures += 1;
        self.records.counters.errors += 1;
        self.lose_place(id, cause, "SchedulerError", now, out)
    }

    /// Gives up a placement and reports why, with the reason of condition `PodScheduled`.
    fn lose_place(
        &mut self,
        id: PodId,
        cause: Cause,
        condition: &'static str,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) -> Option<Arc<Refusal>> {
        let record = self.cluster.pod(id)?;
        let (pod, node) = (record.pod.clone(), record.node);
        let profile = self.queue.unit_of(id).and_then(|u| self.queue.unit(u))?.profile;
        let total = self.cluster.present().len();
        let refusal = Arc::new(refusal_of_pod(&self.profiles.all[profile], cause, total));
        let clear = pod.nominated_node.is_some().then_some(None);
        self.report_unschedulable(&pod, condition, refusal.message(), clear);
        self.store_verdict(id, Outcome::Refused(refusal.clone()), now);
        if let Some(node) = node {
            self.break_quorum(id, &pod, now, out);
            self.give_up(id, now);
            out.push(ClusterEvent::PodReleased { pod, node });
        }
        Some(refusal)
    }
}

/// Asks all plugins at a point but those aside. The first that refuses ends the round.
fn ask_all(plugins: &[Enabled], aside: Aside, ask: impl Fn(&dyn Plugin) -> PreBound) -> Answer {
    let mut answer = Answer::Ready;
    for enabled in plugins.iter().filter(|enabled| !aside.has(enabled)) {
        let plugin = &*enabled.plugin;
        match ask(plugin) {
            PreBound::Ready => {}
            PreBound::Wait { writes, at_most } => answer.wait(plugin, writes, at_most),
            PreBound::Failed(cause) => return Answer::Failed(cause),
        }
    }
    answer
}

fn permit(plugin: &dyn Plugin, view: View<'_>, record: &PodRecord, node: NodeIdx) -> PreBound {
    match plugin.permit().map(|p| p.permit(view, &record.pod, node)) {
        None | Some(Permitted::Yes) => PreBound::Ready,
        Some(Permitted::Wait { at_most }) => PreBound::Wait { writes: Vec::new(), at_most },
        Some(Permitted::No(cause)) => PreBound::Failed(cause),
    }
}

fn pre_bind(plugin: &dyn Plugin, view: View<'_>, record: &PodRecord, node: NodeIdx) -> PreBound {
    let held = record.holds.iter().find(|r| r.plugin == plugin.name()).map(|r| &r.what);
    plugin.pre_bind().map_or(PreBound::Ready, |p| p.pre_bind(view, &record.pod, node, held))
}
