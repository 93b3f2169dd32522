//! Invariants that hold after every call of the scheduler.
//!
//! The sums are computed here from the objects (`room`), not read from the columns that they are compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pellucid::cluster::preemptions::{End, VictimState};
use pellucid::cluster::{Cluster, ResourceIdx, Stage};
use pellucid::cycle::Scheduler;
use pellucid::cycle::scheduler::Step;
use pellucid::model::effect::{
    BindOutcome, Effect, EffectId, EffectReport, EvictOrder, EvictOutcome, WriteOutcome,
};
use pellucid::model::{Name, NodeIdx, Pod, PodId};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;

use crate::api::{Api, takes_room};
use crate::room;

/// State of the checks between calls.
#[derive(Default)]
pub(crate) struct Checks {
    /// Unsettled evictions by the UID of the victim.
    evictions: BTreeMap<Arc<str>, EffectId>,
    pub(crate) counts: Counts,
}

/// How often things happened: a simulation in which something never happens does not test it.
#[derive(Clone, Debug)]
pub(crate) struct Counts(pub(crate) BTreeMap<&'static str, u64>);

/// Everything that is counted.
const COUNTED: [&str; 15] = [
    "placed",
    "placed beside nominees",
    "nominees placed",
    "refused",
    "evicted",
    "eviction refused",
    "victim gone before",
    "placement taken back",
    "bound",
    "bound elsewhere",
    "gone before bound",
    "binding refused",
    "object written",
    "object there before",
    "object refused",
];

impl Default for Counts {
    fn default() -> Self {
        let ends = End::ALL.iter().map(|end| end.as_str());
        Self(COUNTED.into_iter().chain(ends).map(|what| (what, 0)).collect())
    }
}

impl Counts {
    fn add(&mut self, what: &'static str) {
        *self.0.get_mut(what).expect("it is listed") += 1;
    }

    /// Adds the counts of another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (what, n) in &other.0 {
            *self.0.get_mut(what).expect("it is listed") += n;
        }
    }
}

/// What a check needs to know from before a step.
pub(crate) struct Before {
    attempts: u64,
    nominated: BTreeSet<PodId>,
}

impl Checks {
    pub(crate) fn open_evictions(&self) -> usize {
        self.evictions.len()
    }

    pub(crate) fn before_step(&self, scheduler: &Scheduler) -> Before {
        let nominator = scheduler.cluster().nominator();
        let nominated = nominator.nodes().flat_map(|(_, pods)| pods.iter().copied()).collect();
        Before { attempts: attempts(scheduler), nominated }
    }

    /// Checks a planned unit.
    pub(crate) fn step(&mut self, scheduler: &Scheduler, step: &Step, before: &Before) {
        let cluster = scheduler.cluster();
        assert_eq!(attempts(scheduler), before.attempts + 1, "each step is one attempt");
        let id = cluster.find_pod(&step.pod.key);
        match &step.verdict.outcome {
            Outcome::Placed(placement) => {
                let id = id.expect("a placed pod is in the state");
                let name = cluster.node_name(placement.node);
                let node = cluster.find_node(name).expect("and so is its node");
                self.counts.add("placed");
                if before.nominated.contains(&id) {
                    self.counts.add("nominees placed");
                }
                assert!(cluster.nominator().of(id).is_none(), "{} needs no nomination", step.pod.key);
                self.placement(cluster, id, &step.pod, node);
            }
            Outcome::Refused(refusal) => {
                self.counts.add("refused");
                let counted: usize = refusal.groups.iter().map(|g| g.count).sum();
                assert_eq!(counted + refusal.not_evaluated, refusal.total_nodes, "{}", refusal.message());
                assert_eq!(refusal.total_nodes, cluster.present().len(), "{}", refusal.message());
                let chose = step.verdict.plan.as_ref().and_then(|plan| plan.candidates.first());
                if let Some(chosen) = chose {
                    nomination(cluster, &step.pod, &chosen.name);
                }
            }
            Outcome::Gated(refusal) => panic!("a gated pod is not tried: {}", refusal.message()),
        }
    }

    /// Rule 6: pods on the node and nominated pods of no lower priority stay within what the node offers.
    fn placement(&mut self, cluster: &Cluster, id: PodId, pod: &Pod, node: NodeIdx) {
        let object = cluster.node(node).expect("pods are placed on nodes that are there");
        let wanted = room::taken_by(pod);
        let on_node = pods_on(cluster, node);
        let there = room::taken(on_node.iter().copied());
        if let Some(what) = room::exceeded(object, &there, &wanted) {
            panic!("{} is placed where there is no room: {what}", pod.key);
        }
        let shares = on_node.iter().find(|other| room::wants_port_of(pod, other));
        assert!(shares.is_none(), "{} shares a port with {:?}", pod.key, shares.map(|p| &p.key));
        let nominees = cluster.nominator().on(&object.name).iter().filter(|n| **n != id);
        let nominees = nominees.filter_map(|n| cluster.pod(*n)).filter(|r| r.node.is_none());
        let nominees: Vec<&Pod> =
            nominees.map(|r| r.pod.as_ref()).filter(|n| n.priority >= pod.priority).collect();
        if !nominees.is_empty() {
            self.counts.add("placed beside nominees");
        }
        let promised = room::taken(on_node.iter().copied().chain(nominees.iter().copied()));
        if let Some(what) = room::exceeded(object, &promised, &wanted) {
            panic!("{} takes room that is promised to others: {what}", pod.key);
        }
    }

    /// Checks an effect that the scheduler ordered.
    pub(crate) fn effect(&mut self, scheduler: &Scheduler, effect: &Effect) {
        if let Effect::Evict(order) = effect {
            self.counts.add("evicted");
            self.eviction(scheduler.cluster(), order);
        }
    }

    fn eviction(&mut self, cluster: &Cluster, order: &EvictOrder) {
        let (victim, preemptor) = (&order.victim.key, &order.preemptor.key);
        let before = self.evictions.insert(order.victim.uid.clone(), order.id);
        assert!(before.is_none(), "{victim} is evicted a second time while the first is under way");
        let id = cluster.find_pod(preemptor).expect("the preemptor is there");
        let record = cluster.pod(id).expect("the preemptor is there");
        assert!(!record.pod.never_preempts, "{preemptor} never preempts");
        let nomination = cluster.nominator().of(id);
        let nomination =
            nomination.unwrap_or_else(|| panic!("{victim} is evicted for {preemptor}, not nominated"));
        let evicted = cluster.find_pod(victim).and_then(|v| cluster.pod(v)).expect("the victim is there");
        let node = evicted.node.map(|n| cluster.node_name(n));
        assert_eq!(node, Some(&nomination.node), "{victim} is evicted where {preemptor} goes");
        assert!(evicted.pod.priority < record.pod.priority, "{victim} is not below {preemptor}");
        assert!(!evicted.pod.deleting, "{victim} is on its way already");
        assert!(
            !matches!(evicted.stage, Stage::Reserved | Stage::Waiting | Stage::PreBinding),
            "{victim} has no Binding under way and only loses its place"
        );
    }

    /// Records a report that is about to be delivered.
    pub(crate) fn reported(&mut self, report: &EffectReport) {
        self.count(report);
        if let EffectReport::EvictDone { id, uid, .. } = report
            && self.evictions.get(uid) == Some(id)
        {
            self.evictions.remove(uid);
        }
    }

    fn count(&mut self, report: &EffectReport) {
        let what = match report {
            EffectReport::BindSent { .. } => return,
            EffectReport::BindDone { outcome, .. } => match outcome {
                BindOutcome::Bound => "bound",
                BindOutcome::BoundElsewhere { .. } => "bound elsewhere",
                BindOutcome::Gone => "gone before bound",
                BindOutcome::Refused { .. } => "binding refused",
            },
            EffectReport::EvictDone { outcome, .. } => match outcome {
                EvictOutcome::Deleted => return,
                EvictOutcome::Gone => "victim gone before",
                EvictOutcome::Refused { .. } => "eviction refused",
            },
            EffectReport::ObjectDone { outcome, .. } => match outcome {
                WriteOutcome::Written => "object written",
                WriteOutcome::AlreadyExists => "object there before",
                WriteOutcome::Refused { .. } => "object refused",
            },
        };
        self.counts.add(what);
    }

    /// Counts the outcomes of preemptions at the end of a run.
    pub(crate) fn count_preemptions(&mut self, cluster: &Cluster) {
        for preemption in cluster.preemptions().ended() {
            if let Some((end, _)) = preemption.end {
                self.counts.add(end.as_str());
            }
            for _ in preemption.victims.iter().filter(|v| v.state == VictimState::Cancelled) {
                self.counts.add("placement taken back");
            }
        }
    }

    /// Checks everything that holds after every call of the scheduler.
    pub(crate) fn always(&self, scheduler: &Scheduler, after: &str) {
        stages(scheduler, after);
        places(scheduler.cluster());
        nominations(scheduler);
        book(scheduler.cluster());
    }

    /// Checks the API server itself, in runs without interference: no node exceeds its resources, and no host port is
    /// used twice.
    pub(crate) fn truth(&self, api: &Api) {
        for node in api.nodes.values() {
            let pods = api.pods.values().map(|s| &s.pod);
            let on_node: Vec<&Pod> =
                pods.filter(|p| p.node_name.as_ref() == Some(&node.name) && takes_room(p)).collect();
            if let Some(what) = room::overcommitted(node, &on_node) {
                panic!("the API server holds {what}");
            }
            assert!(!room::share_port(&on_node), "a port is taken twice on {}", node.name);
        }
    }
}

fn attempts(scheduler: &Scheduler) -> u64 {
    scheduler.queue().units().map(|(_, u)| u64::from(u.attempts)).sum()
}

/// Checks that a pod that chose victims is nominated to their node, and that no pod of lower priority is.
fn nomination(cluster: &Cluster, pod: &Pod, node: &Name) {
    let id = cluster.find_pod(&pod.key).expect("it waits");
    assert_eq!(cluster.nominator().of(id).map(|n| &n.node), Some(node), "{}", pod.key);
    for other in cluster.nominator().on(node).iter().filter_map(|n| cluster.pod(*n)) {
        assert!(other.pod.priority >= pod.priority, "{} keeps its nomination to {node}", other.pod.key);
    }
}

/// Returns the pods that use resources of a node, by their records.
pub(crate) fn pods_on(cluster: &Cluster, node: NodeIdx) -> Vec<&Pod> {
    cluster.pods().filter(|(_, r)| r.node == Some(node)).map(|(_, r)| r.pod.as_ref()).collect()
}

/// Checks that every pending pod of ours is in exactly one stage, and that the stages agree with the records.
fn stages(scheduler: &Scheduler, after: &str) {
    let (cluster, queue) = (scheduler.cluster(), scheduler.queue());
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    for (id, unit) in queue.units() {
        *counted.entry(unit.stage.as_str()).or_default() += 1;
        let record = cluster.pod(unit.pods[0]).expect("a unit's pod is in the state");
        assert_eq!((queue.unit_of(unit.pods[0]), &record.pod.key), (Some(id), &unit.key));
        assert_eq!(
            unit.stage == QueueStage::InFlight,
            record.stage.is_assumed(),
            "{} after {after}",
            unit.key
        );
        match scheduler.verdict(unit.pods[0]).map(|v| v.outcome) {
            Some(Outcome::Placed(_)) => {
                assert!(
                    record.stage.is_assumed(),
                    "{} is {} and said to be placed",
                    unit.key,
                    unit.stage.as_str()
                );
            }
            Some(Outcome::Gated(_)) => assert_eq!(unit.stage, QueueStage::Gated, "{}", unit.key),
            Some(Outcome::Refused(_)) => {}
            None => assert_eq!(unit.stage, QueueStage::Active, "{} was not tried yet", unit.key),
        }
    }
    let c = queue.counts();
    let counts = [c.active, c.backoff, c.unschedulable, c.gated, c.in_flight];
    let names = ["active", "backoff", "unschedulable", "gated", "in-flight"];
    for (name, count) in names.into_iter().zip(counts) {
        assert_eq!(counted.get(name).copied().unwrap_or(0), count, "{name} after {after}");
    }
    for (id, record) in cluster.pods() {
        assert_eq!(record.node.is_some(), record.stage.is_placed(), "{}", record.pod.key);
        if record.stage == Stage::Pending {
            assert!(queue.unit_of(id).is_some(), "{} waits in no stage after {after}", record.pod.key);
        }
        let holds = !record.holds.is_empty();
        assert!(!holds || record.stage.is_assumed(), "{} holds something for nothing", record.pod.key);
    }
}

/// Checks that pods are in one place, and that the columns agree with the pods' requests.
fn places(cluster: &Cluster) {
    let mut on: BTreeMap<PodId, NodeIdx> = BTreeMap::new();
    for slot in (0..cluster.n_slots() as u32).map(NodeIdx) {
        for pod in cluster.slot(slot).pods.iter() {
            assert!(on.insert(*pod, slot).is_none(), "a pod is in two places");
        }
    }
    let mut pods: BTreeMap<NodeIdx, Vec<&Pod>> = BTreeMap::new();
    for (id, record) in cluster.pods() {
        assert_eq!(record.node, on.remove(&id), "{} is where its node has it", record.pod.key);
        if let Some(node) = record.node {
            pods.entry(node).or_default().push(&record.pod);
        }
    }
    assert!(on.is_empty(), "nodes hold pods that are not there");
    let columns = cluster.columns();
    let offered: Vec<(ResourceIdx, Name)> = columns.offered().map(|r| (r, columns.name(r))).collect();
    for slot in (0..cluster.n_slots() as u32).map(NodeIdx) {
        let taken = room::taken(pods.get(&slot).into_iter().flatten().copied());
        for (resource, name) in &offered {
            let have = columns.requested(slot, *resource);
            assert_eq!(have, taken.get(name), "{name} of {}", cluster.node_name(slot));
        }
    }
}

/// Checks that only pending pods are nominated, each once.
fn nominations(scheduler: &Scheduler) {
    let (cluster, mut seen) = (scheduler.cluster(), BTreeSet::new());
    for (node, pods) in cluster.nominator().nodes() {
        for id in pods {
            assert!(seen.insert(*id), "a pod is nominated twice");
            let record = cluster.pod(*id).expect("a nominated pod is in the state");
            assert!(record.node.is_none(), "{} is nominated to {node} and placed", record.pod.key);
            assert_eq!(cluster.nominator().of(*id).map(|n| &n.node), Some(node));
            assert!(scheduler.queue().unit_of(*id).is_some(), "{} is nominated and not ours", record.pod.key);
        }
    }
    assert_eq!(seen.len(), cluster.nominator().len());
}

/// Checks that the record of preemptions adds up and refers to existing pods.
fn book(cluster: &Cluster) {
    let book = cluster.preemptions();
    let mut open = 0;
    for (id, preemption) in book.open() {
        let record = cluster.pod(id).expect("a preemptor is in the state");
        assert_eq!(record.pod.uid, preemption.uid, "{}", preemption.preemptor);
        assert_ne!(record.stage, Stage::Bound, "{} is bound and its preemption open", preemption.preemptor);
        for victim in &preemption.victims {
            assert!(victim.priority < preemption.priority, "{} is not below its preemptor", victim.key);
            if victim.state.is_awaited() {
                let there = cluster.pod(victim.pod).is_some_and(|r| r.pod.uid == victim.uid);
                assert!(there, "{} is awaited and gone", victim.key);
                let is_known = book.waiting_for(victim.pod).contains(&id);
                assert!(is_known, "{} is awaited by {}", victim.key, preemption.preemptor);
            }
        }
        open += preemption.victims.iter().filter(|v| v.is_counted).count() as u64;
    }
    let counts = book.counts();
    let wasted: u64 = counts.wasted.values().sum();
    let accounted = counts.useful + wasted + counts.refused + open;
    assert_eq!(counts.victims, accounted, "every victim is accounted for once");
    // Ended preemptions are remembered up to a number that no run reaches.
    assert_eq!(counts.preemptions, (book.open().count() + book.ended().count()) as u64);
}
