//! Fixes and simulations where it matters who is tried when, in which order parts are carried out, and what would have
//! been written by then.

use std::sync::Arc;
use std::time::Duration;

use pellucid::diagnosis::what_if::simulate::{Question, simulate};
use pellucid::model::gang::{GangMode, GangTerms};
use pellucid::model::taint::{Taint, TaintEffect};
use pellucid::model::{GangKey, Name, Node, Pod, PodKey, PodSpec};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, labelled, mark, node, on, pod, ranked};
use crate::common::reads::{ask, list, text};
use crate::common::storage::{claim, class, using, volume};
use crate::why::fixing::{beside, names};

const HOST: &str = "kubernetes.io/hostname";

fn picky(pod: Pod, labels: &[(&str, &str)]) -> Pod {
    let mut spec = PodSpec::clone(&pod.spec);
    spec.affinity.selector = names(labels).into();
    Pod { spec: Arc::new(spec), ..pod }
}

fn tainted(node: Node) -> Node {
    let taint = Taint { key: "kept".into(), value: "".into(), effect: TaintEffect::NoSchedule };
    Node { taints: [taint].into(), ..node }
}

fn host(name: &str, milli_cpu: i64) -> Node {
    let mut host = node(name, milli_cpu);
    host.labels = host.labels.with(HOST.into(), Name::new(name));
    host
}

fn fixes_of_p(core: &mut Core) -> Value {
    ask(core, "/apis/v1/explain/pods/ns/p/suggestions?max=3")
}

/// Returns what is said in company of the fix whose text begins so.
fn in_company<'b>(body: &'b Value, begin: &str) -> &'b str {
    let fix = list(body, "/fixes").iter().find(|fix| text(fix, "/text").starts_with(begin));
    text(fix.unwrap_or_else(|| panic!("no fix {begin}: {body:#}")), "/inCompany")
}

#[test]
fn a_new_node_is_like_the_changed_one() {
    let mut core = core_with(&[host("n", 1000)]);
    core.see(&on(&ranked("filler", 1000, 5), "n"));
    // It takes the node as soon as the filler has left, and no other.
    core.attempt(&picky(ranked("ahead", 1000, 5), &[(HOST, "n")]));
    core.attempt(&picky(pod("p", 1000), &[("disk", "ssd")]));
    let body = fixes_of_p(&mut core);
    assert_eq!(in_company(&body, "label node n with disk=ssd, and let pod ns/filler go"), "taken");
    // The copy has the label, so the filler may stay.
    assert_eq!(in_company(&body, "label node n with disk=ssd, and add a node like n"), "holds", "{body:#}");
}

#[test]
fn a_place_held_at_permit_is_not_taken_for_good() {
    let mut core = core_with(&[node("n", 1000)]);
    core.see(&on(&pod("filler", 500), "n"));
    let terms = GangTerms {
        min: Some(2),
        mode: Some(GangMode::NonStrict),
        wait: Some(SECOND),
        ..GangTerms::default()
    };
    let member = |name: &str| Pod {
        gang: Some(mark(GangKey::new("ns", "g"), terms.clone()).into()),
        ..ranked(name, 500, 1)
    };
    core.see(&member("g-0"));
    core.see(&member("g-1"));
    core.run();
    core.wait(2 * SECOND);
    core.attempt(&pod("p", 800));
    let body = fixes_of_p(&mut core);
    // The gang comes first, waits for its second member in vain, and leaves the place to the pod.
    assert_eq!(in_company(&body, "request 500m of cpu"), "unknown", "{body:#}");
}

#[test]
fn what_a_victim_would_have_written_is_not_known() {
    let mut core = core_with(&[tainted(host("n", 1000))]);
    core.see_object(class());
    core.see_object(claim("c"));
    core.see_object(volume("v", None));
    // Once the taint has gone, it is placed and its claim bound, before the pod is small enough to evict it.
    core.attempt(&using(pod("other", 1000), "c"));
    core.attempt(&ranked("p", 2000, 10));
    let body = fixes_of_p(&mut core);
    assert_eq!(in_company(&body, "remove taint kept"), "unknown", "{body:#}");
    assert_eq!(in_company(&body, "tolerate taint kept"), "holds", "{body:#}");
}

#[test]
fn a_preemptor_goes_before_those_that_back_off() {
    let world = || {
        let mut core = core_with(&[node("n", 1000)]);
        core.see(&on(&ranked("victim", 1000, -1), "n"));
        core
    };
    let humble = Pod { never_preempts: true, ..ranked("humble", 1000, 50) };
    let mut core = world();
    core.see(&humble);
    core.see(&pod("preemptor", 1000));
    let snapshot = core.scheduler.publish(core.now);
    let pods = ["humble", "preemptor"].map(|name| PodKey::new("ns", name)).to_vec();
    let question = Question { pods, evict: true, ..Question::default() };
    let body = simulate(&snapshot, &question, core.now).expect("it fits");
    let placed: Vec<&str> = body.placements.iter().map(|placed| &*placed.pod).collect();
    assert_eq!(placed, ["ns/preemptor"]);
    // The same, carried out.
    core.run();
    core.delete(&ranked("victim", 1000, -1));
    core.run();
    core.wait(Duration::from_secs(60));
    core.run();
    assert_eq!(core.node_of(&pod("preemptor", 1000)).as_deref(), Some("n"));
    assert_eq!(core.node_of(&humble), None);
    assert_eq!(json!(body.victims.len()), json!(1));
}

/// Returns a member of a NonStrict gang of two, which waits for a minute.
fn patient(name: &str, milli_cpu: i64, priority: i32) -> Pod {
    let (mode, wait) = (Some(GangMode::NonStrict), Some(60 * SECOND));
    let terms = GangTerms { min: Some(2), mode, wait, ..GangTerms::default() };
    Pod { gang: Some(mark(GangKey::new("ns", "g"), terms).into()), ..ranked(name, milli_cpu, priority) }
}

#[test]
fn a_gang_that_waits_elsewhere_leaves_it_known_who_takes_the_place() {
    let cordoned = || Node { unschedulable: true, ..host("n", 1000) };
    let world = |room: i64| {
        let mut core = core_with(&[cordoned(), host("w", room)]);
        core.see(&picky(patient("g-0", 500, 0), &[(HOST, "w")]));
        core.see(&picky(patient("g-1", 500, 0), &[(HOST, "nowhere")]));
        core.run();
        core.attempt(&picky(ranked("ahead", 1000, 5), &[(HOST, "n")]));
        core.attempt(&pod("p", 1000));
        core
    };
    let told = |core: &mut Core| {
        let body = fixes_of_p(core);
        let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text") == "uncordon node n");
        let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
        (text(fix, "/inCompany").to_owned(), fix["takenBy"].clone())
    };
    // It is what happens, however often the gang gives its place up.
    let done = |core: &mut Core| {
        core.see_node(&host("n", 1000));
        for _ in 0..10 {
            core.run();
            core.wait(30 * SECOND);
        }
        assert_eq!(core.node_of(&pod("ahead", 1000)).as_deref(), Some("n"));
        core.node_of(&pod("p", 1000))
    };
    let mut core = world(500);
    assert_eq!(told(&mut core), ("taken".to_owned(), json!(["ns/ahead"])));
    assert_eq!(done(&mut core), None);
    // Here the pod takes the room of the gang once that has waited in vain.
    let mut core = world(1000);
    assert_eq!(told(&mut core).0, "unknown");
    assert_eq!(done(&mut core).as_deref(), Some("w"));
}

#[test]
fn a_gang_that_has_waited_in_vain_may_be_tried_before_the_others_or_after_them() {
    let mut core = core_with(&[host("n", 1000)]);
    let filler = on(&pod("filler", 400), "n");
    core.see(&filler);
    core.see(&patient("g-0", 500, 0));
    core.see(&patient("g-1", 500, 0));
    core.run();
    // The wait runs out. The gang backs off, and has come earlier than the pod.
    core.wait(60 * SECOND);
    core.attempt(&pod("p", 700));
    let body = fixes_of_p(&mut core);
    assert_eq!(in_company(&body, "let pod ns/filler go"), "unknown", "{body:#}");
    core.delete(&filler);
    core.run();
    assert_eq!(core.node_of(&pod("p", 700)).as_deref(), Some("n"));
}

#[test]
fn where_the_pod_goes_among_others_is_told() {
    let zone = |name: &str, milli_cpu| {
        let host = host(name, milli_cpu);
        Node { labels: host.labels.with("zone".into(), "z".into()), ..host }
    };
    let mut core = core_with(&[zone("a", 2000), zone("b", 1000), zone("full", 100)]);
    let mut keeps_off = PodSpec::clone(&pod("x", 100).spec);
    keeps_off.pod_anti_affinity = beside("app", "q", "zone");
    core.see(&on(&Pod { spec: Arc::new(keeps_off), ..pod("x", 100) }, "full"));
    let kept_off = |pod: Pod| Pod { never_preempts: true, ..labelled(pod, "app", "q") };
    core.attempt(&kept_off(ranked("ahead", 1500, 5)));
    core.attempt(&kept_off(pod("p", 600)));
    let body = fixes_of_p(&mut core);
    let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text") == "let pod ns/x go");
    let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
    assert_eq!(
        (text(fix, "/inCompany"), text(fix, "/node"), text(fix, "/nodeInCompany")),
        ("holds", "a", "b")
    );
    core.delete(&pod("x", 100));
    core.run();
    assert_eq!(core.node_of(&pod("p", 600)).as_deref(), Some("b"));
}
