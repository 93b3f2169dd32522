//! Whether a gang's quorum fits now, later or never, and that all numbers about it agree. Claims are tried on a scheduler
//! of their own.

use std::sync::Arc;

use pellucid::model::gang::{Dialect, GangDeclaration, GangMode, GangTerms, PodGroup};
use pellucid::model::relations::{PodAffinityTerm, PodTerms};
use pellucid::model::requests::ResourceList;
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::{GangKey, Node, Object, Pod, PodSpec};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{self, labelled, on};
use crate::common::reads::{ask, list, number, text};
use crate::gangs::made::{SECOND, core_with, host, in_dialect, member, members, non_strict, single, terms};

const GANG: &str = "/apis/v1/explain/gangs/ns/g";

fn explain(core: &mut Core) -> Value {
    ask(core, GANG)
}

fn feasibility(core: &mut Core) -> Value {
    ask(core, &format!("{GANG}/feasibility"))
}

fn suggestions(core: &mut Core) -> Value {
    ask(core, &format!("{GANG}/suggestions?max=10"))
}

fn fixes(body: &Value) -> Vec<&str> {
    list(body, "/fixes").iter().map(|fix| text(fix, "/text")).collect()
}

/// Makes eight nodes of 21 CPUs, four of which a filler of 7 CPUs uses: 20 members of 7 CPUs fit now, 24 on empty nodes.
fn sixty(terms: &GangTerms) -> Core {
    let mut core = core_with(&[21_000; 8]);
    for i in 0..4 {
        core.see(&on(&single(&format!("filler-{i}"), 7_000), &format!("n{i}")));
    }
    let pods: Vec<Pod> = (0..60).map(|i| member("g", &format!("g-{i:02}"), 7_000, terms.clone())).collect();
    core.attempt_all(&pods);
    core
}

#[test]
fn a_gang_that_not_even_empty_nodes_have_room_for_is_told_never() {
    let mut core = sixty(&terms(60));
    let body = explain(&mut core);
    assert_eq!(body["outlook"]["code"], "NeverFits", "{body:#}");
    assert!(text(&body, "/outlook/message").contains("ns/g: 24 of 60 members"), "{body:#}");
    assert_eq!((&body["counts"]["wanted"], &body["counts"]["placeable"]), (&json!(60), &json!(20)));
    assert_eq!(body["rootCause"]["others"], 39);
    let remedy = text(&body, "/verdict/remedy");
    assert!(!remedy.contains("Wait for pods to end"), "{remedy}");
    assert!(remedy.contains("lower its quorum to 20") && remedy.contains("add nodes"), "{remedy}");
    assert_eq!(body["verdict"]["resolver"], "pod owner");
    assert!(text(&body, "/verdict/message").contains("20 of 60 members"), "{body:#}");
    let body = feasibility(&mut core);
    assert_eq!(
        [
            number(&body, "/wanted"),
            number(&body, "/slotsNow"),
            number(&body, "/slotsEmpty"),
            number(&body, "/slotsMissing")
        ],
        [60, 20, 24, 40]
    );
    assert_eq!(number(&suggestions(&mut core), "/slotsMissing"), 40);
    // No member is told that it fits, whatever the pod alone would do.
    for name in ["g-00", "g-59"] {
        let path = format!("/apis/v1/explain/pods/ns/{name}");
        let body = ask(&mut core, &format!("{path}/feasibility"));
        assert_eq!((&body["verdict"]["code"], &body["now"]), (&json!("NeverFits"), &json!(false)));
        assert_eq!((&body["emptyCluster"], &body["largestNow"]), (&json!(false), &Value::Null));
        assert_eq!(
            (&body["alone"]["gang"], &body["alone"]["verdict"]["code"]),
            (&json!("ns/g"), &json!("FitsNow"))
        );
        let body = ask(&mut core, &path);
        assert_eq!(body["gang"]["outlook"]["code"], "NeverFits", "{body:#}");
        let body = ask(&mut core, &format!("{path}?refresh=true"));
        assert_eq!(body["verdict"], "refused", "{body:#}");
        assert!(text(&body, "/summary").starts_with("Not placed: it is placed with gang ns/g"), "{body:#}");
    }
    // It is true when tried: without fillers it is still refused.
    for i in 0..4 {
        core.delete(&single(&format!("filler-{i}"), 7_000));
    }
    core.run_after(60 * SECOND);
    assert_eq!(core.gang("g").counted(), 0);
}

#[test]
fn a_gang_that_waits_for_pods_to_leave_is_told_which() {
    let (mut core, pods) = (core_with(&[4000, 4000]), members("g", 4, 2000, &terms(4)));
    core.see(&on(&single("small", 1000), "n0"));
    core.see(&on(&single("large", 3000), "n1"));
    core.attempt_all(&pods);
    let body = explain(&mut core);
    assert_eq!(body["outlook"]["code"], "NotNow", "{body:#}");
    assert!(text(&body, "/verdict/remedy").starts_with("Wait for pods to end"));
    let leaving: Vec<&str> = list(&body, "/outlook/wouldLeave").iter().filter_map(Value::as_str).collect();
    assert_eq!(leaving, ["ns/large", "ns/small"]);
    let fixes_body = suggestions(&mut core);
    assert!(fixes(&fixes_body).contains(&"let pod ns/large go, and let pod ns/small go"), "{fixes_body:#}");
    core.delete(&single("small", 1000));
    core.delete(&single("large", 3000));
    core.run_after(60 * SECOND);
    assert_eq!(core.placed(&pods), 4);
}

/// Returns a pod that needs one labelled `app=cache` on its node.
fn beside_cache(pod: Pod) -> Pod {
    let selector = LabelSelector::of_pairs(&[("app".into(), "cache".into())]);
    let term = PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".into(),
        selector: Some(selector),
        ..PodAffinityTerm::default()
    };
    let pod_affinity = PodTerms { required: Box::new([term]), ..PodTerms::default() };
    Pod { spec: Arc::new(PodSpec { pod_affinity, ..PodSpec::clone(&pod.spec) }), ..pod }
}

fn named(node: Node) -> Node {
    let labels = Labels::new([("kubernetes.io/hostname".into(), node.name.clone())]);
    Node { labels, ..node }
}

#[test]
fn required_affinity_keeps_its_targets() {
    let mut core = made::core_with(&[named(host("n0", 4000)), named(host("n1", 4000))]);
    core.see(&on(&labelled(single("cache", 1000), "app", "cache"), "n0"));
    core.see(&on(&single("filler", 3000), "n0"));
    let pods: Vec<Pod> = members("g", 2, 1000, &terms(2)).into_iter().map(beside_cache).collect();
    core.attempt_all(&pods);
    let body = explain(&mut core);
    assert_eq!(body["outlook"]["code"], "NotNow", "{body:#}");
    assert_eq!(body["outlook"]["wouldLeave"], json!(["ns/filler"]));
    core.delete(&single("filler", 3000));
    core.run_after(60 * SECOND);
    assert_eq!(core.placed(&pods), 2);
}

/// Five members, a quorum of two, room for three on the empty node and for one now.
fn five_of_which_three_fit() -> Core {
    let mut core = core_with(&[3000]);
    core.see(&on(&single("filler", 2000), "n0"));
    core.attempt_all(&members("g", 5, 1000, &terms(2)));
    core
}

#[test]
fn a_member_beyond_the_quorum_has_an_outlook_and_fixes_of_its_own() {
    let mut core = five_of_which_three_fit();
    let code = |core: &mut Core, name: &str| {
        let path = format!("/apis/v1/explain/pods/ns/{name}");
        let body = ask(core, &path);
        let feasibility = ask(core, &format!("{path}/feasibility"));
        assert_eq!(body["outlook"]["code"], feasibility["verdict"]["code"], "{body:#}");
        assert_eq!(body["gang"]["outlook"]["code"], "NotNow", "{body:#}");
        text(&body, "/outlook/code").to_owned()
    };
    let codes: Vec<String> = (0..5).map(|i| code(&mut core, &format!("g-{i}"))).collect();
    assert_eq!(codes, ["NotNow", "NotNow", "NotNow", "NotKnown", "NotKnown"]);
    // The list says the same of the others, and nothing of those beyond the quorum.
    let body = ask(&mut core, "/apis/v1/explain/pods");
    let listed: Vec<&Value> = list(&body, "/pods").iter().map(|pod| &pod["outlook"]).collect();
    assert_eq!(listed[..3], ["NotNow"; 3], "{body:#}");
    assert!(listed[3..].iter().all(|outlook| outlook.as_str().unwrap_or_default().is_empty()), "{body:#}");
    // What helps the first is too little for the last.
    let fixes_of = |core: &mut Core, name: &str| {
        let body = ask(core, &format!("/apis/v1/explain/pods/ns/{name}/suggestions?max=10"));
        fixes(&body).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(fixes_of(&mut core, "g-0").contains(&"let pod ns/filler go".to_owned()));
    let last = fixes_of(&mut core, "g-4");
    assert!(!last.contains(&"let pod ns/filler go".to_owned()), "{last:?}");
    let nodes = last.iter().find(|text| text.starts_with("add a node") || text.contains("like n0"));
    assert!(nodes.is_some_and(|text| text.contains('2') || !text.contains("times")), "{last:?}");
}

#[test]
fn the_end_of_members_that_hold_the_quorum_is_no_help_to_those_that_would_replace_them() {
    let mut core = core_with(&[2000]);
    let pods = members("g", 4, 1000, &terms(2));
    core.attempt_all(&pods);
    assert_eq!(core.placed(&pods), 2);
    let mut code = |name: &str| {
        let path = format!("/apis/v1/explain/pods/ns/{name}");
        let (body, feasibility) = (ask(&mut core, &path), ask(&mut core, &format!("{path}/feasibility")));
        assert_eq!(body["outlook"]["code"], feasibility["verdict"]["code"], "{body:#}");
        text(&body, "/outlook/code").to_owned()
    };
    // One of them takes the place that becomes free, and the other waits on.
    let codes = [code("g-2"), code("g-3")];
    assert_eq!(codes, ["NotNow", "NotKnown"]);
}

#[test]
fn a_member_that_no_node_takes_never_fits_whatever_its_gang_does() {
    let mut core = core_with(&[3000]);
    core.see(&on(&single("filler", 2000), "n0"));
    let mut pods = members("g", 2, 1000, &terms(2));
    pods.push(member("g", "g-large", 5000, terms(2)));
    core.attempt_all(&pods);
    let path = "/apis/v1/explain/pods/ns/g-large";
    assert_eq!(explain(&mut core)["outlook"]["code"], "NotNow");
    let body = ask(&mut core, &format!("{path}/feasibility"));
    assert_eq!(
        (&body["verdict"]["code"], &body["emptyCluster"]),
        (&json!("NeverFits"), &json!(false)),
        "{body:#}"
    );
    let body = ask(&mut core, path);
    assert_eq!(body["outlook"]["code"], "NeverFits", "{body:#}");
    assert_ne!(body["resolver"], "time", "{body:#}");
}

#[test]
fn pods_that_stay_are_not_counted_as_leaving() {
    let mut core = core_with(&[2000]);
    let daemon = Pod { is_static: true, ..single("daemon", 1000) };
    core.see(&on(&daemon, "n0"));
    core.attempt_all(&members("g", 2, 1000, &terms(2)));
    assert_eq!(explain(&mut core)["outlook"]["code"], "NeverFits");
}

#[test]
fn a_gang_that_is_short_of_pods_is_held_back_and_every_answer_has_the_same_count() {
    let mut core = core_with(&[4000]);
    let pods = members("g", 4, 1000, &terms(4));
    for pod in &pods[..3] {
        core.see(pod);
        core.wait(SECOND);
    }
    let said = "3 of 4 are there";
    let body = explain(&mut core);
    assert_eq!(body["outlook"]["code"], "HeldBack");
    for pointer in ["/outlook/message", "/verdict/message"] {
        assert!(text(&body, pointer).ends_with(said), "{body:#}");
    }
    for name in ["g-0", "g-1", "g-2"] {
        let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{name}"));
        assert!(text(&body, "/message").ends_with(said), "{body:#}");
        assert!(text(&body, "/gang/message").ends_with(said), "{body:#}");
    }
    for pod in list(&ask(&mut core, "/apis/v1/explain/pods"), "/pods") {
        assert!(text(pod, "/message").ends_with(said), "{pod:#}");
    }
    let body = suggestions(&mut core);
    assert_eq!(
        (fixes(&body), &body["slotsMissing"]),
        (vec!["lower the quorum of gang ns/g to 3 instead of 4"], &Value::Null)
    );
    // A member that is deleted is not counted any more, whatever was said last.
    core.delete(&pods[1]);
    assert!(text(&explain(&mut core), "/verdict/message").ends_with("2 of 4 are there"));
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/g-0");
    assert!(text(&body, "/message").ends_with("2 of 4 are there"), "{body:#}");
}

#[test]
fn numbers_are_about_now_after_members_came_or_nodes_went() {
    let mut core = core_with(&[3000]);
    core.attempt_all(&members("g", 5, 1000, &terms(5)));
    core.see_node(&host("more", 1000));
    let body = explain(&mut core);
    assert_eq!((&body["counts"]["placeable"], &body["meta"]["stale"]), (&json!(4), &json!(true)), "{body:#}");
    assert!(text(&body, "/verdict/message").contains("4 of 5 members"), "{body:#}");
    assert_eq!((&body["meta"]["refreshed"], &body["rootCause"]["others"]), (&json!(true), &json!(0)));
    core.see_node(&host("enough", 1000));
    let body = explain(&mut core);
    assert_eq!(
        (&body["outlook"]["code"], &body["verdict"]["code"]),
        (&json!("FitsNow"), &json!("GangQueued"))
    );
    assert_eq!(body["verdict"]["resolver"], "time");
    assert_eq!(suggestions(&mut core)["fitsNow"], true);
}

#[test]
fn a_gang_that_may_preempt_is_told_so() {
    let mut core = core_with(&[2000]);
    core.see(&on(&single("low", 2000), "n0"));
    let pods: Vec<Pod> =
        members("g", 2, 1000, &terms(2)).into_iter().map(|pod| Pod { priority: 10, ..pod }).collect();
    core.see_all(&pods);
    let told = json!({
        "code": "FitsAfterPreemption", "wouldLeave": ["ns/low"],
        "message": "the quorum has places once these are evicted: ns/low on n0",
    });
    let outlook = &explain(&mut core)["outlook"];
    for field in ["code", "wouldLeave", "message"] {
        assert_eq!(outlook[field], told[field], "{field}");
    }
}

#[test]
fn a_group_across_namespaces_is_planned_as_one() {
    let groups: Arc<[GangKey]> = Arc::new([GangKey::new("ns", "g"), GangKey::new("other", "h")]);
    let terms = GangTerms { groups, ..terms(2) };
    let mut core = core_with(&[3000]);
    core.see_all(&members("g", 2, 1000, &terms));
    let other = |i: usize| {
        let pod = member("h", &format!("h-{i}"), 1000, terms.clone());
        let mut mark = pod.gang.as_deref().expect("a member").clone();
        mark.gang = GangKey::new("other", "h");
        let key = pellucid::model::PodKey::new("other", &format!("h-{i}"));
        Pod { key, gang: Some(Arc::new(mark)), ..pod }
    };
    core.see_all(&[other(0), other(1)]);
    core.run();
    let body = explain(&mut core);
    assert_eq!(body["outlook"]["code"], "NeverFits", "{body:#}");
    let partner = ask(&mut core, "/apis/v1/explain/gangs/other/h");
    assert_eq!(partner["outlook"], body["outlook"]);
    assert_eq!(partner["verdict"]["message"], body["verdict"]["message"]);
}

#[test]
fn every_dialect_and_mode_has_an_outlook_and_a_lower_quorum_that_works() {
    let dialects = [Dialect::Unicore, Dialect::Coscheduling, Dialect::Koordinator];
    for (dialect, mode) in
        dialects.into_iter().flat_map(|d| [(d, GangMode::Strict), (d, GangMode::NonStrict)])
    {
        let what = format!("{dialect:?} {mode:?}");
        let terms = match mode {
            GangMode::Strict => terms(4),
            GangMode::NonStrict => non_strict(4, 60 * SECOND),
        };
        let pods: Vec<Pod> =
            (0..4).map(|i| in_dialect(dialect, "g", &format!("g-{i}"), 1000, terms.clone())).collect();
        let mut core = core_with(&[2500]);
        core.attempt_all(&pods);
        let body = explain(&mut core);
        assert_eq!(body["outlook"]["code"], "NeverFits", "{what}: {body:#}");
        let body = suggestions(&mut core);
        let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text").starts_with("lower the quorum"));
        let fix = fix.unwrap_or_else(|| panic!("{what}: {body:#}"));
        let min = number(fix, "/edits/0/setQuorum/min");
        assert_eq!(
            (min, number(fix, "/gang/placed"), number(fix, "/gang/min")),
            (2, 2, 2),
            "{what}: {fix:#}"
        );
        assert!(text(fix, "/parts/0/command").starts_with("kubectl -n ns "), "{what}: {fix:#}");
        let terms = GangTerms { min: Some(2), ..terms };
        let lowered: Vec<Pod> =
            (0..4).map(|i| in_dialect(dialect, "g", &format!("g-{i}"), 1000, terms.clone())).collect();
        let mut core = core_with(&[2500]);
        core.attempt_all(&lowered);
        assert_eq!(core.placed(&lowered), 2, "{what}");
    }
}

#[test]
fn a_fix_of_a_member_is_about_its_gang_and_names_what_to_change() {
    let mut core = core_with(&[4000]);
    let controller = pellucid::model::gang::Controller {
        uid: "u".into(),
        kind: "ReplicaSet".into(),
        name: "web-5d4f".into(),
    };
    let pods: Vec<Pod> = members("g", 4, 2000, &terms(4))
        .into_iter()
        .map(|pod| Pod { controller: Some(controller.clone()), requests_of_one: true, ..pod })
        .map(|pod| labelled(pod, "pod-template-hash", "5d4f"))
        .collect();
    core.attempt_all(&pods);
    let of_gang = suggestions(&mut core);
    let first = ask(&mut core, "/apis/v1/explain/pods/ns/g-0/suggestions?max=10");
    assert_eq!((&first["fixes"], &first["gang"]), (&of_gang["fixes"], &json!("ns/g")));
    // A lower quorum gives the third no place.
    let of_pod = ask(&mut core, "/apis/v1/explain/pods/ns/g-2/suggestions?max=10");
    let of_third: Vec<&str> =
        fixes(&of_gang).into_iter().filter(|text| !text.starts_with("lower the quorum")).collect();
    assert_eq!(fixes(&of_pod), of_third);
    let fix =
        list(&of_pod, "/fixes").iter().find(|fix| text(fix, "/text") == "request 1 of cpu instead of 2");
    let fix = fix.unwrap_or_else(|| panic!("{of_pod:#}"));
    assert_eq!(
        fix["gang"],
        json!({"gang": "ns/g", "placed": 4, "members": 4, "min": 4, "all": true, "owners": ["Deployment/web"],
            "text": "4 of 4 members have places then: the whole gang"})
    );
    assert_eq!(text(fix, "/parts/0/command"), "kubectl -n ns set resources deployment web --requests=cpu=1");
}

#[test]
fn only_pods_are_named_without_which_the_gang_would_not_fit() {
    let (mut core, pods) = (core_with(&[1100]), members("g", 2, 400, &terms(2)));
    // The pod of the lowest priority would be the first to go, and its end gives no member room.
    core.see(&on(&Pod { priority: -1, ..single("small", 100) }, "n0"));
    core.see(&on(&single("large", 1000), "n0"));
    core.attempt_all(&pods);
    let body = explain(&mut core);
    assert_eq!(body["outlook"]["wouldLeave"], json!(["ns/large"]), "{body:#}");
    assert_eq!(
        text(&body, "/outlook/message"),
        "the quorum has no places now; it would once pod ns/large has left"
    );
    core.delete(&single("large", 1000));
    core.run_after(60 * SECOND);
    assert_eq!(core.placed(&pods), 2);
}

#[test]
fn a_gang_may_ask_for_less_that_is_free_before_it_is_planned() {
    let mut core = core_with(&[3000]);
    let milli = |milli_cpu: i64| Some(ResourceList { milli_cpu, ..ResourceList::default() });
    let group = PodGroup {
        key: GangKey::new("ns", "g"),
        uid: "uid-g".into(),
        terms: terms(2),
        min_resources: milli(8000),
        ..PodGroup::default()
    };
    core.see_object(Object::PodGroup(group.clone()));
    let of = |i: usize| in_dialect(Dialect::Coscheduling, "g", &format!("g-{i}"), 1000, terms(2));
    let pods: Vec<Pod> = (0..2).map(of).collect();
    core.attempt_all(&pods);
    let body = suggestions(&mut core);
    let begin = "lower minResources of PodGroup ns/g to 3 of cpu instead of 8";
    let fix = list(&body, "/fixes").iter().find(|fix| text(fix, "/text") == begin);
    let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
    let edit = json!({"setMinResource": {"gang": "ns/g", "resource": "cpu", "amount": "3"}});
    assert_eq!((&fix["edits"], &fix["gang"]["placed"]), (&json!([edit]), &json!(2)));
    assert_eq!(
        text(fix, "/parts/0/command"),
        "kubectl -n ns patch podgroups.scheduling.x-k8s.io g --type=merge -p \
         '{\"spec\":{\"minResources\":{\"cpu\":\"3\"}}}'"
    );
    core.see_object(Object::PodGroup(PodGroup { min_resources: milli(3000), ..group }));
    core.run_after(60 * SECOND);
    assert_eq!(core.placed(&pods), 2);
}

#[test]
fn another_gang_of_the_group_may_have_a_smaller_quorum() {
    let groups: Arc<[GangKey]> = Arc::new([GangKey::new("ns", "g"), GangKey::new("ns", "h")]);
    let of = |min: u32| GangTerms { groups: groups.clone(), ..terms(min) };
    let mut core = core_with(&[2000, 5000]);
    let picky = |pod: Pod| {
        let spec = PodSpec { node_name: Some("n1".into()), ..PodSpec::clone(&pod.spec) };
        Pod { spec: Arc::new(spec), ..pod }
    };
    let own = members("g", 2, 1000, &of(2));
    core.see_all(&own);
    let others: Vec<Pod> = members("h", 4, 2000, &of(4)).into_iter().map(picky).collect();
    core.attempt_all(&others);
    let body = suggestions(&mut core);
    let fix = list(&body, "/fixes")
        .iter()
        .find(|fix| text(fix, "/text").starts_with("lower the quorum of gang ns/h"));
    let fix = fix.unwrap_or_else(|| panic!("{body:#}"));
    let edit = json!({"setQuorum": {"gang": "ns/h", "min": 2}});
    assert_eq!((&fix["edits"], &fix["gang"]["placed"]), (&json!([edit]), &json!(2)), "{body:#}");
    let less = |pod: Pod| {
        let mark = GangDeclaration { terms: of(2), ..pod.gang.as_deref().expect("a member").clone() };
        Pod { gang: Some(Arc::new(mark)), ..pod }
    };
    others.into_iter().map(less).for_each(|pod| core.see(&pod));
    core.run_after(60 * SECOND);
    assert_eq!(core.placed(&own), 2);
}
