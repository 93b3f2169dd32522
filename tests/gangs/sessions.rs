//! The session of article 000: what is remembered of a gang whose pods are gone, and for how long.

use std::sync::Arc;

use pellucid::model::gang::Controller;
use pellucid::model::{GangKey, Pod};
use pellucid::queue::QueueStage;

use crate::gangs::made::{SECOND, core_with, host, members, terms, tried};

fn owned(pods: &[Pod], owner: &str) -> Vec<Pod> {
    let of = |pod: &Pod| Pod {
        uid: format!("{}-{owner}", pod.uid).into(),
        controller: Some(Controller { uid: owner.into(), kind: "ReplicaSet".into(), name: Arc::from("rs") }),
        ..pod.clone()
    };
    pods.iter().map(of).collect()
}

#[test]
fn a_rejection_lasts_until_the_next_attempt_is_due_also_for_new_pods() {
    let mut core = core_with(&[1000]);
    let pods = owned(&members("g", 2, 1000, &terms(2)), "one");
    core.attempt_all(&pods);
    core.see_node(&host("more", 1000));
    pods.iter().for_each(|pod| core.delete(pod));
    let again: Vec<Pod> =
        pods.iter().map(|p| Pod { uid: format!("{}-2", p.uid).into(), ..p.clone() }).collect();
    core.attempt_all(&again);
    assert_eq!(core.queued(&again[0]), Some(QueueStage::ErrorBackoff), "rejected less than a second ago");
    core.run_after(SECOND);
    assert_eq!(core.placed(&again), 2);
}

#[test]
fn pods_of_a_new_owner_are_a_new_gang_at_once() {
    let mut core = core_with(&[1000]);
    let pods = owned(&members("g", 2, 1000, &terms(2)), "one");
    core.attempt_all(&pods);
    core.see_node(&host("more", 1000));
    pods.iter().for_each(|pod| core.delete(pod));
    core.attempt_all(&owned(&members("g", 2, 1000, &terms(2)), "two"));
    assert_eq!(core.gang("g").counts.permitted, 2);
    assert_eq!(core.gang("g").history.attempts, 1);
}

#[test]
fn a_gang_without_pods_is_forgotten_after_ten_minutes() {
    let (mut core, pods) = tried(&[1000], 2, &terms(2));
    pods.iter().for_each(|pod| core.delete(pod));
    assert_eq!(core.scheduler.next_deadline(), Some(600 * SECOND));
    core.wait(599 * SECOND);
    assert_eq!(core.gang("g").history.attempts, 1);
    core.wait(SECOND);
    assert!(core.scheduler.cluster().gangs().get(&GangKey::new("ns", "g")).is_none());
    assert_eq!(core.scheduler.next_deadline(), None);
}

#[test]
fn article_001_five_pods_and_their_rounds() {
    let mut core = core_with(&[3000]);
    let pods = members("g", 5, 1000, &terms(5));
    core.see_all(&pods);
    assert_eq!(core.gang("g").history.schedule_cycle, 1);
    assert!(core.gang("g").members.values().all(|m| m.round == 0));
    core.run();
    let history = &core.gang("g").history;
    assert_eq!((history.schedule_cycle, history.is_cycle_valid), (1, false), "the fourth pod has failed");
    assert!(core.gang("g").members.values().all(|m| m.round == 1), "all were tried in the round");
    core.see_node(&host("more", 1000));
    core.run_after(SECOND);
    let history = &core.gang("g").history;
    assert_eq!((history.schedule_cycle, history.is_cycle_valid), (2, false));
    core.see_node(&host("enough", 1000));
    core.run_after(2 * SECOND);
    let history = &core.gang("g").history;
    assert_eq!((history.schedule_cycle, history.is_cycle_valid), (3, true));
    assert_eq!(core.placed(&pods), 5);
}
