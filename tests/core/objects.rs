//! Inputs from watches: pods and nodes in every state, lists, and names that are reused.

use std::sync::Arc;

use pellucid::cluster::{Input, Stage};
use pellucid::model::pod::PodPhase;
use pellucid::model::{Name, Node, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;

use crate::common::made::{SECOND, core_with, node, on, placed, pod};
use crate::common::reads::ask;

#[test]
fn pods_of_others_and_static_pods_count_but_are_not_placed() {
    let mut core = core_with(&[node("a", 1000)]);
    let foreign = Pod { scheduler_name: "default-scheduler".into(), ..pod("foreign", 600) };
    core.see(&foreign);
    assert!(core.run().is_empty() && core.stage(&foreign).is_none(), "it waits for another scheduler");
    core.see(&on(&foreign, "a"));
    core.see(&Pod { is_static: true, ..on(&pod("static", 300), "a") });
    assert_eq!(core.taken("a"), 900);
    core.attempt(&pod("p", 200));
    assert_eq!(core.queued(&pod("p", 200)), Some(QueueStage::Unschedulable));
}

#[test]
fn a_pod_that_ends_frees_its_room() {
    let mut core = core_with(&[node("a", 1000)]);
    let running = on(&pod("r", 600), "a");
    core.see(&running);
    core.see(&Pod { phase: PodPhase::Succeeded, ..running.clone() });
    assert_eq!((core.taken("a"), core.stage(&running)), (0, None));
    core.see(&Pod { phase: PodPhase::Failed, ..on(&pod("f", 600), "a") });
    assert_eq!(core.taken("a"), 0);
    // A pod that is being deleted still runs.
    core.see(&Pod { deleting: true, ..running });
    assert_eq!(core.taken("a"), 600);
}

#[test]
fn a_waiting_pod_that_is_being_deleted_leaves() {
    let mut core = core_with(&[node("a", 100)]);
    let p = pod("p", 600);
    core.attempt(&p);
    core.see(&Pod { deleting: true, ..p.clone() });
    assert_eq!((core.stage(&p), core.scheduler.queue().units().count()), (None, 0));
    core.see(&Pod { deleting: true, ..pod("q", 1) });
    assert!(core.run().is_empty());
}

#[test]
fn the_same_name_with_another_uid_is_another_pod() {
    let mut core = core_with(&[node("a", 1000)]);
    let first = pod("p", 5000);
    core.attempt(&first);
    let second = Pod { uid: "second".into(), ..pod("p", 300) };
    core.see(&second);
    let id = core.id(&second).expect("it is known");
    assert!(core.scheduler.verdict(id).is_none(), "the first one's verdict is not its own");
    assert_eq!(core.unit(&second).map(|u| u.attempts), Some(0));
    let order = core.place(&second);
    assert_eq!(&*order.pod.uid, "second");
    core.see(&Pod { uid: "third".into(), ..second.clone() });
    assert_eq!((core.taken("a"), core.scheduler.n_in_flight()), (0, 0), "the second one's place is free");
    core.report(&order, pellucid::model::effect::BindOutcome::Bound);
    assert_eq!(core.stage(&second), Some(Stage::Pending), "the report is about the second one");
}

#[test]
fn a_verdict_goes_with_its_pod() {
    let (mut core, p, order) = placed();
    core.report(&order, pellucid::model::effect::BindOutcome::Bound);
    core.see(&on(&p, "a"));
    core.delete(&p);
    let stranger = on(&pod("stranger", 1), "a");
    core.see(&stranger);
    let id = core.id(&stranger).expect("it is known");
    assert!(core.scheduler.verdict(id).is_none(), "we decided nothing about it");
}

fn lists(nodes: &[Node], pods: &[Pod]) -> [Input; 2] {
    [
        Input::NodesReset { nodes: nodes.iter().cloned().map(Arc::new).collect(), quarantined: vec![] },
        Input::PodsReset { pods: pods.iter().cloned().map(Arc::new).collect(), quarantined: vec![] },
    ]
}

#[test]
fn a_list_is_a_difference() {
    let nodes = [node("a", 1000), node("b", 100)];
    let pods = [on(&pod("r", 600), "a"), pod("w", 5000), pod("p", 300)];
    let mut core = core_with(&nodes);
    for p in &pods {
        core.see(p);
    }
    core.run();
    core.scheduler.take_effects();
    core.wait(2 * SECOND);
    let head = core.scheduler.cluster().changes().head();
    for list in lists(&nodes, &pods) {
        core.apply(list);
    }
    assert_eq!(core.scheduler.cluster().changes().head(), head, "equal objects cause nothing");
    assert!(core.run().is_empty() && core.scheduler.take_effects().is_empty());
    assert_eq!(core.stage(&pods[2]), Some(Stage::Permitted), "the list does not know of our order");

    for list in lists(&nodes[..1], &pods[1..2]) {
        core.apply(list);
    }
    assert_eq!(core.scheduler.cluster().present().len(), 1);
    assert_eq!((core.scheduler.cluster().pods().count(), core.taken("a")), (1, 0));
    assert_eq!(core.scheduler.n_in_flight(), 0);
    assert!(core.scheduler.cluster().find_node(&"b".into()).is_none());
}

#[test]
fn a_node_that_pods_name_before_it_exists_and_after_it_went_is_a_ghost() {
    let mut core = core_with(&[]);
    let running = on(&pod("r", 600), "a");
    core.see(&running);
    assert_eq!((core.taken("a"), core.scheduler.cluster().present().len()), (600, 0));
    core.attempt(&pod("p", 600));
    assert_eq!(core.queued(&pod("p", 600)), Some(QueueStage::Unschedulable));
    core.see_node(&node("a", 1000));
    core.wait(2 * SECOND);
    let steps = core.run();
    let Some(Outcome::Refused(refusal)) = steps.first().map(|s| s.verdict.outcome.clone()) else {
        panic!("400m are left")
    };
    assert_eq!((refusal.groups[0].measures[0].available, refusal.total_nodes), (400, 1));
    core.apply(Input::NodeDeleted("a".into()));
    assert_eq!(core.taken("a"), 600);
    core.delete(&running);
    assert!(core.scheduler.cluster().find_node(&"a".into()).is_none());
    // The slot of the deleted node is reused.
    let slots = core.scheduler.cluster().n_slots();
    core.see_node(&node("b", 1000));
    assert_eq!(core.scheduler.cluster().n_slots(), slots);
}

#[test]
fn a_running_pod_that_another_list_puts_elsewhere_moves() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    core.see(&on(&pod("r", 600), "a"));
    core.see(&on(&pod("r", 600), "b"));
    assert_eq!((core.taken("a"), core.taken("b")), (0, 600));
    core.see(&on(&pod("r", 700), "nowhere"));
    assert_eq!((core.taken("b"), core.taken("nowhere")), (0, 700));
}

#[test]
fn priorities_go_first_and_names_break_the_tie() {
    let mut core = core_with(&[node("a", 1000)]);
    for (name, priority) in [("c", 0), ("b", 0), ("d", 5), ("a", -1)] {
        core.see(&Pod { priority, ..pod(name, 10) });
    }
    let order: Vec<String> = core.run().iter().map(|s| s.pod.key.name.to_string()).collect();
    assert_eq!(order, ["d", "b", "c", "a"]);
}

#[test]
fn pods_cannot_make_columns_and_a_later_offer_counts_what_runs() {
    let mut core = core_with(&[node("n", 31_000)]);
    let mut greedy = on(&pod("greedy", 0), "n");
    let mut spec = (*greedy.spec).clone();
    spec.requests.list.scalars = (0..70_000).map(|i| (Name::new(&format!("x.example/r{i:05}")), 1)).collect();
    greedy.spec = Arc::new(spec);
    core.see(&greedy);
    let columns = core.scheduler.cluster().columns();
    assert_eq!(columns.n_resources(), 4, "a pod made columns");
    assert_eq!(core.taken("n"), 0, "another column was written");

    // A node that offers one of the resources creates its column, which counts the pods already running.
    let mut offering = node("n", 31_000);
    offering.allocatable.scalars = Box::new([(Name::new("x.example/r00007"), 5)]);
    core.see_node(&offering);
    let cluster = core.scheduler.cluster();
    let resource = cluster.columns().find(&Name::new("x.example/r00007")).expect("a column");
    let idx = cluster.find_node(&Name::new("n")).expect("a node");
    assert_eq!(cluster.columns().free(idx, resource), 4);
    core.delete(&greedy);
    assert_eq!(core.scheduler.cluster().columns().free(idx, resource), 5);
}

#[test]
fn a_resource_beyond_the_columns_is_named_on_node_and_pod_and_counts_when_there_is_room() {
    let mut many = node("many", 1000);
    many.allocatable.scalars = (0..1024).map(|i| (Name::new(&format!("x.example/r{i:04}")), 1)).collect();
    let mut cards = node("cards", 1000);
    cards.allocatable.scalars = Box::new([(Name::new("x.example/card"), 8)]);
    let mut core = core_with(&[many.clone(), cards]);
    let mut wanting = pod("wanting", 10);
    let mut spec = (*wanting.spec).clone();
    spec.requests.list.scalars = Box::new([(Name::new("x.example/card"), 2)]);
    wanting.spec = Arc::new(spec);
    core.attempt(&wanting);
    let id = core.id(&wanting).expect("it waits");
    match core.scheduler.verdict(id).expect("it was tried").outcome {
        Outcome::Refused(refusal) => assert!(
            refusal.message().starts_with(
                "0/2 nodes are available: 1 Insufficient x.example/card, 1 node(s) had extended resource left out: \
                 x.example/card (1025 are offered, 1024 are kept)."
            ),
            "{}",
            refusal.message()
        ),
        other => panic!("{other:?}"),
    }
    let body = ask(&mut core, "/apis/v1/nodes");
    let left_out: Vec<_> =
        (0..2).map(|i| (&body["nodes"][i]["name"], &body["nodes"][i]["leftOut"])).collect();
    assert_eq!(left_out[0], (&"cards".into(), &serde_json::json!(["x.example/card"])));
    assert_eq!(left_out[1], (&"many".into(), &serde_json::Value::Null));
    many.allocatable.scalars = Box::default();
    core.see_node(&many);
    core.run_after(60 * SECOND);
    assert_eq!(core.node_of(&wanting).as_deref(), Some("cards"), "it was woken and placed");
}
