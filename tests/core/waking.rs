//! Events that wake a refused pod, and events that do not.

use std::sync::Arc;

use pellucid::cluster::{Input, Stage};
use pellucid::model::selector::{NodeSelectorTerm, Operator, Requirement};
use pellucid::model::taint::{Taint, TaintEffect};
use pellucid::model::{Name, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;

use crate::common::driver::{Core, default_profile, settings};
use crate::common::made::{SECOND, core_with, node, on, pod, unreadable};

#[test]
fn a_node_wakes_only_pods_that_would_fit_it() {
    let mut core = core_with(&[node("small", 100)]);
    let (big, huge) = (pod("big", 900), pod("huge", 5000));
    core.see(&big);
    core.attempt(&huge);
    core.wait(2 * SECOND);
    core.see_node(&node("middle", 1000));
    assert_eq!(core.queued(&big), Some(QueueStage::Active));
    assert_eq!(core.queued(&huge), Some(QueueStage::Unschedulable));
}

#[test]
fn a_pod_that_goes_wakes_those_who_lack_room_and_nobody_else() {
    let mut tainted = node("tainted", 1000);
    let taint = Taint { key: "k".into(), value: Name::default(), effect: TaintEffect::NoSchedule };
    tainted.taints = [taint].into();
    let mut core = core_with(&[tainted.clone()]);
    let p = pod("p", 100);
    core.see(&p);
    core.attempt(&on(&pod("other", 100), "tainted"));
    core.wait(2 * SECOND);
    core.delete(&pod("other", 100));
    assert_eq!(core.queued(&p), Some(QueueStage::Unschedulable), "room is not what it lacks");
    // The taint is removed.
    tainted.taints = [].into();
    core.see_node(&tainted);
    assert_eq!(core.queued(&p), Some(QueueStage::Active));
}

#[test]
fn an_event_within_the_backoff_leads_to_backoff() {
    let mut core = core_with(&[node("a", 100)]);
    let p = pod("p", 900);
    core.attempt(&p);
    core.see_node(&node("b", 1000));
    assert_eq!(core.queued(&p), Some(QueueStage::Backoff));
    core.run_after(SECOND);
    assert_eq!(core.node_of(&p).as_deref(), Some("b"));
}

#[test]
fn after_five_minutes_a_pod_is_tried_in_any_case() {
    let mut core = core_with(&[node("a", 100)]);
    let p = pod("p", 900);
    core.attempt(&p);
    assert_eq!(core.scheduler.next_deadline(), Some(300 * SECOND));
    core.wait(300 * SECOND);
    assert_eq!(core.run().len(), 1);
    assert_eq!(core.unit(&p).map(|u| u.attempts), Some(2));
}

#[test]
fn a_smaller_request_of_a_running_pod_makes_room() {
    let mut core = core_with(&[node("a", 1000)]);
    let (old, p) = (on(&pod("old", 800), "a"), pod("p", 500));
    core.see(&old);
    core.attempt(&p);
    core.wait(2 * SECOND);
    // Resized in place, first upwards.
    core.see(&on(&pod("old", 900), "a"));
    assert_eq!((core.taken("a"), core.queued(&p)), (900, Some(QueueStage::Unschedulable)));
    core.see(&on(&pod("old", 200), "a"));
    assert_eq!((core.taken("a"), core.queued(&p)), (200, Some(QueueStage::Active)));
    core.run();
    assert_eq!(core.node_of(&p).as_deref(), Some("a"));
}

#[test]
fn a_changed_request_of_a_waiting_pod_is_tried() {
    let mut core = core_with(&[node("a", 1000)]);
    core.attempt(&pod("p", 5000));
    core.wait(2 * SECOND);
    core.attempt(&pod("p", 500));
    assert_eq!(core.node_of(&pod("p", 500)).as_deref(), Some("a"));
}

#[test]
fn gates_hold_a_pod_until_they_are_gone() {
    let mut core = core_with(&[node("a", 1000)]);
    let p = pod("p", 100);
    let gated = Pod { gates: [Name::new("example.com/quota")].into(), ..p.clone() };
    core.see(&gated);
    assert_eq!(core.queued(&p), Some(QueueStage::Gated));
    assert_eq!(core.told(), (vec!["SchedulingGated"], vec!["FailedScheduling"]));
    // Applying the same object again writes no second event.
    core.see(&gated);
    assert_eq!(core.told().1, [""; 0]);
    assert!(core.run().is_empty());
    core.wait(400 * SECOND);
    assert!(core.run().is_empty());
    core.attempt(&p);
    assert_eq!(core.stage(&p), Some(Stage::Permitted));
    let verdict = core.scheduler.verdict(core.id(&p).expect("known")).expect("decided");
    assert!(matches!(verdict.outcome, pellucid::recording::Outcome::Placed(_)));
}

#[test]
fn a_pod_that_cannot_be_read_is_not_placed_but_keeps_its_room_when_it_runs() {
    let mut core = core_with(&[node("a", 1000)]);
    let (waiting, running, unknown) = (pod("w", 100), on(&pod("r", 300), "a"), pod("u", 1));
    core.see(&waiting);
    core.see(&running);
    for p in [&waiting, &running, &unknown] {
        core.apply(Input::Quarantined(unreadable(p)));
    }
    assert_eq!(core.scheduler.cluster().quarantined().count(), 3);
    assert_eq!((core.stage(&waiting), core.stage(&running)), (None, Some(Stage::Bound)));
    assert_eq!((core.taken("a"), core.scheduler.queue().units().count()), (300, 0));
    assert_eq!(core.told(), (vec!["Unschedulable"; 3], vec!["FailedScheduling"; 3]));
    core.see(&waiting);
    core.delete(&running);
    assert_eq!(core.scheduler.cluster().quarantined().count(), 1);
    core.run();
    assert_eq!((core.stage(&waiting), core.taken("a")), (Some(Stage::Permitted), 100));
    // An assumed pod releases its place.
    core.apply(Input::Quarantined(unreadable(&waiting)));
    assert_eq!((core.taken("a"), core.scheduler.n_in_flight()), (0, 0));
}

#[test]
fn shadow_mode_writes_nothing_and_counts() {
    let mut made = settings(default_profile(crate::common::cluster::SCHEDULER));
    made.shadow_of = Some("theirs".into());
    let mut core = Core::new(made);
    core.see_node(&node("a", 1000));
    let theirs = |name: &str, cpu| Pod { scheduler_name: "theirs".into(), ..pod(name, cpu) };
    core.see(&pod("ours", 100));
    assert!(core.run().is_empty(), "pods of our own name are not ours in shadow mode");

    let (agreed, other, too_big, early, slow) =
        (theirs("p1", 100), theirs("p2", 100), theirs("p3", 5000), theirs("p4", 1), theirs("p5", 1));
    for p in [&agreed, &other, &too_big, &slow] {
        core.see(p);
    }
    core.run();
    core.see(&early);
    core.see(&on(&agreed, "a"));
    core.see(&on(&other, "b"));
    core.see(&on(&too_big, "a"));
    core.see(&on(&early, "a"));
    assert_eq!(core.scheduler.n_in_flight(), 1);
    core.wait(30 * SECOND);
    assert_eq!(core.scheduler.n_in_flight(), 0);
    let tally = core.scheduler.publish(core.now).shadow.expect("shadow mode");
    assert_eq!((tally.agreed, tally.disagreed, tally.refused_by_us), (1, 1, 1));
    assert_eq!((tally.not_compared, tally.expired), (1, 1));
    assert!(core.scheduler.take_effects().is_empty());
}

/// Returns a pod for one of these nodes, as a DaemonSet's pods are for one.
fn for_nodes(pod: &Pod, names: &[&str]) -> Pod {
    let term = |name: &&str| {
        let name = [Name::new(name)].into();
        let named = Requirement { key: "metadata.name".into(), operator: Operator::In, values: name };
        NodeSelectorTerm { fields: [named].into(), ..NodeSelectorTerm::default() }
    };
    let mut pod = pod.clone();
    Arc::make_mut(&mut pod.spec).affinity.required = Some(names.iter().map(term).collect());
    pod
}

#[test]
fn a_pod_for_named_nodes_counts_the_others_and_waits_for_those_that_are_missing() {
    let mut core = core_with(&["a", "b", "c"].map(|name| node(name, 1000)));
    let of_daemon = for_nodes(&pod("p", 100), &["gone"]);
    core.attempt(&of_daemon);
    let message = |core: &Core, pod: &Pod| {
        let verdict = core.id(pod).and_then(|id| core.scheduler.verdict(id)).expect("a verdict");
        let Outcome::Refused(refusal) = &verdict.outcome else { panic!("{verdict:?}") };
        refusal.message().to_string()
    };
    let helpless = "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    let said = "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    assert_eq!(message(&core, &of_daemon), format!("{said} {helpless}"));
    let choosy = for_nodes(&pod("q", 5000), &["a", "gone"]);
    core.attempt(&choosy);
    let said =
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    assert_eq!(message(&core, &choosy), format!("{said} {helpless}"));
    core.wait(2 * SECOND);
    core.see_node(&node("other", 9000));
    assert_eq!(core.queued(&of_daemon), Some(QueueStage::Unschedulable));
    core.see_node(&node("gone", 9000));
    core.run();
    assert_eq!([&of_daemon, &choosy].map(|pod| core.node_of(pod).unwrap()), ["gone", "gone"]);
}
