//! Volumes between the decision and the Binding: what is held, written, awaited and released.

use pellucid::cluster::Stage;
use pellucid::model::effect::{ObjectWrite, WriteOutcome};
use pellucid::model::selector::Labels;
use pellucid::model::{Node, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use pellucid_api::reason::ReasonCode;

use crate::common::driver::Core;
use crate::common::made::{SECOND, core_with, node, pod};
use crate::common::storage::{self, bound, claim, class, volume};

fn using(name: &str, claim: &str) -> Pod {
    storage::using(pod(name, 100), claim)
}

/// Makes two nodes, one volume on `a`, and two claims for it.
fn world() -> Core {
    let hosts = [("a", 1000), ("b", 4000)].map(|(name, milli_cpu)| Node {
        labels: Labels::new([("host".into(), name.into())]),
        ..node(name, milli_cpu)
    });
    let mut core = core_with(&hosts);
    for object in [class(), volume("disk", Some("a")), claim("data"), claim("other")] {
        core.see_object(object);
    }
    core
}

#[test]
fn a_pod_is_bound_after_its_volume() {
    let mut core = world();
    let pod = using("db", "data");
    core.attempt(&pod);
    assert_eq!((core.node_of(&pod).as_deref(), core.stage(&pod)), (Some("a"), Some(Stage::PreBinding)));
    let writes = core.ordered().writes;
    let [order] = &writes[..] else { panic!("one write, not {writes:?}") };
    let ObjectWrite::Patch { object, patch, .. } = &order.write else { panic!("a patch, not {order:?}") };
    assert_eq!((object.to_string().as_str(), order.plugin), ("persistentvolumes disk", "VolumeBinding"));
    assert_eq!(patch["spec"]["claimRef"]["name"], "data");

    // The volume is held, so another pod finds none.
    let late = using("late", "other");
    core.attempt(&late);
    let id = core.id(&late).expect("it waits");
    let Some(Outcome::Refused(refusal)) = core.scheduler.verdict(id).map(|v| v.outcome) else {
        panic!("it is refused")
    };
    assert!(refusal.reasons().any(|(r, _)| r.code == ReasonCode::NoVolumeToBind), "{}", refusal.message());

    core.settle(order, WriteOutcome::Written);
    assert_eq!(core.stage(&pod), Some(Stage::PreBinding), "the claim is not bound yet");
    bound("disk", Some("a"), "data").into_iter().for_each(|object| core.see_object(object));
    assert_eq!(core.stage(&pod), Some(Stage::Permitted));
    assert_eq!(core.orders().len(), 1);
    assert_eq!(core.ordered().writes.len(), 0);
}

#[test]
fn a_failed_pre_bind_gives_all_back_and_is_tried_again() {
    let mut core = world();
    let pod = using("db", "data");
    core.attempt(&pod);
    let order = core.ordered().writes.remove(0);
    core.settle(
        &order,
        WriteOutcome::Refused { status: 409, message: "the object has been modified".into() },
    );
    assert_eq!((core.node_of(&pod), core.queued(&pod)), (None, Some(QueueStage::ErrorBackoff)));
    assert_eq!(core.scheduler.n_in_flight(), 0);
    let id = core.id(&pod).expect("it waits");
    let Some(Outcome::Refused(refusal)) = core.scheduler.verdict(id).map(|v| v.outcome) else {
        panic!("it is refused")
    };
    let cause = refusal.pod_cause.as_ref().expect("the pod as a whole");
    assert_eq!((cause.plugin, cause.reasons[0].code), ("VolumeBinding", ReasonCode::PreBindFailed));
    assert!(refusal.message().contains("HTTP 409"), "{}", refusal.message());

    // The hold is released: the other pod gets the volume.
    let other = using("other", "other");
    core.attempt(&other);
    assert_eq!(core.stage(&other), Some(Stage::PreBinding));
    core.delete(&other);
    core.run_after(20 * SECOND);
    assert_eq!(core.stage(&pod), Some(Stage::PreBinding), "tried again");
    assert_eq!(core.ordered().writes.len(), 2);
}

#[test]
fn a_pre_bind_that_takes_too_long_is_given_up() {
    let mut core = world();
    let pod = using("db", "data");
    core.attempt(&pod);
    let order = core.ordered().writes.remove(0);
    core.settle(&order, WriteOutcome::Written);
    let deadline = core.scheduler.next_deadline().expect("it waits for something");
    assert_eq!(deadline, core.now.monotonic + 600 * SECOND);
    core.wait(600 * SECOND);
    assert_eq!((core.node_of(&pod), core.queued(&pod)), (None, Some(QueueStage::ErrorBackoff)));
}

#[test]
fn a_pod_that_goes_while_its_volumes_are_bound_leaves_nothing_behind() {
    let mut core = world();
    let pod = using("db", "data");
    core.attempt(&pod);
    let order = core.ordered().writes.remove(0);
    core.delete(&pod);
    core.settle(&order, WriteOutcome::Written);
    assert_eq!((core.scheduler.n_in_flight(), core.scheduler.n_unsettled()), (0, 0));
    core.attempt(&using("next", "other"));
    assert_eq!(core.ordered().writes.len(), 1, "the volume is free again");
}
