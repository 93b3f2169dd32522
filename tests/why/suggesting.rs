//! Suggestions for gangs so large that not everything can be tried.

use pellucid::model::Node;
use serde_json::Value;

use crate::common::driver::Core;
use crate::common::made::{core_with, in_gang, node, on, pod};
use crate::common::reads::{ask, list, number, text};

const MEMBERS: usize = 1_000;

fn add_gang(core: &mut Core, milli_cpu: i64) {
    for i in 0..MEMBERS {
        core.see(&in_gang(pod(&format!("g-{i:04}"), milli_cpu), "g", MEMBERS as u32));
    }
}

/// Makes five thousand nodes: `roomy` of them have room for one member, the others for a quarter of one.
fn large(roomy: usize) -> Core {
    let nodes: Vec<Node> = (0..5_000).map(|i| node(&format!("n{i:04}"), 16_000)).collect();
    let mut core = core_with(&nodes);
    for i in 0..nodes.len() {
        let taken = if i < roomy { 12_000 } else { 15_000 };
        core.see(&on(&pod(&format!("filler-{i:04}"), taken), &format!("n{i:04}")));
    }
    add_gang(&mut core, 4000);
    core
}

fn texts(body: &Value) -> Vec<&str> {
    list(body, "/fixes").iter().map(|fix| text(fix, "/text")).collect()
}

const SUGGESTIONS: &str = "/apis/v1/explain/gangs/ns/g/suggestions";

#[test]
fn a_gang_of_a_thousand_on_five_thousand_nodes() {
    let mut core = large(800);
    let body = ask(&mut core, SUGGESTIONS);
    assert_eq!(
        texts(&body),
        [
            "lower the quorum of gang ns/g to 800 instead of 1000",
            "request 2 of cpu instead of 4",
            "add a node like n0000 (50 times)"
        ]
    );
    // 800 of the 1000 have places.
    assert_eq!((number(&body, "/slotsMissing"), &body["meta"]["truncated"]), (200, &Value::Bool(false)));
    assert_eq!(list(&body, "/fixes/2/edits").len(), 50);
}

#[test]
fn when_the_plans_run_out_it_says_so_and_tells_nothing_that_was_not_tried() {
    let closed = |i: usize| {
        let mut node = Node { unschedulable: true, ..node(&format!("n{i:02}"), 4000) };
        node.allocatable.pods = 110;
        node
    };
    let mut core = core_with(&(0..30).map(closed).collect::<Vec<_>>());
    add_gang(&mut core, 100);
    let body = ask(&mut core, SUGGESTIONS);
    // None of the 25 opened nodes can be left out, and verifying that takes more plans than there are.
    assert_eq!(body["meta"]["truncated"], true, "{body:#}");
    assert!(texts(&body).iter().all(|text| !text.contains("uncordon")), "{body:#}");
}

/// The first member that finds no place wants a machine that nobody has. Without it the others would be a quorum, if a cordoned node
/// were open.
#[test]
fn room_is_looked_for_by_what_other_members_lack_too() {
    let closed = Node { unschedulable: true, ..node("n1", 2000) };
    let mut core = core_with(&[node("n0", 2000), closed]);
    for (name, milli_cpu) in [("a", 2000), ("b", 6000), ("c", 2000)] {
        core.see(&in_gang(pod(name, milli_cpu), "g", 2));
    }
    core.run();
    let body = ask(&mut core, SUGGESTIONS);
    assert!(texts(&body).contains(&"uncordon node n1"), "{body:#}");
}
