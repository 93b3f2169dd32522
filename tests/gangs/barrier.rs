//! The Bindings of a strict quorum begin together: one member waits for its volume, and the others wait for that
//! member.

use pellucid::cluster::Stage;
use pellucid::model::Pod;
use pellucid::model::effect::{ObjectOrder, WriteOutcome};
use pellucid::model::gang::Dialect;
use pellucid::recording::{GangOutcome, Outcome};
use pellucid_api::reason::ReasonCode;

use crate::common::driver::Core;
use crate::common::made::ranked;
use crate::common::storage::{bound, claim, class, using, volume};
use crate::gangs::made::{SECOND, core_with, host, in_dialect, terms};

/// Makes three placed members; the volume of the first is not bound.
fn world() -> (Core, Vec<Pod>, ObjectOrder) {
    world_of(Dialect::Unicore)
}

fn world_of(dialect: Dialect) -> (Core, Vec<Pod>, ObjectOrder) {
    let mut core = core_with(&[3000]);
    for object in [class(), volume("disk", None), claim("data")] {
        core.see_object(object);
    }
    let of = |i: usize| in_dialect(dialect, "g", &format!("g-{i}"), 1000, terms(3));
    let pods = vec![using(of(0), "data"), of(1), of(2)];
    core.attempt_all(&pods);
    assert_eq!(core.gang("g").counts.permitted, 3);
    let mut ordered = core.ordered();
    assert!(ordered.bindings.is_empty(), "a volume is waited for");
    let write = ordered.writes.remove(0);
    (core, pods, write)
}

#[test]
fn all_bindings_are_ordered_when_the_last_pre_bind_succeeded() {
    let (mut core, pods, write) = world();
    core.settle(&write, WriteOutcome::Written);
    assert!(core.orders().is_empty(), "the claim is not bound yet");
    assert!(pods.iter().all(|pod| core.stage(pod) == Some(Stage::PreBinding)));
    bound("disk", None, "data").into_iter().for_each(|object| core.see_object(object));
    assert_eq!(core.bind_all(), ["g-0", "g-1", "g-2"]);
}

#[test]
fn a_quorum_that_was_broken_is_planned_as_a_whole_again_also_where_once_is_enough() {
    let (mut core, pods, write) = world_of(Dialect::Koordinator);
    core.settle(&write, WriteOutcome::Refused { status: 409, message: "modified".into() });
    assert_eq!((core.placed(&pods), core.gang("g").history.once_satisfied), (0, false));
    // There is room for two of three: none is bound alone.
    core.see_node(&host("n0", 2000));
    core.run_after(20 * SECOND);
    assert_eq!((core.placed(&pods), core.orders().len()), (0, 0));
}

#[test]
fn a_member_that_others_bind_is_not_waited_for_and_not_given_up() {
    let (mut core, pods, write) = world();
    let bound = |pod: &Pod| Pod { node_name: Some("n0".into()), ..pod.clone() };
    core.see(&bound(&pods[1]));
    assert_eq!(core.stage(&pods[1]), Some(Stage::Bound));
    core.settle(&write, WriteOutcome::Refused { status: 409, message: "modified".into() });
    assert_eq!(core.stage(&pods[1]), Some(Stage::Bound), "it runs");
    assert_eq!((core.stage(&pods[0]), core.stage(&pods[2])), (Some(Stage::Pending), Some(Stage::Pending)));
    // Another scheduler binds the member whose volume is awaited: the others continue.
    let (mut core, pods, _) = world();
    core.see(&bound(&pods[0]));
    assert_eq!(core.bind_all(), ["g-1", "g-2"]);
}

#[test]
fn a_pre_bind_that_fails_takes_the_whole_quorum_with_it() {
    let (mut core, pods, write) = world();
    core.settle(&write, WriteOutcome::Refused { status: 409, message: "modified".into() });
    assert_eq!((core.placed(&pods), core.gang("g").counts.pending), (0, 3));
    assert_eq!(core.scheduler.n_in_flight(), 0);
    assert_eq!(core.message(&pods[1]), "gang ns/g: ns/g-0 was lost before the first Binding of its quorum");
    let is_broken =
        |o| matches!(o, GangOutcome::Released { code: ReasonCode::GangQuorumBroken, members: 2, .. });
    assert!(is_broken(core.outcome("g")));
    core.run_after(20 * SECOND);
    assert_eq!(core.placed(&pods), 3, "tried again");
}

#[test]
fn a_member_that_is_deleted_before_the_bindings_takes_the_others_with_it() {
    let (mut core, pods, _) = world();
    core.delete(&pods[2]);
    assert_eq!((core.placed(&pods), core.gang("g").counts.pending), (0, 2));
    assert!(core.orders().is_empty());
    core.see(&pods[2]);
    core.run_after(20 * SECOND);
    assert_eq!(core.placed(&pods), 3);
}

#[test]
fn a_pod_of_higher_priority_takes_the_places_of_a_quorum_before_its_bindings_in_memory() {
    let (mut core, pods, _) = world();
    let top = ranked("top", 1000, 10);
    core.attempt(&top);
    assert_eq!((core.placed(&pods), core.placed(&[top])), (0, 1), "one victim takes its quorum with it");
    let codes: Vec<ReasonCode> = pods.iter().flat_map(|pod| code_of(&core, pod)).collect();
    assert!(codes.contains(&ReasonCode::PlacementTakenBack), "{codes:?}");
    assert!(codes.contains(&ReasonCode::GangQuorumBroken), "{codes:?}");
}

fn code_of(core: &Core, pod: &Pod) -> Option<ReasonCode> {
    match &core.scheduler.verdict(core.id(pod)?)?.outcome {
        Outcome::Refused(refusal) => refusal.reasons().next().map(|(reason, _)| reason.code),
        _ => None,
    }
}
