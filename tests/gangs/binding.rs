//! After the decision: failed Bindings, lost members.

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{BindOutcome, EffectReport};
use pellucid::queue::QueueStage;

use crate::made::{SECOND, core_with, in_dialect, members, terms};
use pellucid::model::gang::Dialect;

#[test]
fn after_a_failed_binding_the_missing_member_is_planned_first() {
    let mut core = core_with(&[4000]);
    let of = |i: usize| in_dialect(Dialect::Unicore, "g", &format!("g-{i}"), 1000, terms(4));
    let pods: Vec<_> = (0..4).map(of).collect();
    core.see_all(&pods);
    core.run();
    let orders = core.orders();
    assert_eq!(orders.len(), 4);
    for (i, order) in orders.iter().enumerate() {
        let refused =
            BindOutcome::Refused { status: 500, reason: "InternalError".into(), message: "no".into() };
        let outcome = if i == 1 { refused } else { BindOutcome::Bound };
        let report = EffectReport::BindDone { id: order.id, uid: order.pod.uid.clone(), outcome };
        core.apply(Input::Report(report));
    }
    assert_eq!((core.gang("g").counts.bound, core.gang("g").counts.pending), (3, 1));
    assert!(core.gang("g").history.is_partial);
    assert_eq!(core.queue_stage(&pods[1]), Some(QueueStage::ErrorBackoff));
    // Another pod of the same priority wants the room.
    core.see(&crate::made::single("other", 1000));
    core.wait(SECOND);
    core.run();
    core.bind_all();
    assert_eq!(core.gang("g").counts.bound, 4);
    assert!(!core.gang("g").history.is_partial);
}

#[test]
fn a_member_that_is_deleted_while_bound_is_replaced_alone() {
    let mut core = core_with(&[4000]);
    let pods = members("g", 2, 1000, &terms(2));
    core.see_all(&pods);
    core.run();
    core.bind_all();
    core.delete(&pods[0]);
    assert_eq!(core.gang("g").counts.bound, 1);
    assert_eq!(core.stage(&pods[1]), Some(Stage::Bound));
}
