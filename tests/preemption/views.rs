//! What the scheduler shows of preemption, checked for consistency.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::common::running::Running;

/// Path of preemptions, nominations and counts.
pub(crate) const STATE: &str = "/apis/v1/plugins/DefaultPreemption/state";

/// Causes of wasted evictions.
pub(crate) const CAUSES: [&str; 7] = [
    "preemptor-gone",
    "placed-elsewhere",
    "node-gone",
    "overtaken",
    "nomination-changed",
    "nothing-found",
    "chosen-again",
];

pub(crate) fn list<'a>(body: &'a Value, field: &str) -> &'a [Value] {
    body[field].as_array().unwrap_or_else(|| panic!("no list {field} in {body:#}"))
}

pub(crate) fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    body[field].as_str().unwrap_or_else(|| panic!("no text {field} in {body:#}"))
}

pub(crate) fn number(body: &Value, field: &str) -> u64 {
    body[field].as_u64().unwrap_or_else(|| panic!("no number {field} in {body:#}"))
}

/// Returns the names of a preemption's victims.
pub(crate) fn victims(preemption: &Value) -> BTreeSet<&str> {
    list(preemption, "victims").iter().map(|v| text(v, "name")).collect()
}

/// Returns how many evictions count as the preemption's own.
pub(crate) fn counted(preemption: &Value) -> u64 {
    list(preemption, "victims").iter().filter(|v| v["counted"] == true).count() as u64
}

pub(crate) fn wasted(state: &Value) -> BTreeMap<&str, u64> {
    let wasted = state["wastedEvictions"].as_object().expect("wasted evictions");
    wasted.iter().map(|(cause, n)| (cause.as_str(), n.as_u64().expect("a number"))).collect()
}

/// Returns whether every victim of the preemptions in progress is terminating or was refused.
pub(crate) fn all_ordered(state: &Value) -> bool {
    let mut victims = list(state, "underWay").iter().flat_map(|p| list(p, "victims"));
    victims.all(|v| v["state"] != "ordered")
}

/// Returns whether there are no nominations and no preemptions in progress.
pub(crate) fn is_over(state: &Value) -> bool {
    list(state, "underWay").is_empty() && list(state, "nominations").is_empty()
}

/// Checks that the counts add up and that every preemption shows how many victims it waits for.
pub(crate) fn check_state(state: &Value) {
    let open: u64 = list(state, "underWay").iter().map(counted).sum();
    let wasted: u64 = wasted(state).values().sum();
    let settled = number(state, "usefulEvictions") + wasted + number(state, "refusedEvictions");
    assert_eq!(number(state, "victims"), settled + open, "{state:#}");
    let mut evicted_for = BTreeMap::new();
    for preemption in list(state, "underWay") {
        let mut waits = 0;
        for victim in list(preemption, "victims") {
            waits += u64::from(matches!(text(victim, "state"), "ordered" | "terminating"));
            // A victim whose eviction was refused may be evicted for another pod later.
            if victim["counted"] == true && victim["state"] != "refused" {
                let earlier = evicted_for.insert(text(victim, "uid"), text(preemption, "name"));
                assert_eq!(earlier, None, "{victim} is counted twice");
            }
        }
        assert_eq!(number(preemption, "waitingFor"), waits, "{preemption:#}");
        assert!(preemption["end"].is_null(), "{preemption:#}");
    }
    let ours = list(state, "nominations").iter().filter(|n| n["by"] == "preemption");
    // A placed pod no longer needs its nomination; its preemption is over once the pod is bound.
    assert!(ours.count() <= list(state, "underWay").len(), "{state:#}");
}

/// Returns the path of a pod's preemption explanation.
pub(crate) fn path(pod: &str) -> String {
    format!("/apis/v1/explain/pods/default/{pod}/preemption")
}

/// Reads a preemptor whose victims all still exist, and checks its explanation. Returns its preemption.
pub(crate) fn check_preemptor(running: &Running, name: &str, node: &str, nodes: u64) -> Value {
    let body = running.read(&path(name));
    let preemption = &body["preemption"];
    assert_eq!((text(&body["nomination"], "node"), text(preemption, "node")), (node, node));
    assert_eq!((text(&body["nomination"], "by"), text(preemption, "name")), ("preemption", name));
    let n = list(preemption, "victims").len();
    assert!(n > 0 && number(preemption, "waitingFor") == n as u64, "{body:#}");
    assert_eq!(
        text(&body, "summary"),
        format!("Nominated to {node}; waits for {n} of {n} victims to be gone.")
    );
    assert!(body["asVictim"].is_null(), "{body:#}");
    // The search may be from an earlier attempt; its best candidate is the same node.
    let search = &body["search"];
    if !search.is_null() {
        check_search(search, node, nodes);
    }
    preemption.clone()
}

fn check_search(search: &Value, node: &str, nodes: u64) {
    assert!(number(search, "totalNodes") >= nodes);
    let candidates = list(search, "candidates");
    assert_eq!(text(&candidates[0], "node"), node, "{search:#}");
    let mut last = (0, i64::MIN, 0);
    for (place, candidate) in candidates.iter().enumerate() {
        assert_eq!(number(candidate, "rank"), place as u64 + 1);
        assert_eq!(number(candidate, "victimCount"), list(candidate, "victims").len() as u64);
        let cost = (
            number(candidate, "budgetViolations"),
            candidate["highestPriority"].as_i64().expect("a priority"),
            number(candidate, "prioritySum"),
        );
        assert!(last <= cost, "{search:#}");
        last = cost;
    }
}

/// Reads a terminating victim, and checks that it names its preemptor.
pub(crate) fn check_victim(running: &Running, victim: &Value, by: &Value) {
    let body = running.read(&path(text(victim, "name")));
    let seen = &body["asVictim"];
    assert_eq!(
        (text(&seen["victim"], "state"), &seen["victim"]["counted"]),
        ("terminating", &Value::Bool(true))
    );
    assert_eq!((&seen["preemption"]["name"], &seen["preemption"]["node"]), (&by["name"], &by["node"]));
    assert_eq!((&seen["victim"]["uid"], &seen["preemption"]["uid"]), (&victim["uid"], &by["uid"]));
    let (who, node) = (text(by, "name"), text(by, "node"));
    let (theirs, its) = (&by["priority"], &victim["priority"]);
    assert_eq!(
        text(seen, "rule"),
        format!(
            "default/{who} has priority {theirs}, above this pod's {its}, and did not fit on {node} beside it"
        )
    );
    assert!(body["nomination"].is_null() && body["preemption"].is_null(), "{body:#}");
    assert!(
        text(&body, "summary").starts_with(&format!("Victim (terminating) of default/{who} on {node}: "))
    );
}

/// Checks that the metrics agree with the state once nothing is in progress.
pub(crate) fn check_metrics(running: &Running) {
    let state = running.read(STATE);
    let metric = |sample: &str| running.metric(sample) as u64;
    assert_eq!(metric("scheduler_preemption_attempts_total"), number(&state, "attempts"));
    assert_eq!(metric("pellucid_preemptions_total"), number(&state, "preemptions"));
    assert!(metric("scheduler_preemption_victims_count") >= number(&state, "preemptions"));
    assert!(metric("scheduler_preemption_victims_sum") >= number(&state, "victims"));
    assert_eq!(metric("pellucid_useful_evictions_total"), number(&state, "usefulEvictions"));
    assert_eq!(metric("pellucid_refused_evictions_total"), number(&state, "refusedEvictions"));
    let wasted = wasted(&state);
    assert!(wasted.keys().all(|cause| CAUSES.contains(cause)), "{wasted:?}");
    for cause in CAUSES {
        let sample = format!("pellucid_wasted_evictions_total{{cause=\"{cause}\"}}");
        assert_eq!(metric(&sample), wasted.get(cause).copied().unwrap_or_default(), "{cause}");
    }
    assert_eq!(metric("pellucid_nominated_pods"), 0);
    assert_eq!(metric("pellucid_preemptions_under_way"), 0);
}
