//! Failures between a nomination and a Binding, one case each. `tests/simulation` tries them in all orders; it
//! found most of these cases.

use std::sync::Arc;

use pellucid::cluster::preemptions::End;
use pellucid::model::effect::{BindOutcome, EvictOutcome};
use pellucid::model::pod::{HostPort, PodPhase, Protocol};
use pellucid::model::selector::{Labels, NodeAffinity};
use pellucid::model::{Node, Pod};

use crate::common::made::{SECOND, core_with, node, on, pod, ranked, refused};
use crate::common::storage::using;

fn nominated_to(node: &str, pod: Pod) -> Pod {
    Pod { nominated_node: Some(node.into()), ..pod }
}

fn named(name: &str, other: Pod) -> Pod {
    Pod { key: pod(name, 0).key, uid: format!("uid-{name}").into(), ..other }
}

/// Makes a node with a label that no other node has.
fn labelled(name: &str, milli_cpu: i64) -> Node {
    Node { labels: Labels::new([("is".into(), name.into())]), ..node(name, milli_cpu) }
}

fn only_on(name: &str, mut pod: Pod) -> Pod {
    let selector = [("is".into(), name.into())].into();
    Arc::make_mut(&mut pod.spec).affinity = NodeAffinity { selector, ..NodeAffinity::default() };
    pod
}

#[test]
fn pods_of_one_priority_wait_for_one_victim_together() {
    let mut core = core_with(&[node("a", 1000)]);
    let (low, one, two) = (ranked("low", 1000, 0), ranked("one", 400, 9), ranked("two", 400, 9));
    core.see(&on(&low, "a"));
    core.see(&one);
    let first = core.plan();
    assert_eq!(first.evictions.len(), 1);
    core.see(&two);
    assert!(core.plan().evictions.is_empty(), "its eviction is under way");
    let (one_id, two_id) = (core.id(&one).expect("it waits"), core.id(&two).expect("it waits"));
    let victim = core.id(&low).expect("it is there");
    let book = core.scheduler.cluster().preemptions();
    assert_eq!(book.waiting_for(victim), [one_id, two_id]);
    core.delete(&low);
    assert_eq!(core.plan().bindings.len(), 2, "both are tried at once");
}

#[test]
fn both_hear_that_the_eviction_was_refused_and_one_orders_it_anew() {
    let mut core = core_with(&[node("a", 1000)]);
    core.see(&on(&ranked("low", 1000, 0), "a"));
    core.see(&ranked("one", 400, 9));
    let first = core.plan();
    core.see(&ranked("two", 400, 9));
    core.plan();
    let refusal = EvictOutcome::Refused { status: 500, message: "etcd is away".into() };
    core.evicted(&first.evictions[0], refusal);
    core.wait(2 * SECOND);
    let again = core.plan();
    assert_eq!(again.evictions.len(), 1, "once, not twice");
    assert_eq!(core.scheduler.n_unsettled(), 1);
    core.evicted(&again.evictions[0], EvictOutcome::Gone);
    assert_eq!(core.scheduler.n_unsettled(), 0);
}

#[test]
fn a_pod_that_is_refused_as_a_whole_is_not_placed_where_it_is_nominated() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    let lost = using(nominated_to("a", ranked("lost", 100, 5)), "not-there");
    core.see(&lost);
    assert!(core.plan().bindings.is_empty());
    // Nor do nominations of other pods matter.
    let gates = ["example.com/wait".into()].into();
    core.see(&Pod { gates, ..nominated_to("b", ranked("other", 950, 7)) });
    let too = named("lost-too", Pod { nominated_node: None, ..lost });
    core.see(&too);
    assert!(core.plan().bindings.is_empty());
    assert!(core.unit(&too).is_some_and(|unit| unit.attempts == 1));
}

#[test]
fn room_kept_for_a_nominee_that_goes_elsewhere_is_free() {
    let mut core = core_with(&[labelled("a", 1000)]);
    core.see(&on(&ranked("there", 500, 9), "a"));
    // The nominated pod may not evict, so nothing takes its nomination.
    let nominee = Pod { never_preempts: true, ..ranked("nominee", 800, 5) };
    core.attempt(&nominated_to("a", nominee));
    core.see_node(&labelled("b", 1000));
    let kept_out = only_on("a", ranked("kept-out", 400, 5));
    core.see(&kept_out);
    core.step();
    assert_eq!(core.node_of(&kept_out), None, "the nominee comes first");
    core.run_after(2 * SECOND);
    assert_eq!(core.node_of(&pod("nominee", 0)).as_deref(), Some("b"));
    core.run_after(10 * SECOND);
    assert_eq!(core.node_of(&kept_out).as_deref(), Some("a"));
}

#[test]
fn whoever_waits_behind_the_victims_of_others_hears_when_they_are_gone() {
    let mut core = core_with(&[node("a", 1000)]);
    // It lacks a port, which the terminating pod does not use.
    let port = HostPort { protocol: Protocol::Tcp, ip: "0.0.0.0".into(), port: 80 };
    let with_port = |mut pod: Pod| {
        Arc::make_mut(&mut pod.spec).host_ports = [port.clone()].into();
        pod
    };
    let dying = Pod { deleting: true, is_preempted: true, ..on(&ranked("dying", 100, 0), "a") };
    core.see(&dying);
    core.see(&with_port(on(&ranked("has-port", 50, 9), "a")));
    core.see(&nominated_to("a", with_port(ranked("high", 50, 9))));
    assert_eq!(core.plan().nominations(), [], "it waits for the one that is on its way");
    core.wait(2 * SECOND);
    core.delete(&dying);
    assert_eq!(core.plan().nominations(), [("high".to_owned(), None)], "that did not help");
}

#[test]
fn a_lost_write_of_a_nomination_is_made_up_for() {
    let mut core = core_with(&[node("a", 1000)]);
    let high = ranked("high", 800, 9);
    core.see(&on(&ranked("low", 800, 0), "a"));
    core.see(&high);
    assert_eq!(core.plan().nominations(), [("high".to_owned(), Some("a".into()))]);
    core.see(&nominated_to("a", high.clone()));
    // The room of its victim goes to another pod, and the write that clears the nomination is lost.
    core.delete(&ranked("low", 800, 0));
    core.see(&on(&ranked("equal", 800, 9), "a"));
    assert_eq!(core.plan().nominations(), [("high".to_owned(), None)]);
    core.wait(301 * SECOND);
    assert_eq!(core.plan().nominations(), [("high".to_owned(), None)], "said again");
    core.see(&high);
    core.wait(601 * SECOND);
    assert_eq!(core.plan().nominations(), [], "and not without need");
}

#[test]
fn a_nomination_that_was_written_after_the_binding_is_taken_back() {
    let mut core = core_with(&[node("a", 1000)]);
    let late = nominated_to("a", on(&ranked("late", 100, 5), "a"));
    core.see(&late);
    assert_eq!(core.ordered().nominations(), [("late".to_owned(), None)]);
    core.see(&Pod { phase: PodPhase::Succeeded, ..late.clone() });
    core.see(&Pod { scheduler_name: "somebody-else".into(), ..late });
    assert_eq!(core.ordered().nominations(), [], "what has ended, and what is not ours, stays as it is");
}

#[test]
fn a_preemptor_that_others_bind_elsewhere_leaves_nothing_open() {
    let mut core = core_with(&[node("a", 1000)]);
    let (low, high) = (ranked("low", 800, 0), ranked("high", 800, 9));
    core.see(&on(&low, "a"));
    core.attempt(&high);
    core.delete(&low);
    let order = core.plan().bindings.remove(0);
    core.report(&order, BindOutcome::BoundElsewhere { node: "b".into() });
    core.see(&on(&high, "b"));
    let open = core.scheduler.cluster().preemptions().open().count();
    assert_eq!((open, core.wasted(End::PlacedElsewhere)), (0, 1));
    assert_eq!(core.scheduler.n_in_flight(), 0);
}

#[test]
fn a_refused_binding_gives_the_room_back_to_a_nominee() {
    let mut core = core_with(&[node("a", 1000)]);
    let (low, high) = (ranked("low", 800, 0), ranked("high", 800, 9));
    core.see(&on(&low, "a"));
    core.attempt(&high);
    core.see(&nominated_to("a", high.clone()));
    core.delete(&low);
    let order = core.plan().bindings.remove(0);
    core.report(&order, refused());
    assert_eq!(core.taken("a"), 0);
    assert_eq!(
        core.ordered().nominations(),
        [("high".to_owned(), None)],
        "nothing is promised to it any more"
    );
    core.wait(2 * SECOND);
    assert_eq!(core.plan().bindings.len(), 1);
}

#[test]
fn a_refused_binding_gives_the_room_to_whoever_it_kept_out() {
    let mut core = core_with(&[node("a", 1000)]);
    let (first, second) = (pod("first", 800), pod("second", 800));
    let order = core.place(&first);
    core.attempt(&second);
    core.wait(5 * SECOND);
    assert_eq!(core.run().len(), 0, "nothing woke it");
    core.report(&order, refused());
    core.run();
    assert_eq!(core.node_of(&second).as_deref(), Some("a"));
}

#[test]
fn room_kept_for_a_nominee_that_evicts_elsewhere_is_free() {
    let mut core = core_with(&[labelled("a", 1000), labelled("b", 1000)]);
    core.see(&on(&ranked("there", 400, 20), "a"));
    core.see(&on(&ranked("victim", 800, 0), "b"));
    let nominee = nominated_to("a", ranked("nominee", 800, 9));
    let gated = Pod { gates: ["example.com/wait".into()].into(), ..nominee.clone() };
    core.see(&gated);
    let kept_out = only_on("a", ranked("kept-out", 400, 5));
    core.attempt(&kept_out);
    assert_eq!(core.node_of(&kept_out), None, "the nominee comes first");
    core.see(&nominee);
    core.step();
    core.run_after(2 * SECOND);
    assert_eq!(core.node_of(&kept_out).as_deref(), Some("a"));
}
