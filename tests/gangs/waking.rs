//! What wakes a refused gang: whatever could help one of its members, also one that had a place and gave it up.

use std::sync::Arc;

use pellucid::model::selector::Labels;
use pellucid::model::{Node, Pod};
use pellucid::queue::QueueStage;

use crate::common::driver::Core;
use crate::common::made::{self, on};
use crate::gangs::made::{SECOND, core_with, host, member, single, terms};

/// Returns a small member that is first in its gang, and a large one. The small one takes the room that both need.
fn small_and_large() -> [Pod; 2] {
    [member("g", "a-small", 1000, terms(2)), member("g", "b-large", 2000, terms(2))]
}

fn is_asleep(core: &Core, gang: &[Pod]) -> bool {
    core.queued(&gang[0]) == Some(QueueStage::Unschedulable)
}

#[test]
fn room_for_a_member_that_had_a_place_wakes_the_gang() {
    let (mut core, gang) = (core_with(&[2000, 1000]), small_and_large());
    core.see(&on(&single("tiny", 500), "n1"));
    core.see(&on(&single("other", 500), "n1"));
    core.attempt_all(&gang);
    let (root, _) = core.refusal("g").root_cause.clone().expect("a member was refused");
    assert_eq!(&*root.name, "b-large");
    core.delete(&single("tiny", 500));
    assert!(is_asleep(&core, &gang), "neither member fits in 500m");
    core.delete(&single("other", 500));
    assert!(!is_asleep(&core, &gang), "the small member leaves its place to the large one");
    core.run_after(10 * SECOND);
    assert_eq!(core.placed(&gang), 2);
}

fn labelled(name: &str, milli_cpu: i64) -> Node {
    Node { labels: Labels::new([("pool".into(), "x".into())]), ..host(name, milli_cpu) }
}

#[test]
fn plugins_that_refused_no_member_are_asked_too() {
    let mut core = made::core_with(&[labelled("n0", 2000), host("n1", 1000)]);
    let mut gang = small_and_large();
    Arc::make_mut(&mut gang[0].spec).affinity.selector = [("pool".into(), "x".into())].into();
    core.attempt_all(&gang);
    assert!(is_asleep(&core, &gang));
    // The large member lacks room alone, which no label gives it.
    core.see_node(&labelled("n1", 1000));
    assert!(!is_asleep(&core, &gang));
    core.run_after(10 * SECOND);
    assert_eq!(core.placed(&gang), 2);
    let names: Vec<String> = gang.iter().filter_map(|pod| core.node_of(pod)).collect();
    assert_eq!(names, ["n1", "n0"]);
}

#[test]
fn members_of_many_kinds_wait_in_few_groups() {
    // A hundred kinds have places, and one fits nowhere.
    let mut core = core_with(&[100_000, 1000]);
    let mut gang: Vec<Pod> =
        (0..100).map(|i| member("g", &format!("g-{i:02}"), 100 + i, terms(101))).collect();
    gang.push(member("g", "huge", 200_000, terms(101)));
    core.see(&on(&single("filler", 1000), "n1"));
    core.attempt_all(&gang);
    let groups = core.unit(&gang[0]).map(|unit| unit.waits.len());
    assert_eq!(groups, Some(2), "those that were refused, and those that had places");
    core.attempt(&single("more", 100));
    core.bind_all();
    assert!(is_asleep(&core, &gang), "another pod gives nobody room");
    core.delete(&single("filler", 1000));
    assert!(!is_asleep(&core, &gang));
}

#[test]
fn members_of_a_few_kinds_do_not_wake_for_what_helps_none() {
    let mut core = core_with(&[10_000, 50]);
    let mut gang: Vec<Pod> = (0..20).map(|i| member("g", &format!("g-{i:02}"), 100 + i, terms(21))).collect();
    gang.push(member("g", "huge", 20_000, terms(21)));
    core.see(&on(&single("filler", 50), "n1"));
    core.attempt_all(&gang);
    assert_eq!(core.unit(&gang[0]).map(|unit| unit.waits.len()), Some(21), "each kind is asked about");
    core.delete(&single("filler", 50));
    assert!(is_asleep(&core, &gang), "no member is as small as the room");
}

#[test]
fn whoever_stands_for_others_may_leave() {
    // Two kinds are refused, and the first of each stands for it.
    let mut core = core_with(&[1000, 1000]);
    let fillers = [single("filler-0", 1000), single("filler-1", 1000)];
    core.see(&on(&fillers[0], "n0"));
    core.see(&on(&fillers[1], "n1"));
    let large = (0..2).map(|i| member("g", &format!("a-{i}"), 3000, terms(2)));
    let small = (0..3).map(|i| member("g", &format!("b-{i}"), 1000, terms(2)));
    let gang: Vec<Pod> = large.chain(small).collect();
    core.attempt_all(&gang);
    core.delete(&gang[2]);
    assert!(is_asleep(&core, &gang));
    core.delete(&fillers[0]);
    assert!(!is_asleep(&core, &gang), "the other small ones wait for room as well");
    core.delete(&fillers[1]);
    core.run_after(60 * SECOND);
    assert_eq!(core.placed(&gang[3..]), 2);
}
