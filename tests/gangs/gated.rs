//! Gangs that cannot be planned yet, and the messages of their pods.

use pellucid::queue::QueueStage;

use crate::gangs::made::{SECOND, core_with, members, terms, tried};

#[test]
fn below_its_quorum_a_gang_is_gated_and_says_have_and_need() {
    let mut core = core_with(&[10_000]);
    let pods = members("g", 4, 1000, &terms(4));
    core.attempt_all(&pods[..3]);
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Gated));
    assert!(core.conditions().is_empty(), "it may be complete in a moment");
    core.wait(SECOND);
    let told = core.conditions();
    let text = "waiting for the pods of gang ns/g: 3 of 4 are there";
    assert_eq!(told.len(), 3);
    assert_eq!((told[0].1, &*told[0].2), ("SchedulingGated", text));
    core.attempt(&pods[3]);
    assert_eq!(core.placed(&pods), 4);
}

#[test]
fn a_gang_that_stays_short_for_its_wait_is_marked() {
    let mut core = core_with(&[10_000]);
    let mut wanted = terms(4);
    wanted.wait = Some(30 * SECOND);
    let pods = members("g", 3, 1000, &wanted);
    core.see_all(&pods);
    core.wait(SECOND);
    core.conditions();
    core.wait(29 * SECOND);
    assert!(core.gang("g").history.is_overdue);
    core.wait(SECOND);
    let told = core.conditions();
    assert_eq!(told.len(), 3);
    assert_eq!(
        (told[0].1, &*told[0].2),
        ("Unschedulable", "waited too long for the pods of gang ns/g: 3 of 4 are there")
    );
    assert_eq!(core.gang("g").history.timeouts, 1);
}

#[test]
fn a_gang_that_loses_a_member_is_gated_again() {
    let (mut core, pods) = tried(&[1000], 4, &terms(4));
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Unschedulable));
    core.delete(&pods[3]);
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Gated));
}

#[test]
fn a_refused_gang_whose_quorum_is_lowered_is_tried_again() {
    use pellucid::cluster::Input;
    use pellucid::model::gang::{Dialect, GangDeclaration, GangTerms, PodGroup};
    use pellucid::model::{GangKey, Object, ObjectKind, Pod};
    let group = |min| {
        let terms = GangTerms { min: Some(min), ..GangTerms::default() };
        let (kind, key) = (ObjectKind::PodGroupX, GangKey::new("ns", "g"));
        Input::ObjectApplied(Object::PodGroup(PodGroup { kind, key, terms, ..PodGroup::default() }).into())
    };
    let of = |i: usize| {
        let made = crate::gangs::made::in_dialect(
            Dialect::Coscheduling,
            "g",
            &format!("g-{i}"),
            1000,
            GangTerms::default(),
        );
        let mark = made.gang.as_deref().cloned().map(|mark| GangDeclaration { needs_group: true, ..mark });
        Pod { gang: mark.map(Into::into), ..made }
    };
    let mut core = core_with(&[3000]);
    let pods: Vec<Pod> = (0..4).map(of).collect();
    core.see_all(&pods);
    core.wait(SECOND);
    assert_eq!(core.message(&pods[0]), "waiting for PodGroup ns/g");
    core.apply(group(4));
    core.run();
    assert_eq!(core.placed(&pods), 0);
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Unschedulable));
    core.apply(group(3));
    assert_eq!(core.queued(&pods[0]), Some(QueueStage::Backoff));
    core.run_after(SECOND);
    assert_eq!(core.placed(&pods), 3);
    let (kind, key) = (ObjectKind::PodGroupX, ("ns".into(), "g".into()));
    core.apply(Input::ObjectDeleted(kind, key));
    core.wait(SECOND);
    assert_eq!(core.message(&pods[3]), "PodGroup ns/g was deleted");
}
