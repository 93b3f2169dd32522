//! What is written to reservations: phase, conditions, owners and amounts, and the deletion of those that have ended.
//!
//! The scheduler is the only writer of the status. What was ordered is remembered until the object comes back; what was
//! refused is ordered again after a pause. The write that places a reservation is PreBind's ([`placed`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid_framework::manifest::format_moment;
use pellucid_model::effect::{BindingMarks, ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome};
use pellucid_model::{Name, Now, Pod};
use serde_json::{Map, Value, json};

use super::RESERVATION;
use super::entry::{Entry, Known, Owner, amount};
use super::object::{Amounts, Phase, Status, resource_list};
use super::reservations::{Reservations, seconds};

/// Time from a refused write to the next try.
const PAUSE: Duration = Duration::from_secs(5);
/// Most reservations written to at a time.
const AT_A_TIME: usize = 64;

/// What was written and what is to be looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Writes {
    /// Whether all were looked at once, since nodes may be gone that no event told of.
    has_begun: bool,
    /// Reservations whose object may differ from what should stand there.
    changed: BTreeSet<Name>,
    /// What was ordered and has not come back.
    ordered: BTreeMap<Name, Value>,
    /// Reservations whose write was refused, and when they are looked at again, on the monotonic clock.
    refused: BTreeSet<Name>,
    again: Option<Duration>,
}

impl Writes {
    /// Notes that a reservation has changed.
    pub(super) fn note(&mut self, name: &Name) {
        if !self.changed.contains(name) {
            self.changed.insert(name.clone());
        }
    }

    /// Handles an object that came, or came back.
    pub(super) fn came_back(&mut self, name: &Name) {
        self.ordered.remove(name);
        self.note(name);
    }

    /// Returns when it becomes due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.again
    }

    /// Handles its deadline.
    pub(super) fn expire(&mut self, now: Now) {
        if self.again.is_some_and(|at| at <= now.monotonic) {
            self.again = None;
            self.changed.append(&mut self.refused);
        }
    }

    /// Handles the outcome of a write.
    pub(super) fn settled(&mut self, write: &ObjectWrite, outcome: &WriteOutcome, now: Now) {
        let (ObjectWrite::Patch { object, .. } | ObjectWrite::Delete { object, .. }) = write else { return };
        if matches!(outcome, WriteOutcome::Refused { .. }) {
            self.ordered.remove(&object.name);
            self.refused.insert(object.name.clone());
            self.again = Some(now.monotonic + PAUSE);
        }
    }

    /// Returns the reservations that end with writes which are due, but for evictions.
    pub(super) fn ending(&self, of: &Reservations) -> Vec<Name> {
        let ends = |name: &&Name| {
            let entry = of.get(name).filter(|entry| entry.evicted.is_none());
            let known = entry.and_then(|entry| Some((entry, entry.known.as_ref()?)));
            known.is_some_and(|(entry, known)| {
                let is_open = !known.is_pod && !known.spec.status.phase.has_ended();
                is_open && wanted(of, entry, known).is_some_and(|wanted| wanted.phase.has_ended())
            })
        };
        self.changed.iter().filter(ends).cloned().collect()
    }

    /// Returns the writes that are due.
    pub(super) fn due(&mut self, of: &Reservations, now: Now) -> Vec<ObjectWrite> {
        if !self.has_begun {
            self.has_begun = true;
            self.changed.extend(of.iter().map(|(name, ..)| name.clone()));
        }
        let mut all = Vec::new();
        while all.len() < AT_A_TIME
            && let Some(name) = self.changed.pop_first()
        {
            let known = of.get(&name).and_then(|entry| Some((entry, entry.known.as_ref()?)));
            let Some((entry, known)) = known.filter(|(_, known)| !known.is_pod) else {
                self.ordered.remove(&name);
                continue;
            };
            let status = &known.spec.status;
            if status.phase.has_ended() {
                let is_due = of.args.deleted_at(&known.spec).is_some_and(|at| at <= seconds(now));
                if is_due && self.ordered.insert(name.clone(), Value::Null).is_none() {
                    let precondition = Precondition::uid(known.uid.clone());
                    all.push(ObjectWrite::Delete { object: object(&name), precondition });
                }
                continue;
            }
            let Some(wanted) = wanted(of, entry, known) else { continue };
            // The time is left out of the comparison: it is that of the first order.
            if self.ordered.get(&name) == Some(&wanted.key()) {
                continue;
            }
            self.ordered.insert(name.clone(), wanted.key());
            // So that it never undoes the write that places the reservation, which may be under way.
            let precondition = Precondition {
                uid: Some(known.uid.clone()),
                resource_version: Some(known.resource_version.clone()),
            };
            all.push(patch(&name, precondition, wanted.status(status, now.wall)));
        }
        all
    }
}

fn object(name: &Name) -> ObjectRef {
    ObjectRef::custom(&RESERVATION, &Name::default(), name)
}

fn patch(name: &Name, precondition: Precondition, status: Value) -> ObjectWrite {
    ObjectWrite::Patch {
        object: object(name),
        part: ObjectPart::Status,
        precondition,
        patch: Arc::new(json!({"status": status})),
    }
}

/// Returns the write of what plugins hold for a reservation, unless it stands there. What stands on its pod from an earlier
/// try goes.
pub(super) fn marked(
    name: &Name,
    known: &Known,
    (pod, marks): (&Pod, Option<&BindingMarks>),
) -> Option<ObjectWrite> {
    let wanted = || marks.into_iter().flat_map(|marks| &marks.annotations);
    let stale = pod.marks.iter().filter(|(key, _)| wanted().all(|(known, _)| **known != **key));
    let stale = stale.map(|(key, _)| (key.to_string(), Value::Null));
    let missing = wanted().filter(|(key, value)| known.spec.annotation(key) != Some(value));
    let missing = missing.map(|(key, value)| (key.to_string(), json!(&**value)));
    let annotations: Map<String, Value> = stale.chain(missing).collect();
    (!annotations.is_empty()).then(|| ObjectWrite::Patch {
        object: object(name),
        part: ObjectPart::Main,
        precondition: Precondition::uid(known.uid.clone()),
        patch: Arc::new(json!({"metadata": {"annotations": annotations}})),
    })
}

/// Returns the write that places a reservation on a node, decided at a wall time.
pub(super) fn placed(name: &Name, entry: &Entry, known: &Known, node: &Name, at: Duration) -> ObjectWrite {
    let wanted = Wanted {
        phase: Phase::Available,
        conditions: vec![
            Condition::new(SCHEDULED, true, SCHEDULED, ""),
            Condition::new(READY, true, "Available", ""),
        ],
        fields: Map::from_iter([
            ("nodeName".to_owned(), json!(node.as_str())),
            ("allocatable".to_owned(), resource_list(entry.allocatable())),
        ]),
    };
    patch(name, Precondition::uid(known.uid.clone()), wanted.status(&known.spec.status, at))
}

const SCHEDULED: &str = "Scheduled";
const READY: &str = "Ready";

/// A condition that should stand in the status.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: Arc<str>,
}

impl Condition {
    fn new(kind: &'static str, is_true: bool, reason: &'static str, message: impl Into<Arc<str>>) -> Self {
        Self { kind, is_true, reason, message: message.into() }
    }

    fn status(&self) -> &'static str {
        if self.is_true { "True" } else { "False" }
    }

    fn is_in(&self, condition: &Value) -> bool {
        condition["type"] == self.kind
            && condition["status"] == self.status()
            && condition["reason"] == self.reason
            && condition["message"].as_str().unwrap_or_default() == &*self.message
    }

    fn stands_in(&self, status: &Status) -> bool {
        status.conditions.iter().any(|condition| self.is_in(condition))
    }

    /// Puts the condition among those that stand. The time of its last change stays while its status does.
    fn put(&self, all: &mut Vec<Value>, at: &str) {
        let known = all.iter().position(|condition| condition["type"] == self.kind);
        let since = known.filter(|i| all[*i]["status"] == self.status());
        let since = since.map_or_else(|| json!(at), |i| all[i]["lastTransitionTime"].clone());
        let new = json!({
            "type": self.kind,
            "status": self.status(),
            "reason": self.reason,
            "message": &*self.message,
            "lastProbeTime": at,
            "lastTransitionTime": since,
        });
        match known {
            Some(i) => all[i] = new,
            None => all.push(new),
        }
    }
}

/// What should change in a status.
struct Wanted {
    phase: Phase,
    conditions: Vec<Condition>,
    /// Further fields of the patch.
    fields: Map<String, Value>,
}

impl Wanted {
    /// Returns the patch of a status.
    fn status(&self, standing: &Status, at: Duration) -> Value {
        let at = format_moment(i64::try_from(at.as_secs()).unwrap_or(i64::MAX));
        let mut status = self.fields.clone();
        status.insert("phase".into(), json!(self.phase.as_str()));
        if !self.conditions.is_empty() {
            let mut all = standing.conditions.clone();
            self.conditions.iter().for_each(|condition| condition.put(&mut all, &at));
            status.insert("conditions".into(), Value::Array(all));
        }
        Value::Object(status)
    }

    /// Returns what two equal wishes have in common.
    fn key(&self) -> Value {
        let conditions = self.conditions.iter().map(|c| json!([c.kind, c.is_true, c.reason, &*c.message]));
        json!([self.phase.as_str(), conditions.collect::<Vec<_>>(), self.fields])
    }
}

/// Returns what should change in the status of a reservation that has not ended.
fn wanted(of: &Reservations, entry: &Entry, known: &Known) -> Option<Wanted> {
    let (spec, status) = (&known.spec, &known.spec.status);
    let is_placed = status.phase == Phase::Available;
    let is_homeless = || is_placed && status.node.as_ref().is_none_or(|node| of.nodes.get(node).is_none());
    if let Some(message) = &entry.evicted {
        let preempted = Condition::new(READY, false, "Preempted", message.clone());
        return Some(Wanted { phase: Phase::Failed, conditions: vec![preempted], fields: Map::new() });
    }
    if entry.is_expired || is_homeless() {
        let expired = Condition::new(READY, false, "Expired", "");
        return Some(Wanted { phase: Phase::Failed, conditions: vec![expired], fields: Map::new() });
    }
    if !is_placed {
        let message = known.problem.as_ref().or(entry.refused.as_ref());
        let conditions = message.map(|text| Condition::new(SCHEDULED, false, "Unschedulable", text.clone()));
        let conditions: Vec<Condition> = conditions.into_iter().filter(|c| !c.stands_in(status)).collect();
        // Before the first try nothing is said: the write that places it may come next.
        let wanted = Wanted { phase: Phase::Pending, conditions, fields: Map::new() };
        return (!wanted.conditions.is_empty()).then_some(wanted);
    }
    let fields = owners(entry, status);
    let is_used_up = spec.once && entry.owners().any(|owner| owner.is_bound);
    let conditions: Vec<Condition> =
        is_used_up.then(|| Condition::new(READY, false, "Succeeded", "")).into_iter().collect();
    let phase = if is_used_up { Phase::Succeeded } else { Phase::Available };
    (is_used_up || !fields.is_empty()).then_some(Wanted { phase, conditions, fields })
}

/// Returns the fields about owners that differ from those that stand.
fn owners(entry: &Entry, status: &Status) -> Map<String, Value> {
    let mut bound: Vec<_> = entry.owners().filter(|owner| owner.is_bound).collect();
    bound.sort_by(|a, b| a.key.cmp(&b.key));
    let names: Vec<String> = bound.iter().map(|owner| owner.key.to_string()).collect();
    let mut allocated = Amounts::new();
    for name in entry.allocatable().keys() {
        let used = bound.iter().map(|owner| amount(&owner.requests.list, name));
        let sum = used.fold(0, i64::saturating_add);
        allocated.insert(name.clone(), sum);
    }
    allocated.retain(|_, amount| *amount != 0);
    let mut fields = Map::new();
    if names != status.owners {
        let owner = |owner: &&Owner| {
            json!({
                "namespace": owner.key.namespace.as_str(),
                "name": &*owner.key.name,
                "uid": &*owner.uid,
            })
        };
        fields.insert("currentOwners".into(), bound.iter().map(owner).collect());
    }
    if allocated != status.allocated {
        let mut list = resource_list(&allocated);
        let gone = status.allocated.keys().filter(|name| !allocated.contains_key(*name));
        gone.for_each(|name| list[name.as_str()] = Value::Null);
        fields.insert("allocated".into(), list);
    }
    fields
}
