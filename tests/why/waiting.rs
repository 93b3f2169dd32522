//! Pending pods: queue positions and the pending summary.

use std::collections::BTreeSet;

use pellucid::cluster::{Input, Stage};
use pellucid::diagnosis::views::summary::DIMENSIONS;
use pellucid::model::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::cluster::config;
use crate::common::driver::Core;
use crate::common::made::{core, core_with, in_gang, node, pod, unreadable};
use crate::common::reads::{ask, ask_snapshot, code_of, list, number, text, try_ask};
use crate::why::fixing::controlled;
use crate::why::stories::{ours, story};

fn member(gang: &str, name: &str, min: u32) -> Pod {
    in_gang(pod(name, 100), gang, min)
}

/// Returns the sum of a field over the rows.
fn sum(body: &Value, field: &str) -> i64 {
    list(body, "/rows").iter().map(|row| number(row, &format!("/{field}"))).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..config() })]

    #[test]
    fn every_roll_up_adds_up_and_each_pod_is_in_one_stage(
        story in story(),
        by in prop::sample::subsequence(DIMENSIONS, 1..=4),
    ) {
        let mut core = story.play();
        let snapshot = core.scheduler.publish(core.now);
        let unbound = ours(&core, |r| r.pod.node_name.is_none() && r.stage != Stage::Bound);
        let body = ask_snapshot(&snapshot, &core, &format!("/apis/v1/summary/pending?by={}", by.join(","))).expect("it adds up");
        prop_assert_eq!(number(&body, "/totalPending") as usize, unbound.len());
        prop_assert_eq!(sum(&body, "pods"), number(&body, "/totalPending"));
        let registered = ask_snapshot(&snapshot, &core, "/apis/v1/reasons").expect("it answers");
        for row in list(&body, "/rows") {
            prop_assert!(number(row, "/nodes") <= number(row, "/occurrences"));
            prop_assert!(number(row, "/units") <= number(row, "/pods"));
            if let Some(code) = row.get("code") {
                prop_assert!(list(&registered, "/reasons").iter().any(|r| r["code"] == *code), "{}", code);
            }
        }
        // Each waiting unit of the queue is in one stage, at the position that the list shows.
        let queue = ask_snapshot(&snapshot, &core, "/apis/v1/queue").expect("it answers");
        let mut seen = BTreeSet::new();
        for unit in list(&queue, "/units") {
            for pod in list(unit, "/pods") {
                prop_assert!(seen.insert(pod.as_str().expect("a key").to_owned()), "{} is there twice", pod);
            }
            let asked = ask_snapshot(&snapshot, &core, &format!("/apis/v1/queue?position={}", text(unit, "/key"))).expect("listed");
            prop_assert_eq!(number(&asked, "/position") as usize, list(&asked, "/ahead").len());
            prop_assert_eq!(&asked["stage"], &unit["stage"]);
            if unit["stage"] == "active" {
                prop_assert_eq!(&asked["position"], &unit["position"]);
            }
        }
        let waiting = ours(&core, |r| r.stage == Stage::Pending);
        prop_assert_eq!(seen.into_iter().collect::<Vec<_>>(), waiting);
    }
}

#[test]
fn each_kind_of_waiting_has_a_code() {
    let mut core = core_with(&[node("a", 1000), node("b", 1000)]);
    core.see(&Pod { gates: ["g".into()].into(), ..pod("gated", 100) });
    core.see(&member("crew", "crew-1", 3));
    core.see(&pod("large", 5000));
    core.see(&pod("larger", 6000));
    core.place(&pod("small", 100));
    core.see(&pod("fresh", 200));
    core.apply(Input::Quarantined(unreadable(&pod("odd", 100))));
    let body = ask(&mut core, "/apis/v1/summary/pending?by=code,stage,resource");
    assert_eq!(number(&body, "/totalPending"), 7);
    let rows: BTreeSet<(String, String, String, i64, i64)> = list(&body, "/rows")
        .iter()
        .map(|row| {
            let field = |name: &str| text(row, &format!("/{name}")).to_owned();
            (
                field("code"),
                field("stage"),
                field("resource"),
                number(row, "/pods"),
                number(row, "/occurrences"),
            )
        })
        .collect();
    let row = |code: &str, stage: &str, resource: &str, pods, occurrences| {
        (code.to_owned(), stage.to_owned(), resource.to_owned(), pods, occurrences)
    };
    let want = BTreeSet::from([
        row("SchedulingGated", "gated", "", 1, 0),
        row("GangQuorumMissing", "gated", "", 1, 0),
        row("InsufficientResource", "unschedulable", "cpu", 2, 4),
        row("Placed", "in-flight", "", 1, 0),
        row("NotTried", "active", "", 1, 0),
        row("Unreadable", "quarantined", "", 1, 0),
    ]);
    assert_eq!(rows, want);
    assert_eq!(number(&list(&ask(&mut core, "/apis/v1/summary/pending"), "/rows")[0], "/pods"), 2);
    let refused = try_ask(&mut core, "/apis/v1/summary/pending?by=code,colour");
    let message = format!("{refused:?}");
    assert!(message.contains("`colour`") && message.contains("namespace"), "{message}");
    assert_eq!(code_of(refused), "UnknownDimension");
}

#[test]
fn members_that_wait_at_permit_are_pending_too() {
    let mut core = core_with(&[node("a", 250)]);
    let patient = |name: &str| {
        let mut pod = member("crew", name, 3);
        if let Some(mark) = pod.gang.as_mut().map(std::sync::Arc::make_mut) {
            mark.terms.mode = Some(pellucid::model::gang::GangMode::NonStrict);
        }
        pod
    };
    for name in ["c1", "c2", "c3"] {
        core.see(&patient(name));
    }
    core.run();
    let body = ask(&mut core, "/apis/v1/summary/pending");
    let count = |code: &str| {
        let row = list(&body, "/rows").iter().find(|row| row["code"] == code);
        row.map_or(0, |row| number(row, "/pods"))
    };
    assert_eq!((number(&body, "/totalPending"), count("WaitingAtPermit")), (3, 2), "{body}");
    assert_eq!(sum(&ask(&mut core, "/apis/v1/summary/pending?by=gang"), "pods"), 3);
}

#[test]
fn who_is_ahead_is_named_with_what_it_asks_for() {
    let mut core: Core = core();
    core.see(&Pod { priority: 10, ..pod("high", 300) });
    core.see(&pod("first", 100));
    core.see(&pod("second", 100));
    for name in ["m1", "m2"] {
        core.see(&Pod { priority: 5, ..member("crew", name, 2) });
    }
    let body = ask(&mut core, "/apis/v1/queue?position=ns/second");
    assert_eq!(
        (number(&body, "/position"), text(&body, "/stage"), text(&body, "/unit")),
        (3, "active", "ns/second")
    );
    let keys: Vec<&str> = list(&body, "/ahead").iter().map(|unit| text(unit, "/key")).collect();
    assert_eq!(keys, ["ns/high", "ns/crew", "ns/first"]);
    let crew = &list(&body, "/ahead")[1];
    assert_eq!((text(crew, "/gang"), number(crew, "/size"), number(crew, "/priority")), ("ns/crew", 2, 5));
    assert_eq!(crew["request"], json!({"cpu": 200, "memory": 0}));
    // A member has the position of its gang.
    let of_member = ask(&mut core, "/apis/v1/queue?position=ns/m2");
    assert_eq!((text(&of_member, "/unit"), number(&of_member, "/position")), ("ns/crew", 1));
    assert_eq!(ask(&mut core, "/apis/v1/queue?position=ns/crew")["ahead"], of_member["ahead"]);
    // Without nodes all units are refused; each waits for an event.
    core.run();
    let refused = ask(&mut core, "/apis/v1/queue?position=ns/second");
    assert_eq!((number(&refused, "/position"), text(&refused, "/stage")), (0, "unschedulable"));
    assert!(text(&refused, "/positionMeaning").contains("waits for an event"));
    for (wrong, code) in
        [("ns/nobody", "NotInQueue"), ("nobody", "InvalidParameter"), ("/x", "InvalidParameter")]
    {
        assert_eq!(code_of(try_ask(&mut core, &format!("/apis/v1/queue?position={wrong}"))), code);
    }
}

#[test]
fn what_is_made_alike_is_one_row_and_its_pods_are_listed_alone() {
    let mut core = core_with(&[node("a", 1000)]);
    let made = |name: &str, cpu, owner: &str, created, priority| {
        controlled(Pod { created, priority, ..pod(name, cpu) }, "Job", owner)
    };
    // Two shapes of one controller are one row, two shapes of no controller are two.
    for one in [
        made("a-1", 5000, "a", 300, 1),
        made("a-2", 6000, "a", 200, 7),
        made("b-1", 5000, "b", 100, 3),
        Pod { created: 50, ..pod("lone-1", 5000) },
        Pod { created: 60, ..pod("lone-2", 5000) },
        Pod { created: 400, ..pod("other", 7000) },
    ] {
        core.see(&one);
    }
    core.run();
    let mut rows = |sort: &str| {
        let body = ask(&mut core, &format!("/apis/v1/summary/pending?by=ownerOrShape{sort}"));
        list(&body, "/rows").to_vec()
    };
    let examples = |rows: &[Value]| -> Vec<String> {
        rows.iter()
            .map(|row| text(row, "/example").rsplit('/').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(examples(&rows("&sort=-age")), ["lone-1", "b-1", "a-1", "other"]);
    assert_eq!(examples(&rows("&sort=-priority,-age")), ["a-1", "b-1", "lone-1", "other"]);
    let all = rows("");
    for row in &all {
        assert_eq!(row.get("shape").is_some(), row["owner"] == "", "{row}");
        let path = format!("/apis/v1/explain/pods?like={}", text(row, "/example"));
        let alike = ask(&mut core, &path);
        assert_eq!(number(&alike, "/count"), number(row, "/pods"), "{row}");
    }
    assert_eq!(all.iter().map(|row| number(row, "/pods")).collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/explain/pods?like=plain")), "InvalidParameter");
    assert_eq!(code_of(try_ask(&mut core, "/apis/v1/explain/pods?like=ns/nobody")), "PodNotFound");
}
