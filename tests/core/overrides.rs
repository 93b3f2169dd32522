//! Node overrides: a plugin keeps the room of labelled pods for one pod, which sees their nodes without them, through the
//! cycle and in what is asked about it.

use std::sync::Arc;

use pellucid::cycle::attempt::search::Scored;
use pellucid::cycle::what_if::exhaustive::masks_of_pod_on;
use pellucid::cycle::what_if::question::{Answer, NodeQuestion, Question};
use pellucid::framework::profile::Profile;
use pellucid::framework::{
    Cause, NodeOverride, NodeOverrides, Plugin, Registration, Reservation, Reserve, View, points,
};
use pellucid::model::selector::LabelSelector;
use pellucid::model::{Name, Node, NodeIdx, Pod, PodId, PodSpec};
use pellucid::plugins::registry;
use pellucid::recording::{Outcome, Refusal};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::cluster::{SCHEDULER, config};
use crate::common::driver::{Core, settings};
use crate::common::made::{in_gang, labelled, node, on, pod, ranked};

const NAME: &str = "KeptRoom";
const KEPT_FOR: &str = "kept-for";

/// Keeps the room of pods with label `kept-for` for the pod that the label names. Its Reserve gives nothing up, so that
/// what a decision saw can be told from what it left behind.
struct KeptRoom;

impl NodeOverrides for KeptRoom {
    fn overrides(&self, view: View<'_>, _spec: &PodSpec, pod: &Pod) -> Vec<NodeOverride> {
        let kept = LabelSelector::of_pairs(&[(KEPT_FOR.into(), Name::new(&pod.key.name))]);
        let cluster = view.cluster();
        let is_kept = |id: &PodId| cluster.pod(*id).is_some_and(|record| kept.matches(&record.pod.labels));
        let seen = |node: &NodeIdx| {
            let pods = cluster.slot(*node).pods.iter().copied();
            NodeOverride { node: *node, absent: pods.filter(is_kept).collect() }
        };
        view.nodes().iter().map(seen).collect()
    }
}

impl Reserve for KeptRoom {
    fn reserve(&self, _view: View<'_>, _pod: &Pod, _node: NodeIdx) -> Result<Option<Reservation>, Cause> {
        Ok(None)
    }
}

impl Plugin for KeptRoom {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { reserve, node_overrides }
}

fn profile() -> Profile {
    let mut registry = registry();
    let summary = "Keeps room for single pods";
    registry.push(Box::new(Registration::without_args(NAME, summary, || KeptRoom)));
    let mut profile =
        pellucid::config::default(&registry).expect("the defaults are valid").profiles.remove(0);
    profile.scheduler_name = SCHEDULER.into();
    profile
}

fn core_of(nodes: &[Node]) -> Core {
    let mut core = Core::new(settings(profile()));
    nodes.iter().for_each(|node| core.see_node(node));
    core
}

/// Makes a running pod that takes room on a node for another one. Nobody here may evict it.
fn kept(name: &str, milli_cpu: i64, on_node: &str, kept_for: &str) -> Pod {
    on(&labelled(ranked(name, milli_cpu, 10), KEPT_FOR, kept_for), on_node)
}

fn refusal(core: &Core, pod: &Pod) -> Arc<Refusal> {
    let id = core.id(pod).expect("it is known");
    match core.scheduler.verdict(id).expect("it was tried").outcome {
        Outcome::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Returns the greatest amount that the only group of a refusal says is left, and its node.
fn left(refusal: &Refusal) -> (i64, String) {
    let [group] = &refusal.groups[..] else { panic!("{refusal:?}") };
    assert_eq!(group.count + refusal.not_evaluated, refusal.total_nodes);
    let [measure] = &group.measures[..] else { panic!("{group:?}") };
    (measure.available, measure.best_node.to_string())
}

fn scores(core: &Core, pod: &Pod) -> Vec<Scored> {
    let (profile, id) = (profile(), core.id(pod).expect("it is known"));
    let mut question = Question::ask(core.scheduler.cluster(), &profile, id).expect("it is known");
    question.scores()
}

#[test]
fn kept_room_is_free_for_the_pod_that_it_is_kept_for_alone() {
    let mut core = core_of(&[node("a", 1000)]);
    core.see(&kept("kept", 800, "a", "p"));
    let [q, p] = ["q", "p"].map(|name| pod(name, 500));
    core.attempt(&q);
    assert_eq!(core.node_of(&q), None);
    core.attempt(&p);
    assert_eq!(core.node_of(&p).as_deref(), Some("a"));
    assert_eq!(core.taken("a"), 1300, "the plugin gives nothing up");
}

#[test]
fn a_node_is_scored_without_the_absent_pods() {
    let nodes = [node("a", 1000), node("b", 1000)];
    let (mut core, mut without) = (core_of(&nodes), core_of(&nodes));
    let [p, q] = ["p", "q"].map(|name| pod(name, 100));
    for core in [&mut core, &mut without] {
        core.see(&on(&ranked("other", 300, 10), "b"));
        core.see(&p);
    }
    core.see(&kept("kept", 800, "a", "p"));
    assert_eq!(scores(&core, &p), scores(&without, &p));
    core.run();
    assert_eq!(core.node_of(&p).as_deref(), Some("a"));
    core.attempt(&q);
    assert_eq!(core.node_of(&q).as_deref(), Some("b"));
}

#[test]
fn what_one_pod_sees_is_not_kept_for_equal_pods() {
    let mut core = core_of(&[node("a", 1000), node("b", 1000)]);
    core.see(&kept("kept", 800, "a", "p"));
    core.see(&on(&ranked("other", 900, 10), "b"));
    let [q, p, r] = ["q", "p", "r"].map(|name| pod(name, 1100));
    for pod in [&q, &p, &r] {
        core.attempt(pod);
    }
    assert_eq!(left(&refusal(&core, &q)), (200, "a".to_owned()));
    assert_eq!(left(&refusal(&core, &p)), (1000, "a".to_owned()));
    assert_eq!(left(&refusal(&core, &r)), (200, "a".to_owned()));
}

#[test]
fn numbers_of_other_nodes_stay_where_they_are_nearer() {
    let mut core = core_of(&[node("a", 1000), node("b", 1000)]);
    core.see(&kept("kept", 300, "a", "p"));
    core.see(&on(&ranked("x", 700, 10), "a"));
    core.see(&on(&ranked("y", 600, 10), "b"));
    let p = pod("p", 900);
    core.attempt(&p);
    assert_eq!(left(&refusal(&core, &p)), (400, "b".to_owned()));
}

#[test]
fn nominated_pods_count_beside_the_room_that_is_kept() {
    for (milli_cpu, fits) in [(400, true), (600, false)] {
        let mut core = core_of(&[node("a", 1000)]);
        core.see(&kept("kept", 800, "a", "p"));
        core.see(&Pod { nominated_node: Some("a".into()), ..ranked("nominee", 500, 10) });
        let p = pod("p", milli_cpu);
        core.see(&p);
        let (profile, id) = (profile(), core.id(&p).expect("it is known"));
        let cluster = core.scheduler.cluster();
        let question = Question::ask(cluster, &profile, id).expect("it is known");
        assert_eq!(matches!(question.answer(cluster.present()[0]), Answer::Takes), fits, "{milli_cpu}");
    }
}

#[test]
fn every_question_about_the_pod_gets_the_same_answer() {
    let mut core = core_of(&[node("a", 1000)]);
    core.see(&kept("kept", 800, "a", "p"));
    let [q, p] = ["q", "p"].map(|name| pod(name, 500));
    core.see(&q);
    core.see(&p);
    let (profile, mut copy) = (profile(), core.scheduler.cluster().fork());
    let nodes = copy.present().to_vec();
    let mut of_node = NodeQuestion::new(core.scheduler.cluster(), nodes[0]);
    for (pod, fits) in [(&q, false), (&p, true), (&q, false)] {
        let id = core.id(pod).expect("it is known");
        let question = Question::ask(core.scheduler.cluster(), &profile, id).expect("it is known");
        let takes = |answer: Answer| matches!(answer, Answer::Takes);
        assert_eq!(takes(question.answer(nodes[0])), fits, "{}", pod.key);
        assert_eq!(takes(of_node.ask((0, &profile), id).expect("it is known")), fits, "{}", pod.key);
        let masks = masks_of_pod_on(&mut copy, &profile, (id, &pod.spec), &nodes);
        assert_eq!(masks.of(nodes[0]) == 0 && masks.pod.is_none(), fits, "{}", pod.key);
    }
}

#[test]
fn equal_members_of_a_gang_may_see_different_nodes() {
    let mut core = core_of(&[node("a", 1000)]);
    core.see(&kept("kept", 800, "a", "q"));
    let members = ["p", "q", "r"].map(|name| in_gang(pod(name, 500), "g", 1));
    members.iter().for_each(|member| core.see(member));
    core.run();
    let nodes = members.map(|member| core.node_of(&member));
    assert_eq!(nodes, [None, Some("a".to_owned()), None]);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_decision_is_that_of_a_state_in_which_the_absent_pods_are_gone(
        nodes in vec(200..1000i64, 1..5),
        others in vec((0..5usize, 50..400i64), 0..8),
        rooms in vec((0..5usize, 50..600i64), 1..5),
        wanted in 50..900i64,
    ) {
        let decided = |is_kept: bool| {
            let all = nodes.iter().enumerate().map(|(i, milli_cpu)| node(&format!("n{i}"), *milli_cpu));
            let mut core = core_of(&all.collect::<Vec<Node>>());
            for (i, (at, milli_cpu)) in others.iter().enumerate() {
                let other = ranked(&format!("other{i}"), *milli_cpu, 10);
                core.see(&on(&other, &format!("n{}", at % nodes.len())));
            }
            for (i, (at, milli_cpu)) in rooms.iter().enumerate().filter(|_| is_kept) {
                core.see(&kept(&format!("kept{i}"), *milli_cpu, &format!("n{}", at % nodes.len()), "p"));
            }
            let p = pod("p", wanted);
            core.attempt(&p);
            let id = core.id(&p).expect("it is known");
            match core.scheduler.verdict(id).expect("it was tried").outcome {
                Outcome::Placed(placement) => format!("{placement:?}"),
                Outcome::Refused(refusal) => format!("{:?}", refusal.groups),
                other => panic!("{other:?}"),
            }
        };
        prop_assert_eq!(decided(true), decided(false));
    }
}
