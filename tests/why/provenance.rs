//! The origin of an explanation: inherited, stale or refreshed.

use pellucid::model::Pod;
use serde_json::json;

use crate::common::made::{SECOND, core_with, node, pod};
use crate::common::reads::{ask, list, number, text};

#[test]
fn the_second_of_two_equal_pods_inherits_the_verdict_of_the_first() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    for (name, milli_cpu) in [("p1", 5000), ("p2", 5000), ("other", 6000), ("p3", 5000)] {
        core.see(&pod(name, milli_cpu));
    }
    core.run();
    let mut from = |name: &str| {
        let body = ask(&mut core, &format!("/apis/v1/explain/pods/ns/{name}"));
        body["meta"].get("inheritedFrom").cloned()
    };
    assert_eq!((from("p1"), from("other")), (None, None));
    assert_eq!((from("p2"), from("p3")), (Some(json!("ns/p1")), Some(json!("ns/p1"))));
    // A node that changed in between is evaluated again.
    core.see_node(&node("b", 2000));
    core.attempt(&pod("p4", 5000));
    assert!(ask(&mut core, "/apis/v1/explain/pods/ns/p4")["meta"].get("inheritedFrom").is_none());
    // The first pod is deleted: the second has no origin to name, and the third names the second.
    core.delete(&pod("p1", 5000));
    assert!(ask(&mut core, "/apis/v1/explain/pods/ns/p2")["meta"].get("inheritedFrom").is_none());
    assert_eq!(ask(&mut core, "/apis/v1/explain/pods/ns/p3")["meta"]["inheritedFrom"], "ns/p2");
}

#[test]
fn a_verdict_is_stale_once_a_node_changed_until_it_is_asked_anew() {
    let mut core = core_with(&[node("a", 1000)]);
    core.attempt(&pod("p", 5000));
    let path = "/apis/v1/explain/pods/ns/p";
    let before = ask(&mut core, path);
    assert_eq!((&before["meta"]["stale"], &before["meta"]["refreshed"]), (&json!(false), &json!(false)));
    // A change that wakes no pod: the node shrinks.
    core.wait(SECOND);
    core.see_node(&node("a", 500));
    let stale = ask(&mut core, path);
    assert_eq!(stale["meta"]["stale"], true);
    assert_eq!(number(&stale, "/nodeGroups/0/shortfalls/0/available"), 1000, "as it was decided");
    let fresh = ask(&mut core, &format!("{path}?refresh=true"));
    assert_eq!((&fresh["meta"]["stale"], &fresh["meta"]["refreshed"]), (&json!(false), &json!(true)));
    assert_eq!(
        (text(&fresh, "/verdict"), number(&fresh, "/nodeGroups/0/shortfalls/0/available")),
        ("refused", 500)
    );
    assert!(number(&fresh, "/meta/snapshotGeneration") > number(&before, "/meta/snapshotGeneration"));
    assert!(text(&fresh, "/meta/decidedAt") > text(&before, "/meta/decidedAt"));
    assert_eq!(number(&fresh, "/attempts"), 1, "asking is not an attempt");
    assert_eq!(ask(&mut core, path)["meta"]["stale"], true, "asking changes nothing");
}

#[test]
fn a_pod_that_fits_by_now_says_where_and_what_it_waits_for() {
    let mut core = core_with(&[node("a", 1000)]);
    core.attempt(&pod("p", 5000));
    core.see_node(&node("b", 8000));
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p?refresh=true");
    assert_eq!((text(&body, "/verdict"), text(&body, "/placement/node")), ("fits", "b"));
    assert_eq!((text(&body, "/placement/stage"), text(&body, "/queueStage")), ("pending", "backoff"));
    assert!(text(&body, "/summary").contains("It waits for its backoff until 1970-01-01T00:00:01"), "{body}");
    assert!(list(&body, "/nodeGroups").is_empty() && list(&body, "/podReasons").is_empty());
    // The pod is placed where the refreshed explanation said.
    core.run_after(SECOND);
    assert_eq!(core.node_of(&pod("p", 5000)).as_deref(), Some("b"));
    let placed = ask(&mut core, "/apis/v1/explain/pods/ns/p?refresh=true");
    assert_eq!((text(&placed, "/verdict"), &placed["meta"]["refreshed"]), ("placed", &json!(false)));
}

#[test]
fn a_gated_pod_stays_gated() {
    let mut core = core_with(&[node("a", 1000)]);
    core.see(&Pod { gates: ["wait".into()].into(), ..pod("p", 100) });
    let body = ask(&mut core, "/apis/v1/explain/pods/ns/p?refresh=true");
    assert_eq!((text(&body, "/verdict"), text(&body, "/podReasons/0/code")), ("gated", "SchedulingGated"));
    assert_eq!(body["meta"]["refreshed"], true);
}
