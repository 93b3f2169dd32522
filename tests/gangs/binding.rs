//! After the decision: failed Bindings, lost members.

use pellucid::cluster::Stage;
use pellucid::model::effect::BindOutcome;
use pellucid::model::gang::Dialect;
use pellucid::queue::QueueStage;

use crate::common::made::refused;
use crate::gangs::made::{SECOND, core_with, in_dialect, single, terms, tried};

#[test]
fn after_a_failed_binding_the_missing_member_is_planned_first() {
    let mut core = core_with(&[4000]);
    let of = |i: usize| in_dialect(Dialect::Unicore, "g", &format!("g-{i}"), 1000, terms(4));
    let pods: Vec<_> = (0..4).map(of).collect();
    core.attempt_all(&pods);
    let orders = core.orders();
    assert_eq!(orders.len(), 4);
    for (i, order) in orders.iter().enumerate() {
        core.report(order, if i == 1 { refused() } else { BindOutcome::Bound });
    }
    assert_eq!((core.gang("g").counts.bound, core.gang("g").counts.pending), (3, 1));
    assert!(core.gang("g").history.is_partial);
    assert_eq!(core.queued(&pods[1]), Some(QueueStage::ErrorBackoff));
    // Another pod of the same priority wants the room.
    core.see(&single("other", 1000));
    core.run_after(SECOND);
    core.bind_all();
    assert_eq!(core.gang("g").counts.bound, 4);
    assert!(!core.gang("g").history.is_partial);
}

#[test]
fn a_member_that_is_deleted_while_bound_is_replaced_alone() {
    let (mut core, pods) = tried(&[4000], 2, &terms(2));
    core.bind_all();
    core.delete(&pods[0]);
    assert_eq!(core.gang("g").counts.bound, 1);
    assert_eq!(core.stage(&pods[1]), Some(Stage::Bound));
}
