//! Changes that could make a queue let a pod be tried that it refuses: a larger capability or weight, pods of the queue that
//! end, a smaller request, another queue (`moves`).
//!
//! Each is worked out on a copy of the queues. Whether the pod then has a place is not known here: the core plans each
//! proposal before anybody is told of it.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_cluster::PodRecord;
use pellucid_framework::View;
use pellucid_framework::advice::{Change, NewObject, ObjectChange, Proposal};
use pellucid_model::gang::Queue;
use pellucid_model::quantity::{format_amount, format_milli};
use pellucid_model::{Name, Object, PodSpec};
use serde_json::{Map, Value, json};

use super::super::admission::{Asking, Short};
use super::super::amounts::to_model;
use super::super::endpoints::API_GROUPS;
use super::super::queues::{Declared, Member, Part, Queues};
use super::moves;

/// Costs of changes, in the points of docs/diagnostics.md.
const RAISE_CAPABILITY: u32 = 35;
const RAISE_WEIGHT: u32 = 38;
/// Largest weight that the definition of Queues takes.
const MOST_WEIGHT: i64 = i32::MAX as i64;
/// API versions of Queues, in the order of [`API_GROUPS`].
pub(super) const VERSIONS: [&str; 2] = ["v1alpha1", "v1alpha2"];
/// Largest number of pods that are proposed to end.
const MOST_ENDING: usize = 8;
/// Number of pods of which those that end are chosen, the least important ones.
const MOST_CANDIDATES: usize = 1_000;

/// A refused pod, and by what it is refused.
struct Refused<'a> {
    queues: &'a Queues,
    view: View<'a>,
    spec: &'a PodSpec,
    asking: Asking<'a>,
    beyond: Vec<Short>,
    overused: Vec<Short>,
}

impl Queues {
    /// Returns changes with which the queue of a refused pod would let it be tried.
    pub(super) fn proposals(&self, view: View<'_>, spec: &PodSpec) -> Vec<Proposal> {
        let Some(asking) = self.asking(view.cluster().gangs(), spec) else { return Vec::new() };
        let (beyond, overused) = (self.beyond_capability(asking), self.overused(asking));
        if beyond.is_empty() && overused.is_empty() {
            return Vec::new();
        }
        let refused = Refused { queues: self, view, spec, asking, beyond, overused };
        let own = [refused.raised(), refused.ends(), refused.smaller()].into_iter().flatten();
        own.chain(refused.moves()).collect()
    }

    fn lets_in(&self, of: &Refused<'_>) -> bool {
        self.lack(of.view.cluster().gangs(), of.spec).is_none()
    }
}

impl Refused<'_> {
    /// Returns the queue with the least capability and weight that let the pod be tried. What is enough stays as it is.
    fn raised(&self) -> Option<Proposal> {
        let queue = self.asking.queue;
        let declared = self.queues.declared.get(queue);
        let (at, old) = match declared.and_then(|of| of.0.iter().position(Option::is_some)) {
            Some(at) => (at, declared.and_then(Declared::counting).cloned()),
            // The default queue, where it has no object. Its group is one that has objects.
            None => (usize::from(!self.queues.declared.values().any(|of| of.0[0].is_some())), None),
        };
        let mut new = old.clone().unwrap_or_else(|| Queue { name: queue.clone(), ..Queue::default() });
        for short in &self.beyond {
            let needed = to_model(&short.resource, short.allocated + short.request);
            let limit = new.capability.iter_mut().find(|(resource, _)| *resource == short.resource)?;
            limit.1 = limit.1.max(needed);
        }
        let mut cost = RAISE_CAPABILITY;
        if !self.with(at, &new).lets_in(self) {
            new.weight = Some(self.least_weight(at, &new)?);
            cost = RAISE_WEIGHT;
        }
        Some(proposal_of(at, old.as_ref(), new, cost))
    }

    /// Returns the least weight with which the queue lets the pod be tried, by halving: more is never worse.
    fn least_weight(&self, at: usize, of: &Queue) -> Option<i64> {
        let is_enough =
            |weight: i64| self.with(at, &Queue { weight: Some(weight), ..of.clone() }).lets_in(self);
        let (mut short, mut enough) = (self.queues.weight(self.asking.queue), MOST_WEIGHT);
        if short >= enough || !is_enough(enough) {
            return None;
        }
        while enough - short > 1 {
            let middle = short + (enough - short) / 2;
            if is_enough(middle) { enough = middle } else { short = middle }
        }
        Some(enough)
    }

    /// Returns other queues that let the pod be tried when its PodGroup is in them.
    fn moves(&self) -> Vec<Proposal> {
        let Some(Member::Group(key)) = self.queues.member(self.spec) else { return Vec::new() };
        let Some(at) = self.queues.jobs.get(&key).and_then(|job| job.declared_at()) else {
            return Vec::new();
        };
        moves::proposals(self.queues, self.view, (at, &key), |queues| queues.lets_in(self))
    }

    /// Returns the queues with another object in place of one.
    fn with(&self, at: usize, queue: &Queue) -> Queues {
        let mut queues = self.queues.clone();
        queues.become_declared(at, queue, true);
        queues.settle();
        queues
    }

    /// Returns the fewest pods of the queue whose end is enough, the least important ones.
    fn ends(&self) -> Option<Proposal> {
        let own = match self.queues.member(self.spec) {
            Some(Member::Group(key)) => Some(key),
            _ => None,
        };
        let shorts = || self.beyond.iter().chain(&self.overused);
        let counts_pods = shorts().any(|short| &*short.resource == "pods");
        let helps = |spec: &PodSpec| {
            counts_pods || shorts().any(|short| spec.requests.list.amount(&short.resource) > 0)
        };
        let going = |record: &&PodRecord| {
            let pod = &record.pod;
            record.node.is_some()
                && !pod.deleting
                && pod.stands_for.is_none()
                && pod.can_leave()
                && self.queues.queue_of(&pod.spec) == Some(self.asking.queue)
                // A gang is not helped by the end of its own members.
                && (own.is_none() || pod.member_of() != own.as_ref())
                && helps(&pod.spec)
        };
        let pods = self.view.cluster().pods().map(|(_, record)| record);
        let mut pods: Vec<&PodRecord> = pods.filter(going).collect();
        pods.sort_by_key(|record| {
            let pod = &record.pod;
            (pod.priority, Reverse(pod.started.unwrap_or(i64::MAX)), Reverse(pod.key.clone()))
        });
        pods.truncate(MOST_CANDIDATES);
        let n = (1..=pods.len().min(MOST_ENDING)).find(|n| self.is_let_in_without(&pods[..*n]))?;
        let mut needed: Vec<&PodRecord> = pods[..n].to_vec();
        // From the most important one back, each that can stay stays.
        for at in (0..needed.len()).rev() {
            let mut fewer = needed.clone();
            fewer.remove(at);
            if !fewer.is_empty() && self.is_let_in_without(&fewer) {
                needed = fewer;
            }
        }
        let keys = needed.into_iter().map(|record| record.pod.key.clone()).collect();
        Some(Proposal { change: Change::End(keys), text: String::new(), cost: 0 })
    }

    fn is_let_in_without(&self, pods: &[&PodRecord]) -> bool {
        let mut queues = self.queues.clone();
        for record in pods {
            queues.count(&record.pod.spec, Part::Requested, -1);
            queues.count(&record.pod.spec, Part::Allocated, -1);
        }
        queues.settle();
        queues.lets_in(self)
    }

    /// Returns the request that the capability allows as it is, if it is more than nothing of each resource. How much a pod
    /// requests does not matter to a queue that holds what it deserves.
    fn smaller(&self) -> Option<Proposal> {
        let left = |short: &Short| {
            let left = to_model(&short.resource, short.limit - short.allocated);
            (left > 0 && &*short.resource != "pods").then(|| (short.resource.clone(), left))
        };
        let amounts = self.beyond.iter().map(left).collect::<Option<Vec<(Name, i64)>>>()?;
        (self.overused.is_empty()).then(|| Proposal {
            change: Change::Request(amounts),
            text: String::new(),
            cost: 0,
        })
    }
}

/// Writes an amount of the model without rounding.
fn exact(resource: &str, amount: i64) -> String {
    if resource == "cpu" { format_milli(amount) } else { amount.to_string() }
}

/// Makes the proposal to change a queue, or to create the object of the default queue.
fn proposal_of(at: usize, old: Option<&Queue>, new: Queue, cost: u32) -> Proposal {
    let (mut texts, mut spec) = (Vec::new(), Map::new());
    let mut limits = Map::new();
    for (resource, amount) in &new.capability {
        let before = old.and_then(|old| old.capability.iter().find(|(known, _)| known == resource));
        if let Some((_, before)) = before.filter(|(_, before)| before != amount) {
            let of = |amount| format_amount(resource, amount);
            texts.push(format!("capability of {resource} from {} to {}", of(*before), of(*amount)));
            limits.insert(resource.to_string(), json!(exact(resource, *amount)));
        }
    }
    if !limits.is_empty() {
        spec.insert("capability".to_owned(), Value::Object(limits));
    }
    let weight = |queue: Option<&Queue>| queue.and_then(|queue| queue.weight).unwrap_or(1);
    if weight(Some(&new)) != weight(old) {
        texts.push(format!("weight from {} to {}", weight(old), weight(Some(&new))));
        spec.insert("weight".to_owned(), json!(weight(Some(&new))));
    }
    let (group, name, manifest) = (API_GROUPS[at], new.name.clone(), manifest(at, &new));
    let command = match old {
        Some(_) => {
            format!("kubectl patch queues.{group} {name} --type=merge -p '{}'", json!({"spec": spec}))
        }
        None => format!("echo '{manifest}' | kubectl create -f -"),
    };
    let text = format!("raise {} of queue {name}", texts.join(" and "));
    let object = if at == 0 { Object::QueueIncubator(new) } else { Object::QueueSigsDev(new) };
    let object = NewObject::Known(Arc::new(object), manifest);
    let change = Change::Objects(vec![ObjectChange { object, text, command }]);
    Proposal { change, text: String::new(), cost }
}

/// Returns a Queue as the API server takes it.
fn manifest(at: usize, queue: &Queue) -> Value {
    let capability: Map<String, Value> = queue
        .capability
        .iter()
        .map(|(resource, amount)| (resource.to_string(), json!(exact(resource, *amount))))
        .collect();
    let mut spec = Map::new();
    spec.extend(queue.weight.map(|weight| ("weight".to_owned(), json!(weight))));
    if !capability.is_empty() {
        spec.insert("capability".to_owned(), Value::Object(capability));
    }
    json!({
        "apiVersion": format!("{}/{}", API_GROUPS[at], VERSIONS[at]),
        "kind": "Queue",
        "metadata": {"name": queue.name.as_str()},
        "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_queue_says_what_changes_and_how() {
        let cpu: Name = "cpu".into();
        let old =
            Queue { name: "research".into(), capability: [(cpu.clone(), 8000)].into(), ..Queue::default() };
        let new = Queue { weight: Some(3), capability: [(cpu.clone(), 10_500)].into(), ..old.clone() };
        let Change::Objects(changes) = proposal_of(0, Some(&old), new, 0).change else { panic!("objects") };
        assert_eq!(
            changes[0].text,
            "raise capability of cpu from 8 to 10500m and weight from 1 to 3 of queue research"
        );
        assert_eq!(
            changes[0].command,
            "kubectl patch queues.scheduling.incubator.k8s.io research --type=merge -p \
             '{\"spec\":{\"capability\":{\"cpu\":\"10500m\"},\"weight\":3}}'"
        );
        let NewObject::Known(_, manifest) = &changes[0].object else { panic!("a Queue") };
        assert_eq!(manifest["spec"], json!({"weight": 3, "capability": {"cpu": "10500m"}}));
    }

    #[test]
    fn the_default_queue_gets_an_object() {
        let new = Queue { name: "default".into(), weight: Some(2), ..Queue::default() };
        let Change::Objects(changes) = proposal_of(1, None, new, 0).change else { panic!("objects") };
        assert_eq!(changes[0].text, "raise weight from 1 to 2 of queue default");
        assert!(changes[0].command.contains("scheduling.sigs.dev/v1alpha2"), "{}", changes[0].command);
        assert!(changes[0].command.ends_with("| kubectl create -f -"));
    }
}
