//! A pod is not tried again while nothing relevant to it changed, and is always tried when something did.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::framework::endpoint::ReadError;
use pellucid::model::effect::BindOutcome;
use pellucid::model::object::Namespace;
use pellucid::model::selector::Labels;
use pellucid::model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid::model::{Name, Node, Object, Pod, PodSpec};
use pellucid::queue::QueueStage;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::common::cluster::{
    NODE_NAMES, World, any_node, config, named_node, named_pod, node_name, pod as any_pod, spec, world,
};
use crate::common::driver::Core;
use crate::common::made::{SECOND, core, core_with, node, on, pod, refused};
use crate::common::reads::{ask, try_ask};

/// A change that may help; indices are taken modulo the number of elements.
#[derive(Clone, Debug)]
enum Change {
    /// A node becomes like another in one respect, or appears.
    Node(usize, Respect, Box<Node>),
    /// A node gains the labels that the pending pod selects.
    Obliges(usize),
    /// A node accepts pods again: no taints, no cordon.
    Opens(usize),
    NodeGone(usize),
    /// A pod on a node is deleted, or shrinks its requests to the minimum.
    Gone(usize),
    Shrunk(usize),
    /// A pod on a node gets the labels of another, or is being deleted.
    Relabelled(usize, Box<Pod>),
    Deleting(usize),
    /// A pod appears on a node.
    Appeared(usize, Box<Pod>),
    /// The pending pod tolerates everything.
    Tolerates,
    /// The pending pod gets another spec.
    Respecified(Box<PodSpec>),
    Namespace(Labels),
}

#[derive(Clone, Copy, Debug)]
enum Respect {
    Amounts,
    Labels,
    Taints,
    All,
}

fn change() -> impl Strategy<Value = Change> {
    use Change::*;
    let respect =
        prop::sample::select(&[Respect::Amounts, Respect::Labels, Respect::Taints, Respect::All][..]);
    let labels = vec((Just("zone"), prop::sample::select(&["a", "b"][..])), 0..2);
    prop_oneof![
        8 => (0..NODE_NAMES, respect, inviting()).prop_map(|(i, what, node)| Node(i, what, Box::new(node))),
        2 => (0..NODE_NAMES).prop_map(Obliges),
        3 => (0..NODE_NAMES).prop_map(Opens),
        1 => (0..NODE_NAMES).prop_map(NodeGone),
        4 => (0..8usize).prop_map(Gone),
        4 => (0..8usize).prop_map(Shrunk),
        1 => (0..8usize, any_pod(0)).prop_map(|(i, pod)| Relabelled(i, Box::new(pod))),
        1 => (0..8usize).prop_map(Deleting),
        2 => (0..NODE_NAMES, any_pod(0)).prop_map(|(i, pod)| Appeared(i, Box::new(pod))),
        1 => Just(Tolerates),
        1 => spec().prop_map(|spec| Respecified(Box::new(spec))),
        1 => labels.prop_map(|l| Namespace(Labels::new(l.into_iter().map(|(k, v)| (k.into(), v.into()))))),
    ]
}

/// Generates a node that accepts more pods than most.
fn inviting() -> impl Strategy<Value = Node> {
    (any_node(0), prop::bool::weighted(0.7), prop::bool::weighted(0.7)).prop_map(|(mut node, open, large)| {
        if open {
            (node.taints, node.unschedulable) = ([].into(), false);
        }
        if large {
            let list = &mut node.allocatable;
            (list.milli_cpu, list.memory, list.ephemeral_storage, list.pods) =
                (20_000, 90 << 30, 90 << 30, 50);
            list.scalars = [("example.com/gpu".into(), 9)].into();
        }
        node
    })
}

/// The objects of the API server.
#[derive(Clone)]
struct Held {
    nodes: BTreeMap<usize, Node>,
    placed: BTreeMap<usize, Pod>,
    waiting: Pod,
    namespace: Option<Arc<Object>>,
}

impl Held {
    /// Makes the pending pod from the first one of the world, without some of its constraints: a pod refused for five
    /// reasons at once is seldom helped by one change.
    fn new(world: &World, freed_of: [bool; 4]) -> Self {
        let mut waiting = world.pending.first().cloned().unwrap_or_else(|| pod("pending-0", 1500));
        let spec = Arc::make_mut(&mut waiting.spec);
        let all = PodSpec::default();
        if freed_of[0] {
            spec.node_name = None;
            spec.affinity.required = None;
        }
        if freed_of[1] {
            spec.affinity.selector = all.affinity.selector;
        }
        if freed_of[2] {
            spec.host_ports = all.host_ports;
        }
        if freed_of[3] {
            spec.requests = Default::default();
        }
        Self {
            nodes: world.nodes.iter().cloned().enumerate().collect(),
            placed: world.placed.iter().cloned().enumerate().collect(),
            waiting: Pod { gates: [].into(), ..waiting },
            namespace: None,
        }
    }

    /// Makes a core with all objects, before it has planned.
    fn core(&self) -> Core {
        let nodes: Vec<Node> = self.nodes.values().cloned().collect();
        let mut core = core_with(&nodes);
        if let Some(object) = &self.namespace {
            core.apply(Input::ObjectApplied(object.clone()));
        }
        for pod in self.placed.values() {
            core.see(pod);
        }
        core.see(&self.waiting);
        core
    }

    /// Makes a change and applies it to a core.
    fn change(&mut self, what: &Change, core: &mut Core) {
        let nth =
            |i: usize, placed: &BTreeMap<usize, Pod>| placed.keys().nth(i % placed.len().max(1)).copied();
        match what {
            Change::Node(i, respect, like) => {
                let known = self.nodes.entry(*i).or_insert_with(|| named_node(*i, (**like).clone()));
                let like = named_node(*i, (**like).clone());
                match respect {
                    Respect::Amounts => known.allocatable = like.allocatable,
                    Respect::Labels => known.labels = like.labels,
                    Respect::Taints => {
                        (known.taints, known.unschedulable) = (like.taints, like.unschedulable);
                    }
                    Respect::All => *known = like,
                }
                core.see_node(known);
            }
            Change::Obliges(i) => {
                let n = self.nodes.len().max(1);
                if let Some(node) = self.nodes.values_mut().nth(i % n) {
                    let wanted = self.waiting.spec.affinity.selector.iter().cloned();
                    let kept = node.labels.iter().cloned();
                    node.labels = Labels::new(kept.chain(wanted).collect::<BTreeMap<_, _>>());
                    core.see_node(node);
                }
            }
            Change::Opens(i) => {
                let n = self.nodes.len().max(1);
                if let Some(node) = self.nodes.values_mut().nth(i % n) {
                    (node.taints, node.unschedulable) = ([].into(), false);
                    core.see_node(node);
                }
            }
            Change::NodeGone(i) => {
                self.nodes.remove(i);
                core.apply(Input::NodeDeleted(node_name(*i)));
            }
            Change::Gone(i) => {
                if let Some(pod) = nth(*i, &self.placed).and_then(|i| self.placed.remove(&i)) {
                    core.delete(&pod);
                }
            }
            Change::Shrunk(i) => self.on_node(*i, core, |pod| {
                Arc::make_mut(&mut pod.spec).requests = Default::default();
            }),
            Change::Relabelled(i, like) => self.on_node(*i, core, |pod| {
                Arc::make_mut(&mut pod.spec).labels = like.spec.labels.clone();
            }),
            Change::Deleting(i) => self.on_node(*i, core, |pod| pod.deleting = true),
            Change::Appeared(i, pod) => {
                let n = self.placed.keys().last().map_or(0, |n| n + 1);
                let pod =
                    Pod { node_name: Some(node_name(*i)), ..named_pod(&format!("new-{n}"), (**pod).clone()) };
                core.see(&pod);
                self.placed.insert(n, pod);
            }
            Change::Tolerates => {
                let (key, value) = (Name::default(), Name::default());
                let all = Toleration { key, operator: TolerationOperator::Exists, value, effect: None };
                Arc::make_mut(&mut self.waiting.spec).tolerations = [all].into();
                core.see(&self.waiting);
            }
            Change::Respecified(spec) => {
                self.waiting.spec = Arc::new((**spec).clone());
                core.see(&self.waiting);
            }
            Change::Namespace(labels) => {
                let object = Object::Namespace(Namespace { name: "ns".into(), labels: labels.clone() });
                let object = Arc::new(object);
                core.apply(Input::ObjectApplied(object.clone()));
                self.namespace = Some(object);
            }
        }
    }

    fn on_node(&mut self, i: usize, core: &mut Core, change: impl FnOnce(&mut Pod)) {
        let n = self.placed.len().max(1);
        if let Some(pod) = self.placed.values_mut().nth(i % n) {
            change(pod);
            core.see(pod);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..config() })]

    #[test]
    fn whatever_makes_a_refused_pod_fit_wakes_it(
        world in (1..6usize).prop_flat_map(|nodes| world(nodes, 8)),
        freed_of in [0.7, 0.5, 0.5, 0.2].map(prop::bool::weighted),
        all in vec(change(), 1..16),
    ) {
        let mut held = Held::new(&world, freed_of);
        let mut core = held.core();
        core.run();
        for what in &all {
            if core.queued(&held.waiting) != Some(QueueStage::Unschedulable) {
                break;
            }
            held.change(what, &mut core);
            let mut fresh = held.core();
            fresh.run();
            let fits = fresh.node_of(&held.waiting);
            let stage = core.queued(&held.waiting);
            prop_assert!(
                fits.is_none() || stage != Some(QueueStage::Unschedulable),
                "it fits on {fits:?} after {what:?} and is not told"
            );
            core.run();
            // Not necessarily the same node: the pod may be nominated to a node from which it evicted others.
            let placed = core.node_of(&held.waiting).is_some();
            prop_assert_eq!(placed, fits.is_some(), "an idle core tries at once what was woken");
        }
    }
}

/// Reads the wake-ups of a pod, as a user would.
fn wakeups(core: &mut Core, p: &Pod) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/{}/wakeups", p.key))
}

/// Renders each event as `event object plugin:verdict… woke`.
fn lines(events: &Value) -> Vec<String> {
    let line = |e: &Value| {
        let verdicts = e["verdicts"].as_array().expect("an array").iter();
        let verdicts: Vec<String> = verdicts
            .map(|v| {
                format!("{}:{}", v["plugin"].as_str().unwrap_or("?"), v["verdict"].as_str().unwrap_or("?"))
            })
            .collect();
        let woke = if e["woke"] == true { "woke" } else { "slept" };
        let (event, object) = (e["event"].as_str().unwrap_or("?"), e["object"].as_str().unwrap_or("?"));
        format!("{event} {object} {} {woke}", verdicts.join(" "))
    };
    events.as_array().expect("an array").iter().map(line).collect()
}

fn tainted(name: &str, milli_cpu: i64) -> Node {
    let taint = Taint { key: "k".into(), value: Name::default(), effect: TaintEffect::NoSchedule };
    Node { taints: [taint].into(), ..node(name, milli_cpu) }
}

#[test]
fn a_record_tells_what_was_asked_and_what_woke_the_pod() {
    let mut core = core_with(&[node("a", 1000), tainted("b", 5000)]);
    let (p, old, tiny) = (pod("p", 900), on(&pod("old", 800), "a"), on(&pod("tiny", 50), "a"));
    core.see(&old);
    core.see(&tiny);
    core.attempt(&p);
    let body = wakeups(&mut core, &p);
    assert_eq!(body["stage"], "unschedulable");
    assert_eq!(body["refusedBy"], serde_json::json!(["TaintToleration", "NodeResourcesFit"]));
    assert_eq!(body["waitsFor"][0]["plugin"], "TaintToleration");
    let waits = body["waitsFor"][1]["events"].as_array().expect("an array");
    assert!(waits.contains(&"Pod/Delete".into()) && waits.contains(&"Node/Add".into()), "{waits:?}");
    assert!(body["backoffUntil"].is_string() && body["expiresAt"].is_string());
    assert_eq!((lines(&body["events"]).len(), body.get("wokenBy")), (0, None));
    assert!(body["meta"]["decidedAt"].is_string());

    core.delete(&tiny);
    core.see_node(&tainted("c", 5000));
    core.see_node(&node("small", 100));
    let body = wakeups(&mut core, &p);
    // The room on c is enough for one of them; later events found the pod already awake.
    let told = [
        "Node/Add c TaintToleration:Skip NodeResourcesFit:Queue woke",
        "Pod/Delete ns/tiny NodeResourcesFit:Skip slept",
    ];
    assert_eq!(lines(&body["events"]), told);
    assert_eq!(body["stage"], "backoff");
    assert_eq!(body["wokenBy"]["object"], "c");
    assert_eq!(body["waitsFor"], serde_json::json!([]));

    core.run();
    let body = wakeups(&mut core, &p);
    assert_eq!(body["stage"], "unschedulable");
    assert_eq!(lines(&body["events"]), [""; 0], "a new attempt, a new record");
    assert_eq!(body["wokenBy"]["object"], "c", "what led to the last attempt");

    core.wait(2 * SECOND);
    core.delete(&old);
    let body = wakeups(&mut core, &p);
    assert_eq!(body["stage"], "active");
    assert_eq!(lines(&body["events"]), ["Pod/Delete ns/old NodeResourcesFit:Queue woke"]);
    core.run();
    let body = wakeups(&mut core, &p);
    assert_eq!((&body["stage"], lines(&body["events"]).len()), (&"permitted".into(), 0));
    core.see(&on(&p, "a"));
    let body = wakeups(&mut core, &p);
    assert_eq!((&body["stage"], &body["wokenBy"]["object"]), (&"bound".into(), &"ns/old".into()));
    core.delete(&p);
    let again = pod("again", 100);
    core.attempt(&again);
    core.see(&on(&again, "a"));
    assert_eq!(wakeups(&mut core, &again).get("wokenBy"), None, "nothing woke the one in its slot");
    let unknown = try_ask(&mut core, "/apis/v1/explain/pods/ns/nobody/wakeups");
    assert!(matches!(unknown, Err(ReadError::NotFound { code: "PodNotFound", .. })));
}

#[test]
fn a_record_keeps_the_newest_and_counts_what_nobody_waited_for() {
    let mut core = core_with(&[node("a", 100_000)]);
    let mut large = node("a", 100_000);
    large.allocatable.pods = 200;
    core.see_node(&large);
    let running: Vec<Pod> = (0..40).map(|i| on(&pod(&format!("r{i}"), 10), "a")).collect();
    running.iter().for_each(|p| core.see(p));
    core.delete(&running[0]);
    let p = pod("p", 200_000);
    core.attempt(&p);
    running[1..].iter().for_each(|p| core.delete(p));
    let body = wakeups(&mut core, &p);
    let events = lines(&body["events"]);
    assert_eq!((events.len(), events[0].as_str()), (16, "Pod/Delete ns/r39 NodeResourcesFit:Skip slept"));
    let skipped = body["skipped"].as_array().expect("an array");
    let count = |event: &str| skipped.iter().find(|s| s["event"] == event).map(|s| s["count"].clone());
    assert_eq!((count("Pod/Add"), count("Pod/Delete")), (Some(40.into()), Some(1.into())));
    assert_eq!(core.unit(&p).map(|u| u.attempts), Some(1));
}

#[test]
fn every_stage_has_an_answer() {
    let mut core = core_with(&[node("a", 1000)]);
    let (gated, fresh) = (pod("gated", 100), pod("fresh", 100));
    let gated = Pod { gates: [Name::new("example.com/quota")].into(), ..gated };
    core.see(&gated);
    let body = wakeups(&mut core, &gated);
    assert_eq!((&body["stage"], &body["refusedBy"][0]), (&"gated".into(), &"SchedulingGates".into()));
    assert_eq!(body["waitsFor"][0]["events"], serde_json::json!(["Pod/Update"]));
    core.see(&fresh);
    assert_eq!(wakeups(&mut core, &fresh)["stage"], "active");
    core.run();
    let order = core.orders().remove(0);
    assert_eq!(wakeups(&mut core, &fresh)["stage"], "permitted");
    core.report(&order, refused());
    let body = wakeups(&mut core, &fresh);
    assert_eq!((&body["stage"], body["backoffUntil"].is_string()), (&"backoff".into(), true));
    let snapshot = core.scheduler.publish(core.now);
    let counts = snapshot.queue.counts();
    assert_eq!((counts.backoff, counts.error_backoff), (1, 1));
    core.run_after(SECOND);
    let order = core.orders().remove(0);
    core.report(&order, BindOutcome::Bound);
    assert_eq!(wakeups(&mut core, &fresh)["stage"], "bound");
}

#[test]
fn other_reasons_to_try_again_are_told() {
    let mut core = core_with(&[node("a", 1000)]);
    let p = pod("p", 5000);
    core.attempt(&p);
    core.wait(300 * SECOND);
    assert_eq!(wakeups(&mut core, &p)["wokenBy"]["event"], "UnschedulableTimeout");
    core.run();
    core.see(&pod("p", 4000));
    let body = wakeups(&mut core, &p);
    assert_eq!(lines(&serde_json::json!([body["wokenBy"]])), ["Pod/Update ns/p  woke"]);
}

#[test]
fn what_does_not_help_does_not_wake() {
    let full = || vec![node("a", 1000)];
    let large = || vec![tainted("a", 9000)];
    let labelled = |n: Node| Node { labels: Labels::new([("zone".into(), "x".into())]), ..n };
    let elsewhere = || {
        let mut p = pod("p", 500);
        Arc::make_mut(&mut p.spec).affinity.selector = [("zone".into(), "y".into())].into();
        p
    };
    let cases: Vec<(&str, Vec<Node>, Pod, Input)> = vec![
        ("a small node", full(), pod("p", 500), Input::NodeApplied(Arc::new(node("b", 400)))),
        ("less than before", full(), pod("p", 500), Input::NodeApplied(Arc::new(node("a", 900)))),
        (
            "a label that nobody wants",
            full(),
            pod("p", 500),
            Input::NodeApplied(Arc::new(labelled(node("a", 1000)))),
        ),
        ("another label", large(), elsewhere(), Input::NodeApplied(Arc::new(labelled(tainted("a", 9000))))),
        ("a pod on a tainted node", large(), pod("p", 500), Input::PodDeleted(pod("other", 1).key)),
        ("too small a pod that goes", full(), pod("p", 500), Input::PodDeleted(pod("other", 1).key)),
        ("a pod that comes", full(), pod("p", 500), Input::PodApplied(Arc::new(on(&pod("new", 1), "a")))),
        ("a node that goes", full(), pod("p", 500), Input::NodeDeleted("a".into())),
        ("the same node", full(), pod("p", 500), Input::NodeApplied(Arc::new(node("a", 1000)))),
    ];
    for (what, nodes, p, event) in cases {
        let mut core = core_with(&nodes);
        core.see(&on(&pod("most", 900), "a"));
        core.see(&on(&pod("other", 50), "a"));
        core.attempt(&p);
        assert_eq!(core.queued(&p), Some(QueueStage::Unschedulable), "{what}");
        core.apply(event);
        assert_eq!(core.queued(&p), Some(QueueStage::Unschedulable), "{what}");
    }
}

#[test]
fn a_pod_that_nothing_refused_is_tried_when_anything_comes() {
    let mut core = core();
    let p = pod("p", 100);
    core.attempt(&p);
    assert_eq!(wakeups(&mut core, &p)["refusedBy"], serde_json::json!([]));
    core.see_node(&node("a", 1000));
    core.run();
    assert_eq!(core.node_of(&p).as_deref(), Some("a"));
}
