//! Preemption told by both sides, also after it happened: who had to go for whom, for what, and why other nodes were
//! passed over.

use pellucid::model::Pod;
use serde_json::{Value, json};

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, on, pod, ranked};
use crate::common::reads::{ask, list, number, text, try_ask};

fn preemption(core: &mut Core, name: &str) -> Value {
    ask(core, &format!("/apis/v1/explain/pods/ns/{name}/preemption"))
}

fn verdict(core: &mut Core, name: &str) -> String {
    text(&preemption(core, name), "/verdict/code").to_owned()
}

fn last_entry(core: &mut Core, name: &str, kind: &str) -> Value {
    let body = ask(core, &format!("/apis/v1/history/pods/ns/{name}"));
    let found = list(&body, "/entries").iter().rfind(|entry| entry["kind"] == kind).cloned();
    found.unwrap_or_else(|| panic!("no {kind} in {body:#}"))
}

/// Makes three full nodes: the pod of priority 1 on `a` is the cheapest victim, `c` has a pod of equal priority.
fn evicted() -> Core {
    let mut core = core_with(&[node("a", 1000), node("b", 1000), node("c", 1000)]);
    core.see(&on(&ranked("low-a", 800, 1), "a"));
    core.see(&on(&ranked("low-b", 800, 5), "b"));
    core.see(&on(&ranked("equal", 800, 10), "c"));
    core.wait(SECOND);
    core.attempt(&ranked("high", 800, 10));
    core
}

/// Has the victim go, and the preemptor take its place.
fn settle(core: &mut Core) {
    core.wait(SECOND);
    core.delete(&pod("low-a", 800));
    core.run();
    core.see(&on(&ranked("high", 800, 10), "a"));
}

#[test]
fn the_search_and_its_victims_are_there_before_and_after() {
    let mut core = evicted();
    let before = preemption(&mut core, "high");
    assert_eq!(text(&before, "/verdict/code"), "PreemptionUnderWay");
    settle(&mut core);
    core.wait(90_000 * SECOND);
    let after = preemption(&mut core, "high");
    assert_eq!(text(&after, "/verdict/code"), "Preempted");
    for pointer in ["/search", "/lacked", "/chosen/victims/0/uid"] {
        assert_eq!(before.pointer(pointer), after.pointer(pointer), "{pointer}");
    }
    let candidates = list(&after, "/search/candidates");
    assert_eq!((text(&candidates[0], "/node"), candidates[0].get("passedOver")), ("a", None));
    assert_eq!(
        text(&candidates[1], "/passedOver"),
        "lowest priority of the most important victim: 1 on a, 5 here"
    );
    assert_eq!(list(&after, "/search/rejected")[0]["exampleNodes"], json!(["c"]));
    assert_eq!(
        text(&after, "/lacked/text"),
        "Insufficient cpu (cpu: requested 800m, at most 200m free (on a))"
    );
    assert_eq!(
        text(&after, "/summary"),
        "Its last preemption, on a, ended: bound. Victims: ns/low-a (gone)."
    );
}

#[test]
fn evictions_are_listed_and_stand_in_both_histories() {
    let mut core = evicted();
    assert_eq!(list(&ask(&mut core, "/apis/v1/evictions"), "/evictions")[0]["state"], "ordered");
    settle(&mut core);
    let body = ask(&mut core, "/apis/v1/evictions");
    let [eviction] = list(&body, "/evictions") else { panic!("{body:#}") };
    let expected = json!({"at": "1970-01-01T00:00:01.000Z", "type": "Preemption", "victim": "ns/low-a", "node": "a",
        "victimPriority": 1, "preemptor": "ns/high", "preemptorPriority": 10, "state": "gone", "end": "bound",
        "violatesBudget": false, "counted": true, "stateSince": "1970-01-01T00:00:02.000Z"});
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&eviction[field], value, "{field}");
    }
    assert_eq!(number(eviction, "/lacked/shortfalls/0/shortfall"), 600);
    assert_eq!(
        text(eviction, "/message"),
        "ns/low-a (priority 1) had to go from a for ns/high (priority 10), which lacked there: Insufficient cpu (cpu: \
         requested 800m, at most 200m free (on a)). It is gone. ns/high was bound there: the preemption ended."
    );
    let of_victim = ask(&mut core, "/apis/v1/explain/pods/ns/low-a/evictions");
    assert_eq!((&list(&of_victim, "/events")[0], &of_victim["summary"]), (eviction, &eviction["message"]));
    assert!(list(&ask(&mut core, "/apis/v1/explain/pods/ns/low-b/evictions"), "/events").is_empty());
    assert!(try_ask(&mut core, "/apis/v1/explain/pods/ns/nobody/evictions").is_err());

    let told = last_entry(&mut core, "low-a", "Evicted");
    assert_eq!((text(&told, "/by"), &told["codes"]), ("ns/high", &json!(["InsufficientResource"])));
    assert_eq!(
        text(&told, "/message"),
        "Its eviction from a was ordered to make room for ns/high (priority 10, above its 1); there it lacked: \
         Insufficient cpu (cpu: requested 800m, at most 200m free (on a))."
    );
    let told = last_entry(&mut core, "high", "PreemptionEnded");
    assert_eq!((text(&told, "/node"), &told["victims"]), ("a", &json!(["ns/low-a"])));
    assert_eq!(text(&told, "/message"), "Its preemption on a ended: bound; its victims: ns/low-a (gone).");
}

#[test]
fn a_preemption_in_vain_says_why_it_ended() {
    let mut core = evicted();
    core.delete(&ranked("high", 800, 10));
    let body = ask(&mut core, "/apis/v1/evictions");
    assert_eq!(text(&list(&body, "/evictions")[0], "/end"), "preemptor-gone");
    assert_eq!(text(&list(&body, "/evictions")[0], "/state"), "ordered");
    // What became of a victim afterwards is said as well.
    core.delete(&pod("low-a", 800));
    assert_eq!(text(&list(&ask(&mut core, "/apis/v1/evictions"), "/evictions")[0], "/state"), "gone");
    assert_eq!(last_entry(&mut core, "high", "PreemptionEnded")["victims"], json!(["ns/low-a"]));
    let body = preemption(&mut core, "high");
    assert_eq!(text(&body, "/notPending/code"), "PodDeleted");
    assert_eq!(text(&body, "/search/candidates/0/node"), "a");
}

#[test]
fn what_forbids_preemption_is_its_verdict() {
    let mut core = core_with(&[node("a", 1000)]);
    core.see(&on(&ranked("running", 800, 5), "a"));
    core.attempt(&Pod { never_preempts: true, ..ranked("polite", 800, 100) });
    core.attempt(&ranked("equal", 800, 5));
    assert_eq!(verdict(&mut core, "polite"), "PreemptionNotAllowed");
    let body = preemption(&mut core, "equal");
    assert_eq!(text(&body, "/verdict/code"), "PreemptionNotAllowed");
    assert_eq!(
        text(&body, "/verdict/message"),
        "No pod on any node has a priority below its own, 5: the lowest is 5."
    );
    // A pod of lower priority whose going does not help: allowed, and nothing found.
    core.see(&on(&ranked("tiny", 10, 0), "a"));
    core.attempt(&ranked("wide", 1000, 5));
    assert_eq!(verdict(&mut core, "wide"), "NoCandidates");
    assert_eq!(verdict(&mut core, "running"), "PreemptionNotNeeded");
}
