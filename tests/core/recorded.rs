//! Entries of the flight recorder about a pod, one per change.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::Pod;
use pellucid::model::effect::BindOutcome;
use pellucid::model::pod::PodPhase;

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, on, placed, pod, refused, unreadable};

/// Returns kind, node and count of each entry about a pod.
fn told(core: &mut Core, pod: &Pod) -> Vec<(String, String, u32)> {
    let snapshot = core.scheduler.publish(core.now);
    let key = (&*pod.key.namespace, &*pod.key.name);
    let names = snapshot.flight.names(0, &snapshot.cluster);
    let entries = snapshot.flight.since(0).filter(|(chunk, entry)| names.subject(chunk, entry) == key);
    entries.map(|(c, e)| (c.event(&e).kind().to_owned(), names.node(c, &e).to_owned(), c.count(&e))).collect()
}

#[track_caller]
fn check(core: &mut Core, pod: &Pod, expected: &[(&str, &str)]) {
    let told = told(core, pod);
    let told: Vec<(&str, &str)> = told.iter().map(|(kind, node, _)| (&**kind, &**node)).collect();
    assert_eq!(told, expected);
}

#[test]
fn bound_deleted_and_made_anew() {
    let (mut core, p, order) = placed();
    core.report(&order, BindOutcome::Bound);
    core.see(&on(&p, "a"));
    core.delete(&p);
    let way = [("Added", ""), ("Placed", "a"), ("Bound", "a"), ("Deleted", "a")];
    check(&mut core, &p, &way);
    core.see(&Pod { uid: "another".into(), ..p.clone() });
    check(&mut core, &p, &[&way[..], &[("Added", "")]].concat());
}

#[test]
fn bound_elsewhere_or_by_others() {
    let mut core = core_with(&[node("a", 1000), node("b", 100)]);
    let p = pod("p", 300);
    let order = core.place(&p);
    core.report(&order, BindOutcome::BoundElsewhere { node: "b".into() });
    core.see(&on(&p, "b"));
    check(&mut core, &p, &[("Added", ""), ("Placed", "a"), ("Bound", "b")]);
    let q = pod("q", 3_000);
    core.attempt(&q);
    core.see(&on(&q, "b"));
    check(&mut core, &q, &[("Added", ""), ("Refused", ""), ("Bound", "b")]);
    // Pods that arrive with a node get no entries, nor do pods of other schedulers.
    let r = on(&pod("r", 10), "a");
    core.see(&r);
    core.see(&Pod { scheduler_name: "other".into(), ..on(&pod("s", 10), "a") });
    core.delete(&pod("s", 10));
    check(&mut core, &r, &[]);
    check(&mut core, &pod("s", 10), &[]);
}

#[test]
fn a_lost_place_an_end_and_what_cannot_be_read() {
    let (mut core, p, order) = placed();
    core.report(&order, refused());
    check(&mut core, &p, &[("Added", ""), ("Placed", "a"), ("Refused", ""), ("Released", "a")]);
    core.see(&Pod { phase: PodPhase::Failed, ..p.clone() });
    assert_eq!(told(&mut core, &p).last().map(|t| &*t.0), Some("Ended"));

    let q = pod("q", 3_000);
    core.attempt(&q);
    core.apply(Input::Quarantined(unreadable(&q)));
    check(&mut core, &q, &[("Added", ""), ("Refused", ""), ("Unreadable", "")]);
    let r = pod("r", 3_000);
    core.see(&r);
    core.see(&Pod { deleting: true, ..r.clone() });
    check(&mut core, &r, &[("Added", ""), ("Deleting", "")]);
}

#[test]
fn repeats_count_and_a_gate_is_told() {
    let mut core = core_with(&[node("a", 1000)]);
    let p = pod("p", 3_000);
    core.attempt(&p);
    for i in 0..4 {
        // A larger node that does not help; then the queue's time limit expires.
        core.see_node(&node("a", 1001 + i));
        core.run_after(400 * SECOND);
    }
    let told = told(&mut core, &p);
    let last = told.last().expect("an entry");
    assert_eq!((&*last.0, last.2), ("Refused", 5));
    let held = Pod { gates: ["later".into()].into(), ..pod("held", 100) };
    core.see(&held);
    check(&mut core, &held, &[("Added", ""), ("Gated", "")]);
}

/// A pending pod, or one whose Binding is in progress, may start its deletion long before it is gone.
#[test]
fn a_pod_that_goes_slowly_ends_when_it_is_gone() {
    let mut core = core_with(&[node("a", 1000)]);
    let (p, q, r) = (pod("p", 3_000), pod("q", 3_000), pod("r", 300));
    let leaves = |pod: &Pod| Pod { deleting: true, ..pod.clone() };
    core.see(&p);
    core.attempt(&q);
    core.place(&r);
    for pod in [&p, &q, &r] {
        core.see(&leaves(pod));
        core.see(&leaves(pod));
        assert_eq!(told(&mut core, pod).last().map(|t| &*t.0), Some("Deleting"));
    }
    core.delete(&p);
    check(&mut core, &p, &[("Added", ""), ("Refused", ""), ("Deleting", ""), ("Deleted", "")]);
    core.delete(&p);
    assert_eq!(told(&mut core, &p).len(), 4, "once");
    // A new pod of the same name arrived, so the old one must be gone.
    core.see(&Pod { uid: "another".into(), ..q.clone() });
    let way = [("Added", ""), ("Refused", ""), ("Deleting", ""), ("Deleted", ""), ("Added", "")];
    check(&mut core, &q, &way);
    // The watch was interrupted: a list shows which pods exist.
    let list = |pods: Vec<Pod>| Input::PodsReset {
        pods: pods.into_iter().map(Arc::new).collect(),
        quarantined: Vec::new(),
    };
    core.apply(list(vec![leaves(&r)]));
    assert_eq!(told(&mut core, &r).last().map(|t| &*t.0), Some("Deleting"));
    core.apply(list(Vec::new()));
    assert_eq!(told(&mut core, &r).last().map(|t| &*t.0), Some("Deleted"));
}

/// A placement keeps its names, even after the slots of its pod and node are reused.
#[test]
fn a_placement_keeps_its_names_when_its_pod_and_its_node_are_gone() {
    let mut core = core_with(&[node("a", 1000)]);
    let pods = [pod("p", 300), pod("q", 300)];
    for (p, host) in pods.iter().zip(["a", "b"]) {
        let order = core.place(p);
        core.report(&order, BindOutcome::Bound);
        core.see(&on(p, host));
        check(&mut core, p, &[("Added", ""), ("Placed", host), ("Bound", host)]);
        core.delete(p);
        core.apply(Input::NodeDeleted(host.into()));
        // The next objects reuse the slots of the deleted pod and node.
        core.see_node(&node(if host == "a" { "b" } else { "c" }, 1000));
    }
    let way = |host| [("Added", ""), ("Placed", host), ("Bound", host), ("Deleted", host)];
    check(&mut core, &pods[0], &way("a"));
    check(&mut core, &pods[1], &way("b"));
    assert_eq!(core.scheduler.cluster().n_slots(), 1, "the nodes had one number");
}

/// One input replaces all nodes by others that reuse their slots.
#[test]
fn a_placement_keeps_the_name_of_its_node_when_all_nodes_are_told_anew() {
    let (mut core, p, order) = placed();
    core.report(&order, BindOutcome::Refused { status: 422, reason: "Invalid".into(), message: "no".into() });
    core.apply(Input::NodesReset { nodes: vec![Arc::new(node("b", 1000))], quarantined: Vec::new() });
    let told = told(&mut core, &p);
    assert_eq!((&*told[1].0, &*told[1].1), ("Placed", "a"), "{told:?}");
}

/// The last pod on a node that was deleted before it.
#[test]
fn a_pod_that_outlives_its_node_ends_on_it() {
    let (mut core, p, order) = placed();
    core.report(&order, BindOutcome::Bound);
    core.see(&on(&p, "a"));
    core.apply(Input::NodeDeleted("a".into()));
    core.delete(&p);
    check(&mut core, &p, &[("Added", ""), ("Placed", "a"), ("Bound", "a"), ("Deleted", "a")]);
}
