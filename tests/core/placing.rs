//! One pod: placed, ordered, and bound or not.

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{BindOutcome, EffectReport};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use pellucid_api::reason::ReasonCode;

use crate::common::made::{SECOND, core, core_with, node, on, placed, pod, refused, sampling};

#[test]
fn a_pod_is_placed_and_its_binding_ordered_once() {
    let (mut core, p, order) = placed();
    assert_eq!((order.node.as_str(), &order.pod.key, &order.pod.uid), ("a", &p.key, &p.uid));
    assert_eq!((core.stage(&p), core.queued(&p)), (Some(Stage::Permitted), Some(QueueStage::InFlight)));
    assert_eq!((core.taken("a"), core.scheduler.n_in_flight()), (300, 1));
    assert!(core.run().is_empty() && core.orders().is_empty());
    // An update of the object does not order its Binding again.
    core.see(&p);
    assert!(core.run().is_empty());
    assert_eq!(core.stage(&p), Some(Stage::Permitted));
}

#[test]
fn bound_by_report_then_watch_and_the_other_way_round() {
    for report_first in [true, false] {
        let (mut core, p, order) = placed();
        let sent = EffectReport::BindSent { id: order.id, uid: p.uid.clone() };
        core.apply(Input::Report(sent.clone()));
        assert_eq!(core.stage(&p), Some(Stage::Binding));
        if report_first {
            core.report(&order, BindOutcome::Bound);
            // The watch may still deliver the older version.
            core.see(&p);
            assert_eq!(core.stage(&p), Some(Stage::Bound));
            core.see(&on(&p, "a"));
        } else {
            core.see(&on(&p, "a"));
            core.report(&order, BindOutcome::Bound);
        }
        // A late report changes nothing.
        core.apply(Input::Report(sent));
        assert_eq!((core.stage(&p), core.queued(&p)), (Some(Stage::Bound), None));
        assert_eq!(core.told().1, ["Scheduled"]);
        assert_eq!((core.scheduler.n_in_flight(), core.taken("a")), (0, 300));
        let snapshot = core.scheduler.publish(core.now);
        assert_eq!(
            (snapshot.counters.bound, snapshot.counters.placed, snapshot.counters.bind_failures),
            (1, 1, 0)
        );
    }
}

#[test]
fn a_refused_binding_frees_the_room_and_is_tried_again() {
    let (mut core, p, order) = placed();
    core.report(&order, refused());
    assert_eq!((core.stage(&p), core.queued(&p)), (Some(Stage::Pending), Some(QueueStage::ErrorBackoff)));
    assert_eq!((core.taken("a"), core.scheduler.n_in_flight()), (0, 0));
    assert_eq!(core.told(), (vec!["SchedulerError"], vec!["FailedScheduling"]));
    let id = core.id(&p).expect("it is known");
    let verdict = core.scheduler.verdict(id).expect("it has a verdict");
    let Outcome::Refused(refusal) = &verdict.outcome else { panic!("{verdict:?}") };
    assert!(refusal.message().contains("etcd is away"), "{}", refusal.message());
    let cause = refusal.pod_cause.as_ref().expect("a cause");
    assert_eq!(cause.reasons[0].code, ReasonCode::BindRefused);
    assert_eq!(core.scheduler.next_deadline(), Some(SECOND));
    core.wait(SECOND);
    assert_eq!(core.run().len(), 1);
    assert_eq!(core.orders().len(), 1);
    // The first order is closed: its late outcome does not affect the second.
    core.report(&order, refused());
    assert_eq!(core.stage(&p), Some(Stage::Permitted));
}

#[test]
fn a_refused_binding_lets_another_pod_have_the_room() {
    let mut core = core_with(&[node("a", 1000)]);
    let (p, q) = (pod("p", 800), pod("q", 800));
    let order = core.place(&p);
    core.attempt(&q);
    assert_eq!(core.queued(&q), Some(QueueStage::Unschedulable));
    core.wait(2 * SECOND);
    core.report(&order, refused());
    assert_eq!(core.queued(&q), Some(QueueStage::Active));
    core.run();
    assert_eq!(core.node_of(&q).as_deref(), Some("a"));
}

#[test]
fn a_pod_that_is_gone_frees_its_room_at_once() {
    let (mut core, p, order) = placed();
    core.report(&order, BindOutcome::Gone);
    assert_eq!((core.stage(&p), core.taken("a"), core.scheduler.n_in_flight()), (None, 0, 0));
    core.delete(&p);
    assert_eq!(core.scheduler.queue().units().count(), 0);
    assert_eq!(core.told().1, [""; 0]);
}

#[test]
fn a_pod_that_somebody_else_bound_moves_when_the_watch_says_where() {
    let mut core = core_with(&[node("a", 1000), node("b", 100)]);
    let p = pod("p", 300);
    let order = core.place(&p);
    core.report(&order, BindOutcome::BoundElsewhere { node: "b".into() });
    assert_eq!((core.scheduler.n_in_flight(), core.taken("a")), (0, 300));
    core.see(&on(&p, "b"));
    assert_eq!((core.taken("a"), core.taken("b")), (0, 300));
    assert_eq!(core.stage(&p), Some(Stage::Bound));
    assert_eq!(core.told().1, [""; 0], "it is not ours to announce");
}

#[test]
fn the_watch_brings_another_node_before_the_report() {
    let mut core = core_with(&[node("a", 1000), node("b", 100)]);
    let (p, q) = (pod("p", 800), pod("q", 800));
    let order = core.place(&p);
    core.attempt(&q);
    core.wait(2 * SECOND);
    core.see(&on(&p, "b"));
    assert_eq!((core.taken("a"), core.taken("b"), core.scheduler.n_in_flight()), (0, 800, 0));
    core.run();
    assert_eq!(core.node_of(&q).as_deref(), Some("a"), "the room that was kept is free");
    core.report(&order, BindOutcome::Bound);
    assert_eq!(core.node_of(&p).as_deref(), Some("b"));
}

#[test]
fn a_node_may_go_while_a_pod_is_assumed_on_it() {
    let (mut core, p, order) = placed();
    core.apply(Input::NodeDeleted("a".into()));
    assert_eq!(core.node_of(&p).as_deref(), Some("a"));
    assert_eq!(core.scheduler.cluster().present().len(), 0);
    core.report(&order, refused());
    assert_eq!(core.queued(&p), Some(QueueStage::ErrorBackoff));
    assert!(core.scheduler.cluster().find_node(&"a".into()).is_none(), "nothing keeps its slot");
    core.run_after(SECOND);
    assert_eq!(core.queued(&p), Some(QueueStage::Unschedulable));
    core.see_node(&node("b", 1000));
    core.run_after(4 * SECOND);
    assert_eq!(core.node_of(&p).as_deref(), Some("b"));
}

#[test]
fn a_deleted_pod_ends_its_order() {
    let (mut core, p, order) = placed();
    let mut deleting = p.clone();
    deleting.deleting = true;
    core.see(&deleting);
    assert_eq!((core.stage(&p), core.taken("a"), core.scheduler.n_in_flight()), (None, 0, 0));
    core.report(&order, BindOutcome::Gone);
    assert_eq!(core.scheduler.queue().units().count(), 0);
}

#[test]
fn a_sample_of_nodes_is_looked_at_from_a_start_that_moves_on() {
    let mut core = sampling(50);
    for i in 0..300 {
        core.see_node(&node(&format!("n{i}"), 100_000));
    }
    let mut seen = std::collections::BTreeSet::new();
    for i in 0..8 {
        core.see(&pod(&format!("p{i}"), 5000));
        let step = core.step().expect("a pod waits");
        let Outcome::Placed(placement) = step.verdict.outcome else { panic!("it fits") };
        assert_eq!((placement.feasible, placement.evaluated, placement.total), (150, 150, 300));
        seen.insert(placement.node);
    }
    assert_eq!(seen.len(), 8, "equal nodes take turns");
}

#[test]
fn huge_amounts_stop_nothing() {
    let mut core = core_with(&[node("a", i64::MAX), node("b", 1000)]);
    for (i, amount) in [i64::MAX, i64::MAX, i64::MAX - 1, 1 << 62].into_iter().enumerate() {
        core.see(&on(&pod(&format!("foreign-{i}"), amount), "b"));
        core.see(&pod(&format!("huge-{i}"), amount));
    }
    let p = pod("p", 500);
    core.attempt(&p);
    assert_eq!(core.node_of(&p).as_deref(), Some("a"), "b is overcommitted by others");
    for i in 0..4 {
        core.delete(&pod(&format!("foreign-{i}"), 0));
    }
    assert_eq!(core.taken("b"), 0);
}

#[test]
fn no_nodes_at_all_is_said_so() {
    let mut core = core();
    core.see(&pod("p", 1));
    let step = core.step().expect("a pod waits");
    let Outcome::Refused(refusal) = step.verdict.outcome else { panic!("no node can take it") };
    assert_eq!(&*refusal.message(), "no nodes available to schedule pods");
}
