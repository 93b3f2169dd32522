//! What users read about gangs, from published snapshots through the registered reads.

use std::sync::Arc;

use pellucid::framework::endpoint::ReadError;
use pellucid::model::effect::BindOutcome;
use pellucid::model::gang::{Dialect, GangTerms};
use pellucid::model::pod::PodPhase;
use pellucid::model::{GangKey, Pod};
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{on, refused};
use crate::common::reads::{ask, try_ask};
use crate::gangs::made::{SECOND, core_with, host, in_dialect, member, members, non_strict, terms, tried};

fn explain(core: &mut Core, gang: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/gangs/ns/{gang}"))
}

/// Returns Koordinator's view of a gang, after checking that its sets add up.
fn summary(core: &mut Core, gang: &str) -> Value {
    let mut body = ask(core, &format!("/apis/v1/plugins/Coscheduling/gang/ns/{gang}"));
    adds_up(&body);
    // Koordinator's map has the same values; what an answer is about stands beside those of one gang alone.
    let meta = body.as_object_mut().and_then(|body| body.remove("meta")).expect("a meta");
    assert_eq!(meta["kind"], "GangSummary");
    let all = ask(core, "/apis/v1/plugins/Coscheduling/gangs");
    assert_eq!(all[format!("ns/{gang}")], body);
    body
}

fn keys(set: &Value) -> Vec<&str> {
    set.as_object().expect("a set is an object").keys().map(String::as_str).collect()
}

/// Checks created = gated + pending + waiting + permitted + bound + finished, as sets and as numbers.
fn adds_up(body: &Value) {
    let waiting: Vec<&str> = keys(&body["waitingForBindChildren"])
        .into_iter()
        .filter(|pod| body["permittedChildren"].get(pod).is_none())
        .collect();
    let of = |field: &str| keys(&body[field]);
    let stages = [
        ("gated", of("gatedChildren")),
        ("pending", of("pendingChildren")),
        ("waiting", waiting),
        ("permitted", of("permittedChildren")),
        ("bound", of("boundChildren")),
        ("finished", of("finishedChildren")),
    ];
    for (stage, pods) in &stages {
        assert_eq!(body["counts"][stage], json!(pods.len()), "{stage}: {body:#}");
    }
    let mut joined: Vec<&str> = stages.iter().flat_map(|(_, pods)| pods.iter().copied()).collect();
    joined.sort_unstable();
    assert_eq!(joined, of("children"), "each member is in one stage");
    assert_eq!(body["counts"]["created"], json!(joined.len()));
}

fn states(body: &Value) -> Vec<(&str, &str)> {
    let members = body["members"].as_array().expect("a list");
    members.iter().map(|m| (m["pod"].as_str().unwrap_or("?"), m["state"].as_str().unwrap_or("?"))).collect()
}

#[test]
fn below_quorum_have_and_need_are_told_before_anybody_was() {
    let mut core = core_with(&[4000]);
    let pods = members("g", 3, 1000, &terms(4));
    core.see_all(&pods);
    let body = explain(&mut core, "g");
    assert_eq!((&body["state"], &body["verdict"]["code"]), (&json!("Gated"), &json!("GangQuorumMissing")));
    assert_eq!(body["verdict"]["message"], "waiting for the pods of gang ns/g: 3 of 4 are there");
    let counts = &body["counts"];
    assert_eq!(
        [&counts["min"], &counts["created"], &counts["missing"], &counts["gated"]],
        [&json!(4), &json!(3), &json!(1), &json!(3)]
    );
    assert_eq!((&counts["placeable"], &body["rootCause"]), (&Value::Null, &Value::Null));
    assert_eq!(body["nextRetry"]["stage"], "gated");
    assert_eq!(states(&body), [("ns/g-0", "Gated"), ("ns/g-1", "Gated"), ("ns/g-2", "Gated")]);
    let body = summary(&mut core, "g");
    assert_eq!(keys(&body["gatedChildren"]), ["ns/g-0", "ns/g-1", "ns/g-2"]);
    assert!(body["modeNote"].as_str().is_some_and(|note| note.contains("only in NonStrict")), "{body}");
    // A member with gates of its own does not count.
    core.see(&Pod { gates: vec!["example.com/hold".into()].into(), ..member("g", "held", 1000, terms(4)) });
    let body = explain(&mut core, "g");
    assert_eq!((&body["counts"]["created"], &body["counts"]["missing"]), (&json!(4), &json!(1)));
    // The wait expires.
    core.wait(700 * SECOND);
    core.wait(700 * SECOND);
    assert_eq!(explain(&mut core, "g")["verdict"]["code"], "GangQuorumOverdue");
    let queue = ask(&mut core, "/apis/v1/queue");
    let unit =
        &queue["units"].as_array().expect("units").iter().find(|u| u["key"] == "ns/g").expect("its unit");
    assert_eq!(unit["group"], json!({"gangs": ["ns/g"], "members": 3, "have": 3, "need": 4}));
}

#[test]
fn a_refused_gang_names_its_root_cause_and_what_the_best_nodes_lacked() {
    let (mut core, _) = tried(&[2000, 1000], 4, &terms(4));
    let body = explain(&mut core, "g");
    assert_eq!(body["verdict"]["code"], "GangInsufficientCapacity");
    assert_eq!((&body["counts"]["wanted"], &body["counts"]["placeable"]), (&json!(4), &json!(3)));
    let cause = &body["rootCause"];
    assert_eq!((&cause["pod"], &cause["totalNodes"]), (&json!("ns/g-3"), &json!(2)));
    let lack = &cause["lacking"][0];
    assert_eq!(cause["nodeGroups"][0]["count"], 2);
    assert_eq!(
        [&lack["resource"], &lack["requested"], &lack["available"]],
        [&json!("cpu"), &json!(1000), &json!(0)]
    );
    assert_eq!(
        states(&body),
        [("ns/g-0", "Evaluated"), ("ns/g-1", "Evaluated"), ("ns/g-2", "Evaluated"), ("ns/g-3", "Failed")]
    );
    assert_eq!(body["nextRetry"]["stage"], "unschedulable");
    assert!(
        body["nextRetry"]["wakesOn"].as_array().is_some_and(|w| w.contains(&json!("Node/Add"))),
        "{body}"
    );
    assert_eq!(body["lastAttempt"]["orders"], json!(["queue order"]));
    assert_eq!(body["held"]["cpuMilli"], 0, "nothing is held");
    assert_eq!(body["meta"]["cycleId"], 1);
    let body = summary(&mut core, "g");
    assert_eq!(keys(&body["failedChildren"]), ["ns/g-3"]);
    assert_eq!((&body["scheduleCycle"], &body["scheduleCycleValid"]), (&json!(1), &json!(false)));
    assert_eq!(body["childrenScheduleRoundMap"]["ns/g-0"], 1);
    // The explanation of a member links to the gang's.
    let pod = ask(&mut core, "/apis/v1/explain/pods/ns/g-0");
    let mut gang = pod["gang"].clone();
    let outlook = gang.as_object_mut().and_then(|gang| gang.remove("outlook")).expect("an outlook");
    assert_eq!(outlook, body_outlook(&mut core));
    assert_eq!(
        gang,
        json!({"gang": "ns/g", "member": "Evaluated", "state": "Unschedulable", "code": "GangInsufficientCapacity",
            "message": body_message(&pod), "path": "/apis/v1/explain/gangs/ns/g"})
    );
}

fn body_outlook(core: &mut Core) -> Value {
    let outlook = explain(core, "g")["outlook"].clone();
    assert_eq!(outlook["code"], "NeverFits");
    outlook
}

fn body_message(pod: &Value) -> &str {
    let message = pod["gang"]["message"].as_str().expect("a message");
    assert!(message.starts_with("gang ns/g: 3 of 4 members"), "{message}");
    message
}

#[test]
fn waiting_and_permitted_sets_are_exact() {
    let (mut core, _) = tried(&[3000], 4, &non_strict(4, 60 * SECOND));
    let body = summary(&mut core, "g");
    assert_eq!(body["state"], "Waiting");
    assert_eq!(keys(&body["waitingForBindChildren"]), ["ns/g-0", "ns/g-1", "ns/g-2"]);
    assert_eq!(body["permittedChildren"], json!({}));
    let member = &body["waitingForBindChildren"]["ns/g-0"];
    assert_eq!((&member["node"], &member["stage"]), (&json!("n0"), &json!("waiting")));
    assert_eq!(member["deadline"], "1970-01-01T00:01:00.000Z");
    assert_eq!((&body["held"]["cpuMilli"], &body["held"]["text"]["cpu"]), (&json!(3000), &json!("3")));
    assert_eq!((&body["waitTime"], &body["mode"]), (&json!(60_000_000_000_i64), &json!("NonStrict")));
    assert_eq!(keys(&body["gangGroupInfo"]["WaitingGangIDs"]), ["ns/g"]);
    assert_eq!(body["gangGroupInfo"]["RepresentativePodKey"], "ns/g-3");
    let explained = explain(&mut core, "g");
    assert_eq!(
        (&explained["verdict"]["code"], &explained["rootCause"]["pod"]),
        (&json!("GangWaiting"), &json!("ns/g-3"))
    );
    assert_eq!(explained["nextRetry"]["waitEnds"], "1970-01-01T00:01:00.000Z");
    // The fourth member finds room: all are permitted, none is bound yet.
    core.see_node(&host("more", 1000));
    core.run_after(SECOND);
    let body = summary(&mut core, "g");
    assert_eq!((keys(&body["permittedChildren"]).len(), &body["state"]), (4, &json!("Placed")));
    assert_eq!(keys(&body["gangGroupInfo"]["BindingMemberPods"]).len(), 4);
    assert_eq!((&body["held"]["cpuMilli"], &body["onceResourceSatisfied"]), (&json!(4000), &json!(true)));
    core.bind_all();
    let body = summary(&mut core, "g");
    assert_eq!((keys(&body["boundChildren"]).len(), &body["held"]["pods"]), (4, &json!(0)));
    assert_eq!(explain(&mut core, "g")["verdict"]["code"], "GangRunning");
}

#[test]
fn a_release_is_remembered() {
    let mut core = core_with(&[3000]);
    core.attempt_all(&members("g", 4, 1000, &non_strict(4, 10 * SECOND)));
    core.wait(10 * SECOND);
    let body = summary(&mut core, "g");
    assert_eq!((&body["timeouts"], &body["state"]), (&json!(1), &json!("Released")));
    assert_eq!(
        body["lastRelease"],
        json!({"code": "GangWaitTimeout", "at": "1970-01-01T00:00:10.000Z", "members": 3})
    );
    assert_eq!(core.scheduler.publish(core.now).counters.gang_timeouts, 1);
    assert_eq!(explain(&mut core, "g")["verdict"]["code"], "GangWaitTimeout");
}

#[test]
fn a_partially_bound_gang_says_what_is_missing() {
    let mut core = core_with(&[4000]);
    let of = |i: usize| in_dialect(Dialect::Unicore, "g", &format!("g-{i}"), 1000, terms(4));
    let pods: Vec<_> = (0..4).map(of).collect();
    core.attempt_all(&pods);
    for order in core.orders() {
        let is_lost = &*order.pod.key.name == "g-1";
        core.report(&order, if is_lost { refused() } else { BindOutcome::Bound });
    }
    let body = summary(&mut core, "g");
    assert_eq!((&body["state"], &body["dialect"]), (&json!("PartiallyBound"), &json!("unicore")));
    assert_eq!((&body["partiallyBound"]["bound"], &body["partiallyBound"]["min"]), (&json!(3), &json!(4)));
    let reason = body["partiallyBound"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("3 of 4 are bound; ns/g-1 is pending: "), "{reason}");
    assert_eq!(explain(&mut core, "g")["verdict"]["code"], "GangPartiallyBound");
    core.run_after(SECOND);
    core.bind_all();
    let body = summary(&mut core, "g");
    assert_eq!((&body["state"], body.get("partiallyBound")), (&json!("Running"), None));
    // The members end.
    for pod in &pods {
        let node = core.node_of(pod).expect("it is bound");
        core.see(&Pod { phase: PodPhase::Succeeded, ..on(pod, &node) });
    }
    let body = summary(&mut core, "g");
    assert_eq!((&body["state"], &body["counts"]["finished"]), (&json!("Finished"), &json!(4)));
    assert_eq!(body["finishedChildren"]["ns/g-0"]["stage"], "Succeeded");
}

#[test]
fn gangs_that_hold_what_the_other_lacks_are_a_cycle_until_one_gives_up() {
    let (a, b) = (
        members("a", 3, 1000, &non_strict(3, 60 * SECOND)),
        members("b", 3, 1000, &non_strict(3, 90 * SECOND)),
    );
    let mut core = core_with(&[1000; 2]);
    core.attempt_all(&a);
    // More room appears, and the other gang takes it first.
    core.see_node(&host("n2", 1000));
    core.see_node(&host("n3", 1000));
    core.attempt_all(&b);
    assert_eq!((core.placed(&a), core.placed(&b)), (2, 2));
    let body = ask(&mut core, "/apis/v1/gangs/interference");
    let edges: Vec<_> =
        body["edges"].as_array().expect("edges").iter().map(|e| (&e["holder"], &e["waiter"])).collect();
    assert_eq!(edges, [(&json!("ns/a"), &json!("ns/b")), (&json!("ns/b"), &json!("ns/a"))], "{body:#}");
    for edge in body["edges"].as_array().expect("edges") {
        assert!(edge["heldCpuMilli"].as_i64().is_some_and(|n| n > 0), "{edge}");
        assert_eq!(edge["resources"], json!(["cpu"]));
    }
    assert_eq!(body["cycles"][0]["gangs"], json!(["ns/a", "ns/b"]));
    assert_eq!(body["cycles"][0]["breaksAt"], "1970-01-01T00:01:00.000Z");
    let explained = explain(&mut core, "b");
    assert_eq!(
        (&explained["blocker"]["kind"], &explained["blocker"]["gangs"]),
        (&json!("holders"), &json!(["ns/a"]))
    );
    for pod in &a {
        core.delete(pod);
    }
    core.run_after(SECOND);
    let body = ask(&mut core, "/apis/v1/gangs/interference");
    assert_eq!((&body["cycles"], &body["edges"]), (&json!([]), &json!([])));
}

#[test]
fn a_gang_of_a_group_names_the_one_it_waits_for() {
    let groups: Arc<[GangKey]> = Arc::new([GangKey::new("ns", "a"), GangKey::new("ns", "b")]);
    let terms = |min| GangTerms { groups: groups.clone(), ..terms(min) };
    let mut core = core_with(&[8000]);
    core.see_all(&members("a", 2, 1000, &terms(2)));
    let body = explain(&mut core, "a");
    assert_eq!(body["verdict"]["code"], "GangPartnerMissing");
    assert_eq!((&body["blocker"]["kind"], &body["blocker"]["gangs"]), (&json!("gang"), &json!(["ns/b"])));
    core.see_all(&members("b", 1, 1000, &terms(2)));
    let body = explain(&mut core, "a");
    assert_eq!(
        (&body["verdict"]["code"], &body["blocker"]["gangs"]),
        (&json!("GangPartnerShort"), &json!(["ns/b"]))
    );
    assert_eq!(body["group"][0]["code"], "GangQuorumMissing");
    assert_eq!((&body["group"][0]["have"], &body["group"][0]["min"]), (&json!(1), &json!(2)));
    core.attempt(&member("b", "b-1", 1000, terms(2)));
    assert_eq!(explain(&mut core, "a")["verdict"]["code"], "GangPlaced");
    let body = summary(&mut core, "a");
    let info = &body["gangGroupInfo"];
    assert_eq!((&info["Initialized"], &info["GangGroupId"]), (&json!(true), &json!("ns/a,ns/b")));
    assert_eq!(keys(&info["BindingMemberPods"]).len(), 4);
}

#[test]
fn an_unknown_gang_is_not_found() {
    let mut core = core_with(&[1000]);
    for path in ["/apis/v1/plugins/Coscheduling/gang/ns/none", "/apis/v1/explain/gangs/ns/none"] {
        let Err(ReadError::NotFound { code, message }) = try_ask(&mut core, path) else { panic!("{path}") };
        assert_eq!((code, message.as_str()), ("GangNotFound", "cannot find gang ns/none"));
    }
    assert_eq!(ask(&mut core, "/apis/v1/plugins/Coscheduling/gangs"), json!({}));
    let state = ask(&mut core, "/apis/v1/plugins/Coscheduling/state");
    assert_eq!(state["gangs"], 0);
}

#[test]
fn the_metrics_count_each_gang_and_member_once() {
    let mut core = core_with(&[3000]);
    core.attempt_all(&members("runs", 2, 1000, &terms(2)));
    core.bind_all();
    core.see_all(&members("short", 1, 1000, &terms(2)));
    core.attempt_all(&members("waits", 2, 1000, &non_strict(2, 60 * SECOND)));
    let tally = pellucid::diagnosis::gangs::tally::tally(&core.scheduler.publish(core.now));
    let some: Vec<_> = tally.states.iter().filter(|(_, n)| **n > 0).map(|(state, n)| (*state, *n)).collect();
    assert_eq!(some, [("Gated", 1), ("Running", 1), ("Waiting", 1)]);
    let members =
        [("gated", 1), ("pending", 1), ("waiting", 1), ("permitted", 0), ("bound", 2), ("finished", 0)];
    assert_eq!((tally.members, tally.waiting_groups), (members, 2));
}
