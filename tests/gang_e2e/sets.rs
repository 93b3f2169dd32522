//! Waiting, permitted and bound members, observed in those states: the sets of the gang endpoint are exact.

use std::collections::BTreeSet;
use std::time::Duration;

use pellucid::sandbox::{Fault, Match};
use serde_json::{Value, json};

use crate::common::running::{Hand, Running, node, start_with, with};
use crate::gang_e2e::made::{light, names, nodes, patient};

/// The sets of a gang; each member is in exactly one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sets {
    gated: Vec<&'static str>,
    pending: Vec<&'static str>,
    waiting: Vec<&'static str>,
    permitted: Vec<&'static str>,
    bound: Vec<&'static str>,
    finished: Vec<&'static str>,
}

fn keys(body: &Value, set: &str) -> BTreeSet<String> {
    body[set].as_object().unwrap_or_else(|| panic!("no {set}: {body:#}")).keys().cloned().collect()
}

/// Waits until gang `g` has these sets, and checks that the rest of the body agrees with them.
fn sets_are(running: &Running, wanted: &Sets) -> Value {
    let expected = |names: &[&str]| names.iter().map(|n| format!("default/{n}")).collect::<BTreeSet<_>>();
    let named = [
        ("gatedChildren", &wanted.gated),
        ("pendingChildren", &wanted.pending),
        ("permittedChildren", &wanted.permitted),
        ("boundChildren", &wanted.bound),
        ("finishedChildren", &wanted.finished),
    ];
    let held: Vec<&str> = [&wanted.waiting[..], &wanted.permitted].concat();
    let body = running.gang("g", &format!("{wanted:?}"), |body| {
        named.iter().all(|(set, names)| keys(body, set) == expected(names))
            && keys(body, "waitingForBindChildren") == expected(&held)
    });
    // The created members are the disjoint union of the sets, also in numbers.
    let of_all = [
        ("gated", &wanted.gated),
        ("pending", &wanted.pending),
        ("waiting", &wanted.waiting),
        ("permitted", &wanted.permitted),
        ("bound", &wanted.bound),
        ("finished", &wanted.finished),
    ];
    let mut all = Vec::new();
    for (stage, names) in of_all {
        assert_eq!(body["counts"][stage], names.len(), "{stage}: {body:#}");
        all.extend(names);
    }
    assert_eq!(keys(&body, "children"), expected(&all), "{body:#}");
    assert_eq!(
        (&body["counts"]["created"], expected(&all).len()),
        (&json!(all.len()), all.len()),
        "{body:#}"
    );
    assert_eq!(body["held"]["pods"], held.len(), "{body:#}");
    assert_eq!(body["held"]["cpuMilli"], 1000 * held.len(), "{body:#}");
    body
}

/// The start of a test's clock, and later times.
const AT_0: &str = "2026-01-01T00:00:00.000Z";
const AT_5: &str = "2026-01-01T00:00:05.000Z";
const AT_60: &str = "2026-01-01T00:01:00.000Z";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_middle_of_a_wait_the_sets_are_exact() {
    let mut running = start_with(nodes(1, 3), None, Some(Hand::default())).await;
    let member = |name: &str| patient("g", name, 5, 1000, "60s");
    // Equal members of the same age are tried in name order.
    running.create(names("g", 5).iter().map(|name| member(name)));
    running.create([with(member("g-5"), "schedulingGates", json!([{"name": "example.com/not-yet"}]))]);
    let sets = Sets {
        gated: vec!["g-5"],
        pending: vec!["g-3", "g-4"],
        waiting: vec!["g-0", "g-1", "g-2"],
        ..Sets::default()
    };
    let body = sets_are(&running, &sets);
    for name in ["g-0", "g-1", "g-2"] {
        let member = &body["waitingForBindChildren"][format!("default/{name}")];
        let wanted = json!({
            "pod": format!("default/{name}"), "state": "Waiting", "stage": "waiting", "node": "n0",
            "since": AT_0, "deadline": AT_60,
        });
        assert_eq!(*member, wanted);
    }
    for name in ["g-3", "g-4"] {
        let member = &body["pendingChildren"][format!("default/{name}")];
        assert!(member["node"].is_null() && member["deadline"].is_null(), "{member:#}");
        assert!(member["reason"].as_str().is_some_and(|m| m.contains("Insufficient cpu")), "{member:#}");
    }
    assert_eq!(
        (&body["state"], &body["onceResourceSatisfied"]),
        (&json!("Waiting"), &json!(false)),
        "{body:#}"
    );
    assert_eq!(running.placed("g-").await.0.len(), 0, "waiting members have no node on the API server");
    running.let_pass(5).await;
    running.create([node("more", "z", 2)]);
    running.all_run(&names("g", 5)).await;
    let bound = vec!["g-0", "g-1", "g-2", "g-3", "g-4"];
    let body = sets_are(&running, &Sets { gated: vec!["g-5"], bound, ..Sets::default() });
    let member = &body["boundChildren"]["default/g-4"];
    assert_eq!((&member["node"], &member["since"]), (&json!("more"), &json!(AT_5)), "{body:#}");
    assert!(member["deadline"].is_null(), "{body:#}");
    assert_eq!(body["state"], "Running", "{body:#}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_the_middle_of_a_slow_bind_the_sets_are_exact() {
    let mut running = start_with(nodes(1, 4), None, Some(Hand::default())).await;
    let slow = Match { path_contains: "/pods/g-2/".into(), ..Match::on("POST", "pods/binding") };
    running.sandbox.faults().next(slow, Fault::Delay(Duration::from_secs(30)));
    let members = names("g", 4);
    running.create(members.iter().map(|name| light("g", name, 4, 1000)));
    let bound = vec!["g-0", "g-1", "g-3"];
    let body = sets_are(&running, &Sets { permitted: vec!["g-2"], bound, ..Sets::default() });
    let wanted = json!({
        "pod": "default/g-2", "state": "Permitted", "stage": "binding", "node": "n0", "since": AT_0,
    });
    assert_eq!(body["permittedChildren"]["default/g-2"], wanted);
    assert_eq!(body["waitingForBindChildren"]["default/g-2"], wanted);
    assert_eq!(body["gangGroupInfo"]["BindingMemberPods"], json!({"default/g-2": {}}), "{body:#}");
    assert_eq!(body["onceResourceSatisfied"], true, "{body:#}");
    assert_eq!(body["partiallyBound"]["reason"], "3 of 4 are bound; 1 are on the way", "{body:#}");
    for name in ["g-0", "g-1", "g-3"] {
        running.bound(name).await;
    }
    let (on, left) = running.placed("g-").await;
    assert_eq!((on.len(), left.into_iter().collect::<Vec<_>>()), (3, vec!["g-2".to_owned()]));
    running.pass(30);
    running.all_run(&members).await;
    let bound = vec!["g-0", "g-1", "g-2", "g-3"];
    let body = sets_are(&running, &Sets { bound, ..Sets::default() });
    assert!(body["partiallyBound"].is_null() && body["state"] == "Running", "{body:#}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_binding_fails_is_planned_again_beside_those_that_are_bound() {
    let mut running = start_with(nodes(1, 4), None, Some(Hand::default())).await;
    let refused = Match { path_contains: "/pods/g-1/".into(), ..Match::on("POST", "pods/binding") };
    running.sandbox.faults().next(refused, Fault::Status(403));
    let members = names("g", 4);
    running.create(members.iter().map(|name| light("g", name, 4, 1000)));
    // The member is in backoff: the gang shows what is missing, and why.
    let bound = vec!["g-0", "g-2", "g-3"];
    let body = sets_are(&running, &Sets { pending: vec!["g-1"], bound, ..Sets::default() });
    let part = &body["partiallyBound"];
    assert_eq!((&body["state"], &part["bound"]), (&json!("PartiallyBound"), &json!(3)), "{body:#}");
    let reason = part["reason"].as_str().unwrap_or_default();
    assert!(reason.starts_with("3 of 4 are bound; default/g-1 is pending: "), "{body:#}");
    assert!(reason.contains("403"), "{body:#}");
    let told = running.gang_explained("g", "partial", |b| b["verdict"]["code"] == "GangPartiallyBound");
    assert_eq!((&told["partiallyBound"], &told["counts"]["pending"]), (part, &json!(1)), "{told:#}");
    running.let_pass(10).await;
    running.all_run(&members).await;
    let bound = vec!["g-0", "g-1", "g-2", "g-3"];
    let body = sets_are(&running, &Sets { bound, ..Sets::default() });
    assert!(body["partiallyBound"].is_null() && body["state"] == "Running", "{body:#}");
    assert_eq!(running.sandbox.faults().pending(), 0, "the Binding was refused once");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_ended_is_in_the_set_of_finished_ones() {
    let mut running = start_with(nodes(1, 4), None, Some(Hand::default())).await;
    let members = names("g", 3);
    running.create(members.iter().map(|name| light("g", name, 3, 1000)));
    running.all_run(&members).await;
    running.set_status("g-1", json!({"phase": "Succeeded"})).await;
    let sets = Sets { bound: vec!["g-0", "g-2"], finished: vec!["g-1"], ..Sets::default() };
    let body = sets_are(&running, &sets);
    let member = &body["finishedChildren"]["default/g-1"];
    assert_eq!((&member["state"], &member["stage"]), (&json!("Finished"), &json!("Succeeded")), "{body:#}");
    running.stop().await;
}
