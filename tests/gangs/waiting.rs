//! NonStrict mode: members that fit wait for the others.

use pellucid::cluster::Stage;
use pellucid::model::gang::Dialect;
use pellucid::recording::GangOutcome;
use pellucid_api::reason::ReasonCode;

use crate::gangs::made::{SECOND, core_with, host, in_dialect, member, members, non_strict, single, tried};

#[test]
fn members_that_fit_wait_and_go_on_when_the_others_fit() {
    let (mut core, pods) = tried(&[3000], 4, &non_strict(4, 60 * SECOND));
    assert_eq!(core.placed(&pods), 3);
    assert_eq!((core.gang("g").counts.waiting, core.gang("g").counts.pending), (3, 1));
    assert!(core.orders().is_empty(), "nobody is bound yet");
    assert!(matches!(core.outcome("g"), GangOutcome::Waiting { placed: 3, .. }));
    let deadline = core.gang("g").members.values().find_map(|m| m.deadline);
    assert_eq!(deadline, Some(60 * SECOND));
    core.see_node(&host("more", 1000));
    core.run_after(SECOND);
    assert_eq!(core.bind_all().len(), 4);
    assert_eq!(core.gang("g").counts.bound, 4);
}

#[test]
fn the_deadline_releases_all_and_says_so() {
    let (mut core, pods) = tried(&[3000], 4, &non_strict(4, 10 * SECOND));
    assert_eq!(core.stage(&pods[0]), Some(Stage::Waiting));
    assert_eq!(core.scheduler.next_deadline(), Some(10 * SECOND));
    core.wait(10 * SECOND);
    assert_eq!((core.placed(&pods), core.gang("g").counts.pending), (0, 4));
    assert_eq!(core.gang("g").history.timeouts, 1);
    assert!(matches!(
        core.outcome("g"),
        GangOutcome::Released { code: ReasonCode::GangWaitTimeout, members: 3, .. }
    ));
    assert_eq!(core.message(&pods[0]), "gang ns/g: the wait for the other members ran out");
    // A pod that was kept out is placed, and the gang tries again.
    let other = single("other", 3000);
    core.attempt(&other);
    assert_eq!(core.placed(&[other]), 1);
}

#[test]
fn a_failed_member_does_not_stop_its_siblings() {
    let mut core = core_with(&[1000]);
    let wait = non_strict(2, 60 * SECOND);
    let (a, b) = (member("g", "pod-a", 5000, wait.clone()), member("g", "pod-b", 1000, wait));
    core.attempt_all(&[a.clone(), b.clone()]);
    assert_eq!((core.stage(&a), core.stage(&b)), (Some(Stage::Pending), Some(Stage::Waiting)));
    assert_eq!(core.message(&a), "0/1 nodes are available: 1 Insufficient cpu.");
}

#[test]
fn the_gap_rule_of_scheduler_plugins() {
    for (room, waits, bound) in [(18, 18, 0), (17, 0, 0), (20, 0, 20)] {
        let mut core = core_with(&[room * 1000]);
        let of = |i: usize| {
            in_dialect(Dialect::Coscheduling, "g", &format!("p{i}"), 1000, non_strict(20, 60 * SECOND))
        };
        let pods: Vec<_> = (0..21).map(of).collect();
        core.attempt_all(&pods);
        assert_eq!(core.gang("g").counts.waiting, waits, "{room} assigned");
        core.bind_all();
        assert_eq!(core.gang("g").counts.bound, bound, "{room} assigned");
        if waits + bound == 0 {
            assert_eq!(core.refusal("g").code, ReasonCode::GangRejected);
        }
    }
}

#[test]
fn gangs_that_reject_themselves_do_not_wake_each_other_for_ever() {
    let mut core = core_with(&[5000]);
    for gang in ["a", "b"] {
        let of = |i: usize| {
            in_dialect(Dialect::Coscheduling, gang, &format!("{gang}{i}"), 1000, non_strict(20, 60 * SECOND))
        };
        core.see_all(&(0..20).map(of).collect::<Vec<_>>());
    }
    let steps = std::iter::from_fn(|| core.step()).take(100).count();
    assert_eq!(steps, 2, "each is tried once");
}

#[test]
fn members_that_wait_go_on_when_the_quorum_comes_by_other_ways() {
    let (mut core, pods) = tried(&[3000], 4, &non_strict(4, 60 * SECOND));
    assert_eq!(core.gang("g").counts.waiting, 3);
    let missing = pods.iter().find(|pod| core.stage(pod) == Some(Stage::Pending)).expect("one waits").clone();
    core.see(&pellucid::model::Pod { node_name: Some("elsewhere".into()), ..missing });
    assert_eq!(core.gang("g").counts.waiting, 0);
    assert_eq!(core.bind_all().len(), 3);
}

#[test]
fn a_gangs_rank_is_its_highest_members_whoever_changes() {
    let mut core = core_with(&[1000]);
    let mut pods = members("g", 3, 1000, &crate::gangs::made::terms(3));
    pods[0].priority = 7;
    core.attempt_all(&pods);
    assert_eq!(core.unit(&pods[1]).map(|u| u.rank), Some(7));
    core.see(&pellucid::model::Pod { phase: pellucid::model::pod::PodPhase::Unknown, ..pods[1].clone() });
    assert_eq!(core.unit(&pods[1]).map(|u| u.rank), Some(7));
}
