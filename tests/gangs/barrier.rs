//! The Bindings of a strict quorum begin together: one member waits for its volume, and the others wait for that
//! member.

use std::sync::Arc;

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{Effect, EffectReport, VolumeOrder, VolumeOutcome};
use pellucid::model::gang::Dialect;
use pellucid::model::storage::{
    AccessModes, ClaimPhase, ClaimRef, ClaimUse, PersistentVolume, PersistentVolumeClaim, PodVolumes,
    StorageClass,
};
use pellucid::model::{Object, Pod};
use pellucid::recording::GangOutcome;
use pellucid_api::reason::ReasonCode;

use crate::driver::Core;
use crate::made::{SECOND, core_with, in_dialect, terms};

fn disk() -> PersistentVolume {
    PersistentVolume {
        name: "disk".into(),
        uid: "uid-disk".into(),
        resource_version: "1".into(),
        capacity: 1 << 30,
        access_modes: AccessModes::RWO,
        class: "local".into(),
        is_free: true,
        ..PersistentVolume::default()
    }
}

fn claim() -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        namespace: "ns".into(),
        name: "data".into(),
        uid: "uid-data".into(),
        resource_version: "1".into(),
        requested: 1 << 30,
        access_modes: AccessModes::RWO,
        class: Some("local".into()),
        ..PersistentVolumeClaim::default()
    }
}

fn see_object(core: &mut Core, object: Object) {
    core.apply(Input::ObjectApplied(Arc::new(object)));
}

/// Makes three placed members; the volume of the first is not bound.
fn world() -> (Core, Vec<Pod>, VolumeOrder) {
    world_of(Dialect::Unicore)
}

fn world_of(dialect: Dialect) -> (Core, Vec<Pod>, VolumeOrder) {
    let mut core = core_with(&[3000]);
    let class = StorageClass {
        name: "local".into(),
        provisioner: "kubernetes.io/no-provisioner".into(),
        waits_for_consumer: true,
        ..StorageClass::default()
    };
    for object in [
        Object::StorageClass(class),
        Object::PersistentVolume(disk()),
        Object::PersistentVolumeClaim(claim()),
    ] {
        see_object(&mut core, object);
    }
    let of = |i: usize| in_dialect(dialect, "g", &format!("g-{i}"), 1000, terms(3));
    let mut pods: Vec<Pod> = (0..3).map(of).collect();
    let claims = [ClaimUse { claim: "data".into(), owner: None }].into();
    Arc::make_mut(&mut pods[0].spec).volumes = PodVolumes { claims, disks: [].into() };
    core.see_all(&pods);
    core.run();
    assert_eq!(core.gang("g").counts.permitted, 3);
    let effects = core.scheduler.take_effects();
    assert!(effects.iter().all(|e| !matches!(e, Effect::Bind(_))), "a volume is waited for");
    let write =
        effects.into_iter().find_map(|e| if let Effect::Volume(order) = e { Some(order) } else { None });
    (core, pods, write.expect("a write for the volume"))
}

fn settle(core: &mut Core, order: &VolumeOrder, outcome: VolumeOutcome) {
    let report = EffectReport::VolumeDone { id: order.id, uid: order.pod.uid.clone(), outcome };
    core.apply(Input::Report(report));
}

#[test]
fn all_bindings_are_ordered_when_the_last_pre_bind_succeeded() {
    let (mut core, pods, write) = world();
    settle(&mut core, &write, VolumeOutcome::Written);
    assert!(core.orders().is_empty(), "the claim is not bound yet");
    assert!(pods.iter().all(|pod| core.stage(pod) == Some(Stage::PreBinding)));
    let by = ClaimRef { namespace: "ns".into(), name: "data".into(), uid: "uid-data".into() };
    let disk = PersistentVolume { claim: Some(by), is_free: false, resource_version: "2".into(), ..disk() };
    see_object(&mut core, Object::PersistentVolume(disk));
    let bound = PersistentVolumeClaim {
        volume: "disk".into(),
        phase: ClaimPhase::Bound,
        bind_completed: true,
        resource_version: "2".into(),
        ..claim()
    };
    see_object(&mut core, Object::PersistentVolumeClaim(bound));
    assert_eq!(core.bind_all(), ["g-0", "g-1", "g-2"]);
}

#[test]
fn a_quorum_that_was_broken_is_planned_as_a_whole_again_also_where_once_is_enough() {
    let (mut core, pods, write) = world_of(Dialect::Koordinator);
    settle(&mut core, &write, VolumeOutcome::Refused { status: 409, message: "modified".into() });
    assert_eq!((core.placed(&pods), core.gang("g").history.once_satisfied), (0, false));
    // There is room for two of three: none is bound alone.
    core.see_node("n0", 2000);
    core.wait(20 * SECOND);
    core.run();
    assert_eq!((core.placed(&pods), core.orders().len()), (0, 0));
}

#[test]
fn a_member_that_others_bind_is_not_waited_for_and_not_given_up() {
    let (mut core, pods, write) = world();
    let bound = |pod: &Pod| Pod { node_name: Some("n0".into()), ..pod.clone() };
    core.see(&bound(&pods[1]));
    assert_eq!(core.stage(&pods[1]), Some(Stage::Bound));
    settle(&mut core, &write, VolumeOutcome::Refused { status: 409, message: "modified".into() });
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
    settle(&mut core, &write, VolumeOutcome::Refused { status: 409, message: "modified".into() });
    assert_eq!((core.placed(&pods), core.gang("g").counts.pending), (0, 3));
    assert_eq!(core.scheduler.n_in_flight(), 0);
    assert_eq!(core.message(&pods[1]), "gang ns/g: ns/g-0 was lost before the first Binding of its quorum");
    let is_broken =
        |o| matches!(o, GangOutcome::Released { code: ReasonCode::GangQuorumBroken, members: 2, .. });
    assert!(is_broken(core.outcome("g")));
    core.wait(20 * SECOND);
    core.run();
    assert_eq!(core.placed(&pods), 3, "tried again");
}

#[test]
fn a_member_that_is_deleted_before_the_bindings_takes_the_others_with_it() {
    let (mut core, pods, _) = world();
    core.delete(&pods[2]);
    assert_eq!((core.placed(&pods), core.gang("g").counts.pending), (0, 2));
    assert!(core.orders().is_empty());
    core.see(&pods[2]);
    core.wait(20 * SECOND);
    core.run();
    assert_eq!(core.placed(&pods), 3);
}

#[test]
fn a_pod_of_higher_priority_takes_the_places_of_a_quorum_before_its_bindings_in_memory() {
    let (mut core, pods, _) = world();
    let top = Pod { priority: 10, ..crate::made::single("top", 1000) };
    core.see(&top);
    core.run();
    assert_eq!((core.placed(&pods), core.placed(&[top])), (0, 1), "one victim takes its quorum with it");
    let codes: Vec<ReasonCode> = pods.iter().flat_map(|pod| code_of(&core, pod)).collect();
    assert!(codes.contains(&ReasonCode::PlacementTakenBack), "{codes:?}");
    assert!(codes.contains(&ReasonCode::GangQuorumBroken), "{codes:?}");
}

fn code_of(core: &Core, pod: &Pod) -> Option<ReasonCode> {
    use pellucid::recording::Outcome;
    match &core.scheduler.verdict(core.id(pod)?)?.outcome {
        Outcome::Refused(refusal) => refusal.reasons().next().map(|(reason, _)| reason.code),
        _ => None,
    }
}
