//! Orders of the writes that plugins want: of PreBind, of PostBind, and of their states. Settles them by their reports.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{ClusterEvent, StateId};
use pellucid_framework::{Cause, Code, Reason, View};
use pellucid_model::effect::{Effect, EffectId, ObjectOrder, ObjectWrite, PodRef, WriteOutcome};
use pellucid_model::{NodeIdx, Now, PodId};
use pellucid_queue::UnitId;

use crate::scheduler::Scheduler;

/// A write that a plugin wants.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) plugin: &'static str,
    pub(super) write: ObjectWrite,
}

/// A write of PreBind that was ordered. Patches that became one request share its effect.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    pub(super) effect: EffectId,
    pub(super) plugin: &'static str,
    write: ObjectWrite,
}

/// Who hears what came of a write.
pub(crate) enum Writer {
    /// PreBind of a pod.
    PreBind(PodId),
    /// Nobody: PostBind does not wait for its writes.
    PostBind,
    /// A plugin's state, about this write.
    State(StateId, ObjectWrite),
}

/// One request for the writes of one or more plugins.
struct Request {
    write: ObjectWrite,
    parts: Vec<Wanted>,
}

/// Makes requests of the writes that were not ordered before. Patches of one object on equal preconditions become one.
/// Fails with a cause when two plugins set one field differently.
fn requests(ordered: &[Ordered], wanted: Vec<Wanted>) -> Result<Vec<Request>, Cause> {
    let mut requests: Vec<Request> = Vec::new();
    for new in wanted {
        let parts = requests.iter().flat_map(|r| &r.parts).map(|p| (p.plugin, &p.write));
        let known: Vec<(&'static str, &ObjectWrite)> =
            ordered.iter().map(|o| (o.plugin, &o.write)).chain(parts).collect();
        if known.iter().any(|(_, write)| **write == new.write) {
            continue;
        }
        let others = known.iter().filter(|(plugin, _)| *plugin != new.plugin);
        for (plugin, write) in others {
            if let Some(field) = new.write.clash(write) {
                return Err(clash(plugin, &new, &field));
            }
        }
        let joined = |(at, r): (usize, &Request)| Some((at, r.write.joined(&new.write)?));
        match requests.iter().enumerate().find_map(joined) {
            Some((at, write)) => {
                requests[at].write = write;
                requests[at].parts.push(new);
            }
            None => requests.push(Request { write: new.write.clone(), parts: vec![new] }),
        }
    }
    Ok(requests)
}

/// Returns the cause for a field that two plugins set differently.
fn clash(first: &str, second: &Wanted, field: &str) -> Cause {
    let object = match &second.write {
        ObjectWrite::Patch { object, .. } => object.to_string(),
        other => other.to_string(),
    };
    let both = format!("{first} and {} set {field} of {object} differently", second.plugin);
    let reason = Reason::about(ReasonCode::PreBindFailed, &*both);
    Cause::new(second.plugin, Code::Unschedulable, reason)
}

impl Scheduler {
    /// Orders the writes that the plugins at PreBind want for a pod. Fails with a cause when they contradict each
    /// other.
    pub(super) fn order_pre_bind_writes(&mut self, id: PodId, wanted: Vec<Wanted>) -> Result<(), Cause> {
        let Some(entry) = self.in_flight.pre_binding.get(&id) else { return Ok(()) };
        let requests = requests(&entry.ordered, wanted)?;
        let Some(pod) = self.cluster.pod(id).map(|r| PodRef::of(&r.pod)) else { return Ok(()) };
        for Request { write, parts } in requests {
            let plugin = parts.first().map_or("", |part| part.plugin);
            let effect = self.order_object(plugin, Some(pod.clone()), write, Writer::PreBind(id));
            if let Some(entry) = self.in_flight.pre_binding.get_mut(&id) {
                entry.ordered.extend(parts.into_iter().map(|Wanted { plugin, write }| Ordered {
                    effect,
                    plugin,
                    write,
                }));
            }
        }
        Ok(())
    }

    /// Orders the writes that the plugins at PostBind want for a pod whose Binding was confirmed.
    pub(super) fn post_bind(&mut self, id: PodId, unit: UnitId, node: NodeIdx) {
        let Some(profile) = self.queue.unit(unit).map(|unit| self.profiles.all[unit.profile].clone()) else {
            return;
        };
        for enabled in &profile.post_bind {
            let (Some(plugin), Some(record)) = (enabled.plugin.post_bind(), self.cluster.pod(id)) else {
                continue;
            };
            let (name, pod) = (enabled.plugin.name(), PodRef::of(&record.pod));
            let held = record.holds.iter().find(|r| r.plugin == name).map(|r| &r.what);
            for write in plugin.post_bind(View::new(&self.cluster), &record.pod, node, held) {
                self.order_object(name, Some(pod.clone()), write, Writer::PostBind);
            }
        }
    }

    /// Orders the writes that plugins' states want now. Call it before [`take_effects`](Self::take_effects) once the
    /// first lists of all watches were applied, while there is room for orders. Does nothing in shadow mode and while standing
    /// by.
    pub fn order_due_writes(&mut self, now: Now) {
        if self.shadow.is_some() || !self.is_leading() {
            return;
        }
        for due in self.cluster.due_writes(now) {
            let writer = Writer::State(due.state, due.write.clone());
            self.order_object(due.plugin, None, due.write, writer);
        }
    }

    fn order_object(
        &mut self,
        plugin: &'static str,
        pod: Option<PodRef>,
        write: ObjectWrite,
        writer: Writer,
    ) -> EffectId {
        let id = self.in_flight.next_effect_id();
        self.in_flight.writes.insert(id, writer);
        self.order(Effect::Object(ObjectOrder { id, pod, plugin, write }));
        id
    }

    /// Tells whoever wanted a write what came of it.
    pub(super) fn settle_object(
        &mut self,
        effect: EffectId,
        outcome: WriteOutcome,
        now: Now,
        out: &mut Vec<ClusterEvent>,
    ) {
        match self.in_flight.writes.remove(&effect) {
            Some(Writer::PreBind(id)) => self.settle_pre_bind_write(id, effect, outcome, now, out),
            Some(Writer::State(state, write)) => self.cluster.write_settled(state, &write, &outcome, out),
            Some(Writer::PostBind) | None => {}
        }
    }
}
