//! PreBind: what must happen in the cluster between the decision and the Binding.
//!
//! The scheduler asks a plugin for its progress when the pod is placed, when one of the plugin's writes is settled, and
//! when a volume or claim changes. It never blocks: a pod whose volumes take minutes keeps its place, and other pods go
//! on.

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{ClusterEvent, Stage};
use pellucid_framework::plugin::PreBound;
use pellucid_framework::{Cause, Code, Reason, View};
use pellucid_model::effect::{BindOrder, Effect, EffectId, VolumeOrder, VolumeOutcome, VolumeWrite};
use pellucid_model::{Now, ObjectKind, PodId};
use pellucid_queue::UnitId;
use pellucid_recording::{Outcome, Refusal};

use crate::attempt::reserve::marks_of;
use crate::attempt::search::refusal_of_pod;
use crate::scheduler::Scheduler;
use crate::scheduler::report::pod_ref;

/// A placed pod whose PreBind is in progress.
#[derive(Clone, Debug)]
pub(crate) struct PreBinding {
    unit: UnitId,
    /// The scheduling cycle that placed the pod.
    attempt: u64,
    /// When the pod was placed.
    since: Duration,
    /// When the placement is given up; `Duration::MAX` until a plugin waits.
    deadline: Duration,
    /// The plugin that is not ready; empty before the first one waits.
    plugin: &'static str,
    /// Writes ordered so far, with their effects.
    ordered: Vec<(EffectId, VolumeWrite)>,
}

impl Scheduler {
    /// Starts PreBind and then the Binding. Returns the refusal if the placement is given up at once.
    pub(crate) fn start_binding(
        &mut self,
        id: PodId,
        unit: UnitId,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) -> Option<Arc<Refusal>> {
        let entry = PreBinding {
            unit,
            attempt: self.cycle,
            since: now.monotonic,
            deadline: Duration::MAX,
            plugin: "",
            ordered: Vec::new(),
        };
        self.in_flight.pre_binding.insert(id, entry);
        self.go_on_binding(id, now, out)
    }

    /// Asks the PreBind plugins of a pod for progress, and acts on it. Returns the refusal if the placement is given
    /// up.
    fn go_on_binding(&mut self, id: PodId, now: Now, out: &mut Vec<ClusterEvent>) -> Option<Arc<Refusal>> {
        let (plugin, progress) = self.progress(id)?;
        match progress {
            PreBound::Ready => {
                let pod = self.cluster.pod(id)?.pod.clone();
                self.cluster.set_stage(id, Stage::PreBinding);
                for id in self.pass_barrier(id, &pod) {
                    self.order_binding(id);
                }
            }
            PreBound::Wait { writes, at_most } => {
                self.cluster.set_stage(id, Stage::PreBinding);
                for write in writes {
                    self.order_write(id, write);
                }
                if let Some(entry) = self.in_flight.pre_binding.get_mut(&id) {
                    entry.plugin = plugin;
                    entry.deadline = entry.since.saturating_add(at_most);
                }
            }
            PreBound::Failed(cause) => return self.fail_binding(id, cause, now, out),
        }
        None
    }

    /// Returns the answer of the first PreBind plugin that is not ready, with its name. The name is empty if all are
    /// ready.
    fn progress(&self, id: PodId) -> Option<(&'static str, PreBound)> {
        let entry = self.in_flight.pre_binding.get(&id)?;
        let record = self.cluster.pod(id)?;
        let (node, profile) = (record.node?, &self.profiles.all[self.queue.unit(entry.unit)?.profile]);
        let view = View::new(&self.cluster);
        for enabled in &profile.pre_bind {
            let Some(plugin) = enabled.plugin.pre_bind() else { continue };
            let name = enabled.plugin.name();
            let held = record.holds.iter().find(|r| r.plugin == name).map(|r| &r.what);
            match plugin.pre_bind(view, &record.pod, node, held) {
                PreBound::Ready => {}
                answer => return Some((name, answer)),
            }
        }
        Some(("", PreBound::Ready))
    }

    pub(crate) fn is_ready_to_bind(&self, id: PodId) -> bool {
        matches!(self.progress(id), Some((_, PreBound::Ready)))
    }

    pub(crate) fn order_binding(&mut self, id: PodId) {
        let Some(entry) = self.in_flight.pre_binding.remove(&id) else { return };
        let Some(record) = self.cluster.pod(id) else { return };
        let (pod, Some(node)) = (record.pod.clone(), record.node) else { return };
        let marks = marks_of(&record.holds);
        let node = self.cluster.slot(node).name.clone();
        self.cluster.set_stage(id, Stage::Permitted);
        let effect = self.in_flight.next_effect_id();
        self.in_flight.bindings.insert(effect, (id, entry.unit));
        self.in_flight.effect_of.insert(id, effect);
        self.order(Effect::Bind(BindOrder {
            id: effect,
            pod: pod_ref(&pod),
            node,
            marks,
            attempt: entry.attempt,
        }));
    }

    /// Orders a write, unless the pod has already ordered the same one.
    fn order_write(&mut self, id: PodId, write: VolumeWrite) {
        let is_ordered =
            self.in_flight.pre_binding.get(&id).is_none_or(|e| e.ordered.iter().any(|(_, w)| *w == write));
        let Some(pod) = self.cluster.pod(id).filter(|_| !is_ordered).map(|r| r.pod.clone()) else { return };
        let effect = self.in_flight.next_effect_id();
        if let Some(entry) = self.in_flight.pre_binding.get_mut(&id) {
            entry.ordered.push((effect, write.clone()));
        }
        self.in_flight.writes.insert(effect, id);
        self.order(Effect::Volume(VolumeOrder { id: effect, pod: pod_ref(&pod), write }));
    }

    /// Applies the outcome of a write: asks the plugins again, or gives up the placement.
    pub(crate) fn settle_write(
        &mut self,
        effect: EffectId,
        uid: &Arc<str>,
        outcome: VolumeOutcome,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) {
        let Some(id) = self.in_flight.writes.remove(&effect) else { return };
        let entry = self.in_flight.pre_binding.get(&id);
        let Some(entry) = entry.filter(|e| e.ordered.iter().any(|(of, _)| *of == effect)) else { return };
        let plugin = entry.plugin;
        if self.cluster.pod(id).is_none_or(|r| r.pod.uid != *uid) {
            return;
        }
        match outcome {
            VolumeOutcome::Written => drop(self.go_on_binding(id, now, out)),
            VolumeOutcome::Refused { status, message } => {
                let reason = Reason::about(ReasonCode::PreBindFailed, &*format!("{message} (HTTP {status})"));
                self.fail_binding(id, Cause::new(plugin, Code::Unschedulable, reason), now, out);
            }
        }
    }

    /// Asks PreBind plugins again when an event changed something that they may wait for.
    pub(crate) fn recheck_pre_bind(&mut self, event: &ClusterEvent, now: Now, out: &mut Vec<ClusterEvent>) {
        let is_relevant = match event {
            ClusterEvent::ObjectChanged { old, new } => {
                let kind = new.as_ref().or(old.as_ref()).map(|o| o.kind());
                matches!(kind, Some(ObjectKind::PersistentVolume | ObjectKind::PersistentVolumeClaim))
            }
            ClusterEvent::NodeRemoved(..) => true,
            _ => false,
        };
        if !is_relevant || self.in_flight.pre_binding.is_empty() {
            return;
        }
        let mut waiting: Vec<PodId> = self.in_flight.pre_binding.keys().copied().collect();
        waiting.sort();
        for id in waiting {
            self.go_on_binding(id, now, out);
        }
    }

    /// Gives up placements whose PreBind timed out. Returns whether there were any.
    pub(crate) fn expire_pre_binding(&mut self, now: Now) -> bool {
        let late = self.in_flight.pre_binding.iter().filter(|(_, e)| e.deadline <= now.monotonic);
        let mut late: Vec<(PodId, &'static str)> = late.map(|(id, e)| (*id, e.plugin)).collect();
        late.sort();
        let mut out = Vec::new();
        for (id, plugin) in &late {
            let reason = Reason::about(ReasonCode::PreBindFailed, "it took too long");
            self.fail_binding(*id, Cause::new(plugin, Code::Unschedulable, reason), now, &mut out);
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
        let record = self.cluster.pod(id)?;
        let (pod, node) = (record.pod.clone(), record.node);
        let profile = self.queue.unit_of(id).and_then(|u| self.queue.unit(u))?.profile;
        let total = self.cluster.present().len();
        let refusal = Arc::new(refusal_of_pod(&self.profiles.all[profile], cause, total));
        let clear = pod.nominated_node.is_some().then_some(None);
        self.report_unschedulable(&pod, "SchedulerError", refusal.message(), clear);
        self.store_verdict(id, Outcome::Refused(refusal.clone()), now);
        if let Some(node) = node {
            self.break_quorum(id, &pod, now, out);
            self.give_up(id, now);
            out.push(ClusterEvent::PodReleased { pod, node });
        }
        Some(refusal)
    }
}
