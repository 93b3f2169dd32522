//! What is said of a pending pod is said once: lists, counts and the answer on the pod itself read one verdict, and no
//! part of it contradicts another.

use std::sync::Arc;

use pellucid::model::gang::GangProblem;
use pellucid::model::pod::StandsFor;
use pellucid::model::relations::{NodeInclusion, SpreadConstraint};
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::taint::{Taint, TaintEffect};
use pellucid::model::{Node, Pod};
use pellucid::plugins::registry;
use pellucid_api::reason::{REGISTRY, ReasonCode};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, in_gang, labelled, node, on, pod};
use crate::common::reads::{ask, list, text};
use crate::why::fixing::{beside, names, with_spec};

pub(crate) fn explain(core: &mut Core, name: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/ns/{name}"))
}

/// Returns the line of a pod in the list.
fn line(core: &mut Core, name: &str) -> Value {
    let body = ask(core, &format!("/apis/v1/explain/pods?name={name}"));
    list(&body, "/pods")[0].clone()
}

/// Returns what outlook and key reason all answers give a pod, which must be the same.
pub(crate) fn outlook_and_key(core: &mut Core, name: &str) -> (String, String) {
    let (one, line) = (explain(core, name), line(core, name));
    let said = (text(&one, "/outlook/code").to_owned(), text(&one, "/keyReason/code").to_owned());
    assert_eq!(
        (text(&line, "/outlook"), text(&line, "/keyReason")),
        (&*said.0, &*said.1),
        "{one:#} {line:#}"
    );
    assert_eq!(line["summary"], one["summary"]);
    let rows = ask(core, &format!("/apis/v1/summary/pending?by=code&name={name}"));
    let row = &list(&rows, "/rows")[0];
    assert_eq!((text(row, "/outlook"), text(row, "/code")), (&*said.0, &*said.1), "{row:#}");
    said
}

fn gated(pod: Pod) -> Pod {
    Pod { gates: ["g".into()].into(), ..pod }
}

#[test]
fn what_a_gate_holds_back_is_held_back_in_every_answer() {
    let mut core = core_with(&[node("a", 4000)]);
    let group = |name: &str| {
        let mut of = in_gang(pod(name, 100), "group", 1);
        of.gang.as_mut().map(Arc::make_mut).expect("it is marked").needs_group = true;
        of
    };
    let two = |name: &str| {
        let mut of = in_gang(pod(name, 100), "two", 1);
        let mark = of.gang.as_mut().map(Arc::make_mut).expect("it is marked");
        let (field, value, problem) = ("label".into(), "two".into(), "names another gang".into());
        (mark.names_two, mark.problems) =
            (true, Box::new([GangProblem { field, value, problem, is_fatal: true }]));
        of
    };
    core.see(&gated(pod("own", 100)));
    core.see(&gated(in_gang(pod("member", 100), "crew", 2)));
    core.see(&in_gang(pod("first", 100), "crew", 2));
    core.see(&gated(in_gang(pod("late", 100), "whole", 1)));
    core.see(&group("missing"));
    core.see(&two("invalid"));
    core.attempt(&in_gang(pod("early", 100), "whole", 1));
    for (name, key) in [
        ("own", "SchedulingGated"),
        ("member", "SchedulingGated"),
        ("first", "GangQuorumMissing"),
        ("late", "SchedulingGated"),
        ("missing", "GangGroupMissing"),
        ("invalid", "GangInvalid"),
    ] {
        assert_eq!(outlook_and_key(&mut core, name), ("HeldBack".into(), key.into()), "{name}");
        let summary = text(&explain(&mut core, name), "/summary").to_owned();
        assert!(!summary.contains("takes it"), "{summary}");
    }
}

#[test]
fn pods_that_must_leave_two_nodes_are_not_said_to_be_on_one() {
    let zone = |name: &str| {
        let labels = names(&[("kubernetes.io/hostname", name), ("zone", "z")]);
        Node { labels: Labels::new(labels), ..node(name, 4000) }
    };
    let other = Node { labels: Labels::new(names(&[("zone", "y")])), ..node("c", 50) };
    let mut core = core_with(&[zone("a"), zone("b"), other]);
    let near = |name: &str| labelled(pod(name, 100), "app", "x");
    core.see(&on(&near("s1"), "a"));
    core.see(&on(&near("s2"), "b"));
    // With both in its only zone, another one is one too many; with one gone, it still is.
    let waiting = with_spec(near("t"), |spec| {
        spec.pod_affinity = beside("app", "x", "zone");
        spec.spread = Box::new([SpreadConstraint {
            max_skew: 1,
            topology_key: "zone".into(),
            is_hard: true,
            selector: Some(LabelSelector::of_pairs(&names(&[("app", "x")]))),
            min_domains: 1,
            node_affinity_policy: NodeInclusion::Honor,
            node_taints_policy: NodeInclusion::Ignore,
        }]);
    });
    core.attempt(&waiting);
    let said = explain(&mut core, "t");
    assert_eq!(
        (text(&said, "/outlook/code"), text(&said, "/outlook/message")),
        ("NotNow", "a node would take it if other pods ended, on whichever nodes they are"),
        "{said:#}"
    );
    core.delete(&near("s1"));
    core.run_after(60 * SECOND);
    assert_eq!(core.node_of(&waiting), None);
    core.delete(&near("s2"));
    core.run_after(60 * SECOND);
    assert!(core.node_of(&waiting).is_some());
}

#[test]
fn where_no_end_of_a_pod_would_help_no_remedy_says_to_wait_for_one() {
    let registered = registry();
    let of_plugins = registered.iter().flat_map(|factory| factory.reasons());
    let waits = ["pods to end", "pod to end", "until pods", "until such pods"];
    let of_plugins = of_plugins.map(|reason| ReasonCode::Plugin(reason).entry());
    for entry in REGISTRY.iter().copied().chain(of_plugins) {
        let code = entry.code.as_str();
        assert!(!waits.iter().any(|waiting| entry.never.contains(waiting)), "{code}: {}", entry.never);
        if waits.iter().any(|waiting| entry.remedy.contains(waiting)) {
            assert_ne!(entry.never, entry.remedy, "{code}");
        }
    }
}

#[test]
fn who_may_evict_a_pod_that_comes_back_is_not_told_that_it_never_fits() {
    for (priority, said) in [(0, "NeverFits"), (10, "FitsAfterPreemption")] {
        let mut core = core_with(&[node("n", 2000)]);
        core.see(&on(&with_spec(pod("daemon", 1500), |spec| spec.is_daemon = true), "n"));
        core.attempt(&Pod { priority, ..pod("p", 1000) });
        let body = ask(&mut core, "/apis/v1/explain/pods/ns/p/feasibility");
        assert_eq!(body["verdict"]["code"], said, "{body:#}");
        assert_eq!(explain(&mut core, "p")["outlook"]["code"], said);
    }
}

#[test]
fn the_key_reason_of_what_never_fits_stands_when_all_pods_have_left() {
    let pool = |name: &str, cpu: i64, pods: i64| {
        let mut made = Node { labels: Labels::new(names(&[("pool", name)])), ..node(name, cpu) };
        made.allocatable.pods = pods;
        made
    };
    let mut core = core_with(&[pool("tiny", 2000, 1), pool("held", 2000, 2), node("a", 100)]);
    core.see(&on(&pod("one", 100), "tiny"));
    core.see(&on(&with_spec(pod("daemon", 1500), |spec| spec.is_daemon = true), "held"));
    core.see(&on(&pod("two", 100), "held"));
    let of = |name: &str, milli_cpu, pool: &str| {
        with_spec(pod(name, milli_cpu), |spec| spec.affinity.selector = names(&[("pool", pool)]).into())
    };
    // What one requests is more than the node has, what the other does more than its DaemonSet leaves.
    core.attempt(&of("p", 3000, "tiny"));
    core.attempt(&of("q", 1000, "held"));
    for name in ["p", "q"] {
        let said = ("NeverFits".to_owned(), "InsufficientResource".to_owned());
        assert_eq!(outlook_and_key(&mut core, name), said, "{name}");
        let body = explain(&mut core, name);
        let nearest = list(&body, "/nearest/reasons");
        assert!(nearest.iter().any(|reason| reason["code"] == "TooManyPods"), "{body:#}");
        let remedy = "Lower the request, or add nodes that have as much to give.";
        assert_eq!((text(&body, "/remedy"), text(&body, "/keyReason/subject")), (remedy, "cpu"), "{body:#}");
    }
    // More pods on the nodes do not help.
    core.see_node(&pool("tiny", 2000, 10));
    core.see_node(&pool("held", 2000, 10));
    core.run_after(60 * SECOND);
    assert_eq!((core.node_of(&pod("p", 0)), core.node_of(&pod("q", 0))), (None, None));
}

#[test]
fn the_remedy_of_a_gang_is_about_what_keeps_its_member_off() {
    let zone = |name: &str| Node { labels: Labels::new(names(&[("zone", name)])), ..node(name, 4000) };
    let mut cordoned = zone("a");
    (cordoned.name, cordoned.unschedulable) = ("cordoned".into(), true);
    let taint = Taint { key: "k".into(), value: "".into(), effect: TaintEffect::NoSchedule };
    let tainted = Node { name: "tainted".into(), taints: [taint].into(), ..zone("b") };
    let mut core = core_with(&[zone("a"), zone("b"), cordoned, tainted.clone()]);
    for name in ["g1", "g2", "g3"] {
        core.see(&in_gang(apart(name), "g", 3));
    }
    core.run();
    let body = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
    assert_eq!(text(&body, "/outlook/code"), "NeverFits", "{body:#}");
    // Of both sides of the term, as of a single pod; not of the other nodes, which only look like more room.
    let remedy = "Add nodes in other domains, or make the term a preference. Add nodes in other domains, or change the \
                  labels by which those pods keep this pod away.";
    assert_eq!((text(&body, "/verdict/remedy"), text(&body, "/verdict/resolver")), (remedy, "pod owner"));
    // Without the taint it is as before, with a node in another zone it is placed.
    core.see_node(&Node { taints: [].into(), ..tainted });
    core.run_after(60 * SECOND);
    assert_eq!(core.node_of(&pod("g1", 0)), None);
    core.see_node(&zone("c"));
    core.run_after(60 * SECOND);
    assert!(core.node_of(&pod("g1", 0)).is_some());
}

/// Makes a pod that bears no pod like it in its zone.
fn apart(name: &str) -> Pod {
    with_spec(labelled(pod(name, 100), "app", "x"), |spec| {
        spec.pod_anti_affinity = beside("app", "x", "zone");
    })
}

/// Makes the pod that stands for Reservation `r1` on node `a`.
fn reservation(milli_cpu: i64) -> Pod {
    let of = StandsFor {
        api_version: "scheduling.koordinator.sh/v1alpha1".into(),
        kind: "Reservation".into(),
        namespace: "".into(),
        name: "r1".into(),
    };
    Pod { stands_for: Some(Arc::new(of)), ..on(&pod("reservation:r1", milli_cpu), "a") }
}

#[test]
fn an_object_with_a_pod_that_stands_for_it_is_called_as_it_is() {
    let mut core = core_with(&[node("a", 1000)]);
    core.see(&reservation(600));
    core.attempt(&pod("p", 500));
    let body = explain(&mut core, "p");
    assert_eq!(text(&body, "/outlook/message"), "a would take it if Reservation r1 ended", "{body:#}");
    assert_eq!(body["outlook"]["wouldLeave"], json!(["Reservation r1"]));
    let nearest = ask(&mut core, "/apis/v1/explain/pods/ns/p/nearest");
    assert_eq!(nearest["nodes"][0]["wouldFree"], json!(["Reservation r1"]));
    // A gang says the same, and what it names can be tried.
    for name in ["g1", "g2"] {
        core.see(&in_gang(pod(name, 450), "g", 2));
    }
    core.delete(&pod("p", 500));
    core.run();
    let gang = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
    let said = "the quorum has no places now; it would once Reservation r1 has left";
    assert_eq!(text(&gang, "/outlook/message"), said, "{gang:#}");
    assert_eq!(gang["outlook"]["wouldLeave"], json!(["Reservation r1"]));
}

/// Who ends every pod that is counted must have done what is said, so an object is not counted as one.
#[test]
fn an_object_is_not_counted_among_the_pods_that_would_leave() {
    let mut core = core_with(&[node("a", 1000)]);
    core.see(&reservation(500));
    core.see(&on(&pod("x", 499), "a"));
    core.see(&on(&pod("y", 1), "a"));
    for name in ["g1", "g2"] {
        core.see(&in_gang(pod(name, 450), "g", 2));
    }
    core.run();
    let gang = ask(&mut core, "/apis/v1/explain/gangs/ns/g");
    let said = "the quorum has no places now; it would once 1 pod and Reservation r1 have left";
    assert_eq!(text(&gang, "/outlook/message"), said, "{gang:#}");
    core.attempt(&pod("p", 1000));
    let body = explain(&mut core, "p");
    let said = "a would take it if 2 pods and Reservation r1 on it ended";
    assert_eq!(text(&body, "/outlook/message"), said, "{body:#}");
}
