//! Volumes between the decision and the Binding: what is held, written, awaited and released.

use std::sync::Arc;

use pellucid::cluster::{Input, Stage};
use pellucid::model::effect::{Effect, EffectReport, VolumeOrder, VolumeOutcome, VolumeWrite};
use pellucid::model::selector::{Labels, NodeSelectorTerm, Operator, Requirement};
use pellucid::model::storage::{
    AccessModes, ClaimPhase, ClaimRef, ClaimUse, PersistentVolume, PersistentVolumeClaim, PodVolumes,
    StorageClass,
};
use pellucid::model::{Node, Object, Pod};
use pellucid::queue::QueueStage;
use pellucid::recording::Outcome;
use pellucid_api::reason::ReasonCode;

use crate::driver::Core;
use crate::made::{SECOND, core_with, node, pod};

fn class() -> Object {
    Object::StorageClass(StorageClass {
        name: "local".into(),
        provisioner: "kubernetes.io/no-provisioner".into(),
        waits_for_consumer: true,
        ..StorageClass::default()
    })
}

fn claim(name: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        resource_version: "1".into(),
        requested: 1 << 30,
        access_modes: AccessModes::RWO,
        class: Some("local".into()),
        ..PersistentVolumeClaim::default()
    }
}

/// Makes a volume on node `a`.
fn volume(name: &str) -> PersistentVolume {
    let here = Requirement { key: "host".into(), operator: Operator::In, values: ["a".into()].into() };
    let term = NodeSelectorTerm { expressions: [here].into(), fields: [].into() };
    PersistentVolume {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        resource_version: "1".into(),
        capacity: 1 << 30,
        access_modes: AccessModes::RWO,
        class: "local".into(),
        node_affinity: Some([term].into()),
        is_free: true,
        ..PersistentVolume::default()
    }
}

fn using(name: &str, claim: &str) -> Pod {
    let mut pod = pod(name, 100);
    let claims = [ClaimUse { claim: claim.into(), owner: None }].into();
    Arc::make_mut(&mut pod.spec).volumes = PodVolumes { claims, disks: [].into() };
    pod
}

impl Core {
    fn see_object(&mut self, object: Object) {
        self.apply(Input::ObjectApplied(Arc::new(object)));
    }

    fn writes(&mut self) -> Vec<VolumeOrder> {
        let effects = self.scheduler.take_effects().into_iter();
        effects.filter_map(|e| if let Effect::Volume(order) = e { Some(order) } else { None }).collect()
    }

    fn settle(&mut self, order: &VolumeOrder, outcome: VolumeOutcome) {
        let report = EffectReport::VolumeDone { id: order.id, uid: order.pod.uid.clone(), outcome };
        self.apply(Input::Report(report));
    }
}

/// Makes two nodes, one volume on `a`, and two claims for it.
fn world() -> Core {
    let hosts = [("a", 1000), ("b", 4000)].map(|(name, milli_cpu)| Node {
        labels: Labels::new([("host".into(), name.into())]),
        ..node(name, milli_cpu)
    });
    let mut core = core_with(&hosts);
    for object in [class(), Object::PersistentVolume(volume("disk"))] {
        core.see_object(object);
    }
    for name in ["data", "other"] {
        core.see_object(Object::PersistentVolumeClaim(claim(name)));
    }
    core
}

#[test]
fn a_pod_is_bound_after_its_volume() {
    let mut core = world();
    let pod = using("db", "data");
    core.see(&pod);
    core.run();
    assert_eq!((core.node_of(&pod).as_deref(), core.stage(&pod)), (Some("a"), Some(Stage::PreBinding)));
    let writes = core.writes();
    let [order] = &writes[..] else { panic!("one write, not {writes:?}") };
    assert!(matches!(&order.write, VolumeWrite::BindVolume { volume, claim, .. }
        if volume.as_str() == "disk" && claim.as_str() == "data"));

    // The volume is held, so another pod finds none.
    let late = using("late", "other");
    core.see(&late);
    core.run();
    let id = core.id(&late).expect("it waits");
    let Some(Outcome::Refused(refusal)) = core.scheduler.verdict(id).map(|v| v.outcome) else {
        panic!("it is refused")
    };
    assert!(refusal.reasons().any(|(r, _)| r.code == ReasonCode::NoVolumeToBind), "{}", refusal.message());

    core.settle(order, VolumeOutcome::Written);
    assert_eq!(core.stage(&pod), Some(Stage::PreBinding), "the claim is not bound yet");
    let by = ClaimRef { namespace: "ns".into(), name: "data".into(), uid: "uid-data".into() };
    let disk =
        PersistentVolume { claim: Some(by), is_free: false, resource_version: "2".into(), ..volume("disk") };
    core.see_object(Object::PersistentVolume(disk));
    core.see_object(Object::PersistentVolumeClaim(PersistentVolumeClaim {
        volume: "disk".into(),
        phase: ClaimPhase::Bound,
        bind_completed: true,
        resource_version: "2".into(),
        ..claim("data")
    }));
    assert_eq!(core.stage(&pod), Some(Stage::Permitted));
    assert_eq!(core.orders().len(), 1);
    assert_eq!(core.writes().len(), 0);
}

#[test]
fn a_failed_pre_bind_gives_all_back_and_is_tried_again() {
    let mut core = world();
    let pod = using("db", "data");
    core.see(&pod);
    core.run();
    let order = core.writes().remove(0);
    core.settle(
        &order,
        VolumeOutcome::Refused { status: 409, message: "the object has been modified".into() },
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
    core.see(&other);
    core.run();
    assert_eq!(core.stage(&other), Some(Stage::PreBinding));
    core.delete(&other);
    core.wait(20 * SECOND);
    core.run();
    assert_eq!(core.stage(&pod), Some(Stage::PreBinding), "tried again");
    assert_eq!(core.writes().len(), 2);
}

#[test]
fn a_pre_bind_that_takes_too_long_is_given_up() {
    let mut core = world();
    let pod = using("db", "data");
    core.see(&pod);
    core.run();
    let order = core.writes().remove(0);
    core.settle(&order, VolumeOutcome::Written);
    let deadline = core.scheduler.next_deadline().expect("it waits for something");
    assert_eq!(deadline, core.now.monotonic + 600 * SECOND);
    core.wait(600 * SECOND);
    assert_eq!((core.node_of(&pod), core.queued(&pod)), (None, Some(QueueStage::ErrorBackoff)));
}

#[test]
fn a_pod_that_goes_while_its_volumes_are_bound_leaves_nothing_behind() {
    let mut core = world();
    let pod = using("db", "data");
    core.see(&pod);
    core.run();
    let order = core.writes().remove(0);
    core.delete(&pod);
    core.settle(&order, VolumeOutcome::Written);
    assert_eq!((core.scheduler.n_in_flight(), core.scheduler.n_unsettled()), (0, 0));
    core.see(&using("next", "other"));
    core.run();
    assert_eq!(core.writes().len(), 1, "the volume is free again");
}
