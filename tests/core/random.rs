//! Invariants under random sequences of inputs, reports and pauses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::{Cluster, Input, ResourceIdx, Stage};
use pellucid::cycle::scheduler::Step;
use pellucid::model::effect::{BindOrder, BindOutcome, EffectReport};
use pellucid::model::pod::PodPhase;
use pellucid::model::{Node, Pod, PodSpec};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use pellucid::recording::flight::DEFAULT_BYTES;
use pellucid::recording::switches::Setter;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::cluster::{any_node, config, named_node, named_pod, node_name, spec};
use crate::common::driver::{Core, default_profile, settings};
use crate::common::made::{refused, unreadable};

const NODES: usize = 6;
const PODS: usize = 10;

/// A random change; indices are taken modulo the number of elements.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    Node(usize, Box<Node>),
    NodeGone(usize),
    /// A pod appears or changes: index of its spec, priority, whether it is gated.
    Pod(usize, usize, i32, bool),
    /// Another scheduler's pod on a node.
    Foreign(usize, usize, usize),
    PodGone(usize),
    Deleting(usize),
    Ended(usize),
    Again(usize),
    Unreadable(usize),
    Lists,
    Steps(usize),
    Wait(u64),
    Sent(usize),
    /// The watch shows the outcome of an order.
    Confirmed(usize),
    Reported(usize, usize),
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        3 => (0..NODES, any_node(0)).prop_map(|(i, node)| Node(i, Box::new(node))),
        1 => (0..NODES).prop_map(NodeGone),
        8 => (0..PODS, 0..4usize, -1..2i32, prop::bool::weighted(0.1))
            .prop_map(|(i, spec, priority, gated)| Pod(i, spec, priority, gated)),
        1 => (0..PODS, 0..4usize, 0..NODES + 1).prop_map(|(i, spec, on)| Foreign(i, spec, on)),
        1 => (0..PODS).prop_map(PodGone),
        1 => (0..PODS).prop_map(Deleting),
        1 => (0..PODS).prop_map(Ended),
        1 => (0..PODS).prop_map(Again),
        1 => (0..PODS).prop_map(Unreadable),
        1 => Just(Lists),
        8 => (1..4usize).prop_map(Steps),
        4 => (0..12_000u64).prop_map(Wait),
        2 => (0..8usize).prop_map(Sent),
        3 => (0..8usize).prop_map(Confirmed),
        4 => (0..8usize, 0..4usize).prop_map(|(i, how)| Reported(i, how)),
    ]
}

/// The core, the objects of the API server, and unanswered orders.
pub(crate) struct Life {
    pub(crate) core: Core,
    nodes: BTreeMap<usize, Node>,
    pods: BTreeMap<usize, Pod>,
    open: Vec<BindOrder>,
    specs: Vec<Arc<PodSpec>>,
    uids: usize,
}

impl Life {
    pub(crate) fn new(specs: &[PodSpec], reuse: bool, percentage: u8) -> Self {
        let life = Self::quiet(specs, reuse, percentage);
        life.core.switches.set_top_n_scores(100, &Setter::default());
        life.core.switches.set_filter_failures(true, &Setter::default());
        life
    }

    /// Does the same with nothing recorded.
    fn quiet(specs: &[PodSpec], reuse: bool, percentage: u8) -> Self {
        Self::remembering(specs, reuse, percentage, DEFAULT_BYTES)
    }

    /// Does the same with a flight recorder of this size in bytes.
    fn remembering(specs: &[PodSpec], reuse: bool, percentage: u8, bytes: usize) -> Self {
        let mut profile = default_profile(crate::common::cluster::SCHEDULER);
        profile.percentage_of_nodes_to_score = percentage;
        let settings = settings(profile);
        settings.switches.set_recorder_bytes(bytes);
        let core = Core::new(settings);
        core.switches.set_reuse(reuse);
        let specs = specs.iter().cloned().map(Arc::new).collect();
        Self { core, nodes: BTreeMap::new(), pods: BTreeMap::new(), open: Vec::new(), specs, uids: 0 }
    }

    fn changed(&mut self, i: usize, change: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.pods.get_mut(&i) {
            change(pod);
            let pod = Arc::new(pod.clone());
            self.core.apply(Input::PodApplied(pod));
        }
    }

    fn new_pod(&mut self, i: usize, spec: usize) -> Pod {
        self.uids += 1;
        let spec = self.specs[spec % self.specs.len()].clone();
        let scheduler_name = crate::common::cluster::SCHEDULER.into();
        let pod = named_pod(&format!("p{i}"), Pod { spec, scheduler_name, ..Pod::default() });
        Pod { uid: format!("uid-{}", self.uids).into(), ..pod }
    }

    pub(crate) fn happen(&mut self, what: &Happening) -> Vec<Step> {
        match what {
            Happening::Node(i, node) => {
                let node = named_node(*i, (**node).clone());
                self.nodes.insert(*i, node.clone());
                self.core.apply(Input::NodeApplied(Arc::new(node)));
            }
            Happening::NodeGone(i) => {
                self.nodes.remove(i);
                self.core.apply(Input::NodeDeleted(node_name(*i)));
            }
            Happening::Pod(i, spec, priority, gated) => {
                if !self.pods.contains_key(i) {
                    let pod = self.new_pod(*i, *spec);
                    self.pods.insert(*i, pod);
                }
                let spec = self.specs[spec % self.specs.len()].clone();
                self.changed(*i, |pod| {
                    pod.priority = *priority;
                    pod.spec = spec;
                    pod.gates =
                        if *gated && pod.node_name.is_none() { ["g".into()].into() } else { [].into() };
                });
            }
            Happening::Foreign(i, spec, on) => {
                let mut pod = self.new_pod(*i, *spec);
                pod.scheduler_name = "other".into();
                pod.node_name = Some(node_name(*on));
                self.pods.insert(*i, pod);
                self.changed(*i, |_| ());
            }
            Happening::PodGone(i) => {
                if let Some(pod) = self.pods.remove(i) {
                    self.core.apply(Input::PodDeleted(pod.key));
                }
            }
            Happening::Deleting(i) => self.changed(*i, |pod| pod.deleting = true),
            Happening::Ended(i) => self.changed(*i, |pod| pod.phase = PodPhase::Succeeded),
            Happening::Again(i) => {
                let pod = self.new_pod(*i, *i);
                self.pods.insert(*i, pod);
                self.changed(*i, |_| ());
            }
            Happening::Unreadable(i) => {
                if let Some(pod) = self.pods.get(i) {
                    self.core.apply(Input::Quarantined(unreadable(pod)));
                }
            }
            Happening::Lists => self.list(),
            Happening::Steps(n) => return self.steps(*n),
            Happening::Wait(ms) => self.core.wait(Duration::from_millis(*ms)),
            Happening::Sent(i) => {
                if let Some(order) = self.open.get(i % self.open.len().max(1)) {
                    let (id, uid) = (order.id, order.pod.uid.clone());
                    self.core.apply(Input::Report(EffectReport::BindSent { id, uid }));
                }
            }
            Happening::Confirmed(i) => {
                if let Some(order) = self.open.get(i % self.open.len().max(1)).cloned() {
                    self.confirm(&order);
                }
            }
            Happening::Reported(i, how) => {
                if !self.open.is_empty() {
                    let order = self.open.remove(i % self.open.len());
                    self.answer(&order, *how);
                }
            }
        }
        Vec::new()
    }

    fn list(&mut self) {
        let nodes = self.nodes.values().cloned().map(Arc::new).collect();
        let pods = self.pods.values().cloned().map(Arc::new).collect();
        self.core.apply(Input::NodesReset { nodes, quarantined: Vec::new() });
        self.core.apply(Input::PodsReset { pods, quarantined: Vec::new() });
    }

    fn steps(&mut self, n: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..n {
            let Some(step) = self.core.step() else { break };
            check_step(self.core.scheduler.cluster(), &step);
            check_table(&step);
            self.open.extend(self.core.orders());
            steps.push(step);
        }
        steps
    }

    /// Returns the index of the pod that an order is about, while it exists and is unbound.
    fn target(&self, order: &BindOrder) -> Option<usize> {
        let found = self.pods.iter().find(|(_, p)| p.uid == order.pod.uid);
        found.filter(|(_, p)| p.node_name.is_none() && !p.deleting && !p.phase.is_terminal()).map(|(i, _)| *i)
    }

    /// Carries out a Binding and shows it on the watch.
    fn confirm(&mut self, order: &BindOrder) {
        if let Some(i) = self.target(order) {
            self.changed(i, |pod| {
                pod.node_name = Some((*order.node).clone());
                pod.gates = [].into();
            });
        }
    }

    /// Reports the true outcome of an order.
    fn answer(&mut self, order: &BindOrder, how: usize) {
        let there = self.pods.values().find(|p| p.uid == order.pod.uid && !p.phase.is_terminal());
        let outcome = match there.map(|p| p.node_name.clone()) {
            None => BindOutcome::Gone,
            Some(Some(node)) if node == *order.node => BindOutcome::Bound,
            Some(Some(node)) => BindOutcome::BoundElsewhere { node },
            Some(None) if how == 0 || self.target(order).is_none() => refused(),
            Some(None) => {
                let i = self.target(order).expect("checked above");
                let elsewhere = how == 1;
                let node = if elsewhere { node_name(NODES) } else { (*order.node).clone() };
                if let Some(pod) = self.pods.get_mut(&i) {
                    pod.node_name = Some(node.clone());
                    pod.gates = [].into();
                }
                if elsewhere { BindOutcome::BoundElsewhere { node } } else { BindOutcome::Bound }
            }
        };
        self.core.report(order, outcome);
        // Sometimes the watch is late.
        if how != 2 {
            for i in 0..PODS {
                if self.pods.get(&i).is_some_and(|p| p.uid == order.pod.uid) {
                    self.changed(i, |_| ());
                }
            }
        }
    }

    /// Advances ten minutes and carries out orders: every pod that is still pending was tried again.
    fn ten_minutes(mut self) {
        let attempts = |life: &Self| -> BTreeMap<Arc<str>, u32> {
            let (cluster, queue) = (life.core.scheduler.cluster(), life.core.scheduler.queue());
            let waits =
                |u: &pellucid::queue::Unit| !matches!(u.stage, QueueStage::Gated | QueueStage::InFlight);
            let units = queue.units().filter(|(_, u)| waits(u));
            let units =
                units.filter_map(|(_, u)| Some((cluster.pod(u.pods[0])?.pod.uid.clone(), u.attempts)));
            units.collect()
        };
        let before = attempts(&self);
        for _ in 0..60 {
            self.core.wait(Duration::from_secs(10));
            self.steps(usize::MAX);
            for order in std::mem::take(&mut self.open) {
                self.answer(&order, 3);
            }
            self.check();
        }
        for (uid, now) in attempts(&self) {
            assert!(now > before.get(&uid).copied().unwrap_or(0), "{uid} was forgotten");
        }
    }

    /// Answers, shows and deletes everything: nothing may be left.
    fn end(mut self) {
        for order in std::mem::take(&mut self.open) {
            self.answer(&order, 3);
        }
        self.list();
        self.check();
        assert_eq!(self.core.scheduler.n_in_flight(), 0);
        for i in 0..PODS {
            self.happen(&Happening::PodGone(i));
        }
        let cluster = self.core.scheduler.cluster();
        assert_eq!((cluster.pods().count(), cluster.shapes().len()), (0, 0));
        assert_eq!(self.core.scheduler.queue().units().count(), 0);
        assert_eq!(self.core.scheduler.queue().counts(), Default::default());
        for node in cluster.present() {
            for resource in (0..cluster.columns().n_resources()).map(|i| ResourceIdx(i as u16)) {
                assert_eq!(cluster.columns().requested(*node, resource), 0);
            }
        }
        let slots = (0..cluster.n_slots() as u32).map(pellucid::model::NodeIdx);
        let named = slots.filter(|n| !cluster.node_name(*n).is_empty()).count();
        assert_eq!(named, cluster.present().len(), "no slot is kept for a node that is gone");
    }

    fn check(&self) {
        let (cluster, queue) = (self.core.scheduler.cluster(), self.core.scheduler.queue());
        let mut counts = BTreeMap::new();
        for (id, unit) in queue.units() {
            *counts.entry(unit.stage.as_str()).or_insert(0usize) += 1;
            let record = cluster.pod(unit.pods[0]).expect("a unit's pod is in the state");
            assert_eq!(queue.unit_of(unit.pods[0]), Some(id));
            assert_eq!(record.pod.key, unit.key);
            assert_eq!(unit.stage == QueueStage::InFlight, record.stage.is_assumed(), "{}", unit.key);
            let verdict = self.core.scheduler.verdict(unit.pods[0]);
            match verdict.map(|v| v.outcome) {
                Some(Outcome::Refused(refusal) | Outcome::Gated(refusal)) => {
                    let counted: usize = refusal.groups.iter().map(|g| g.count).sum();
                    assert_eq!(counted + refusal.not_evaluated, refusal.total_nodes);
                    assert!(!refusal.message().is_empty());
                }
                Some(Outcome::Placed(_)) => assert!(record.stage.is_assumed(), "{}", unit.key),
                None => assert_eq!(unit.stage, QueueStage::Active, "{} was not tried yet", unit.key),
            }
        }
        let c = queue.counts();
        for (stage, count) in [
            ("active", c.active),
            ("backoff", c.backoff),
            ("unschedulable", c.unschedulable),
            ("gated", c.gated),
            ("in-flight", c.in_flight),
        ] {
            assert_eq!(counts.get(stage).copied().unwrap_or(0), count, "{stage}");
        }
        for (id, record) in cluster.pods() {
            assert_eq!(record.node.is_some(), record.stage.is_placed());
            if record.stage == Stage::Pending {
                assert!(queue.unit_of(id).is_some(), "{} waits in no stage", record.pod.key);
            }
        }
    }
}

/// Checks that a placement of ours stays within what the node offers of every requested resource.
fn check_step(cluster: &Cluster, step: &Step) {
    let Outcome::Placed(placement) = &step.verdict.outcome else { return };
    let node = cluster.find_node(cluster.node_name(placement.node)).expect("the node exists");
    let columns = cluster.columns();
    let list = &step.pod.spec.requests.list;
    let fixed =
        [("cpu", list.milli_cpu), ("memory", list.memory), ("ephemeral-storage", list.ephemeral_storage)];
    let fixed = fixed.into_iter().chain([("pods", 1)]).map(|(n, v)| (n.into(), v));
    for (name, amount) in fixed.chain(list.scalars.iter().cloned()) {
        if amount > 0 {
            let free = columns.find(&name).map_or(-1, |r| columns.free(node, r));
            assert!(free >= 0, "{} takes too much {name}", step.pod.key);
        }
    }
}

/// Checks that the first row of a recorded table is the winner, and that its shares add up to its total.
fn check_table(step: &Step) {
    let Some(table) = &step.table else { return };
    assert_eq!(table.rows[0].node, table.chosen, "{}", table.pod);
    for row in &table.rows {
        assert_eq!(row.shares.iter().flatten().map(|share| share.2).sum::<i64>(), row.total);
    }
}

/// Returns a step's decision and explanation in a comparable form.
fn seen(step: &Step) -> String {
    let rows = step.table.as_ref().map(|t| &t.rows);
    let refused = step.failure.as_ref().map(|f| &f.nodes);
    format!("{} {rows:?} {refused:?}", decided(step))
}

/// Returns a step's decision without what was recorded.
fn decided(step: &Step) -> String {
    let outcome = match &step.verdict.outcome {
        Outcome::Placed(placement) => format!("{placement:?}"),
        Outcome::Refused(r) | Outcome::Gated(r) => {
            let of_pod = r.pod_cause.as_ref().map(|c| (c.plugin, c.message()));
            let numbers = (r.total_nodes, r.not_evaluated, r.refused_by);
            format!("{} {numbers:?} {of_pod:?} {:?}", r.message(), r.groups)
        }
    };
    format!("{} {outcome}", step.pod.key)
}

fn specs() -> impl Strategy<Value = Vec<PodSpec>> {
    vec(spec(), 4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..config() })]

    #[test]
    fn every_pod_is_accounted_for(specs in specs(), all in vec(happening(), 1..80)) {
        let mut life = Life::new(&specs, true, 0);
        for what in &all {
            life.happen(what);
            life.check();
        }
        life.end();
    }

    #[test]
    fn nobody_is_forgotten(specs in specs(), all in vec(happening(), 1..40)) {
        let mut life = Life::new(&specs, true, 0);
        for what in &all {
            life.happen(what);
        }
        life.ten_minutes();
    }

    #[test]
    fn recording_changes_no_decision(specs in specs(), all in vec(happening(), 1..80)) {
        let mut with = Life::new(&specs, true, 0);
        let mut without = Life::quiet(&specs, true, 0);
        for what in &all {
            let (a, b) = (with.happen(what), without.happen(what));
            prop_assert!(b.iter().all(|step| step.table.is_none() && step.failure.is_none()));
            let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(decided).collect(), b.iter().map(decided).collect());
            prop_assert_eq!(a, b);
        }
    }

    /// A recorded placement keeps the names of its pod and node, even after their slots are reused.
    #[test]
    fn placements_keep_their_names(
        specs in specs(),
        all in vec(happening(), 1..120),
        bytes in prop_oneof![Just(8 << 10), Just(64 << 10), Just(DEFAULT_BYTES)],
        pause in 0..120usize,
    ) {
        let mut life = Life::remembering(&specs, true, 0, bytes);
        let mut placed = Vec::new();
        for (n, what) in all.iter().enumerate() {
            life.core.switches.set_recorder(n / 10 != pause / 10);
            for step in life.happen(what) {
                let node = life.core.scheduler.chosen(&step.verdict);
                let is_recorded = life.core.switches.recorder();
                placed.extend(node.filter(|_| is_recorded).map(|node| (step.pod.key.clone(), node.clone())));
            }
            let snapshot = life.core.scheduler.publish(life.core.now);
            let names = snapshot.flight.names(0, &snapshot.cluster);
            let entries = snapshot.flight.since(0).filter(|(chunk, e)| chunk.event(e).kind() == "Placed");
            let told: Vec<_> = entries.map(|(c, e)| (names.subject(c, &e), names.node(c, &e))).collect();
            let kept = &placed[placed.len() - told.len()..];
            let kept: Vec<_> =
                kept.iter().map(|(key, node)| ((&*key.namespace, &*key.name), &**node)).collect();
            prop_assert_eq!(&told, &kept);
            prop_assert!(snapshot.flight.dropped > 0 || kept.len() == placed.len());
        }
    }

    #[test]
    fn reuse_changes_no_decision_and_no_explanation(specs in specs(), all in vec(happening(), 1..80)) {
        let mut with = Life::new(&specs, true, 0);
        let mut without = Life::new(&specs, false, 0);
        for what in &all {
            let (a, b) = (with.happen(what), without.happen(what));
            let (a, b): (Vec<_>, Vec<_>) = (a.iter().map(seen).collect(), b.iter().map(seen).collect());
            prop_assert_eq!(a, b);
        }
    }
}
