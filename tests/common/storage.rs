//! A class of local volumes, volumes and claims of it, for a scheduler without I/O.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::effect::{EffectReport, ObjectOrder, WriteOutcome};
use pellucid::model::selector::{NodeSelectorTerm, Operator, Requirement};
use pellucid::model::storage::{
    AccessModes, ClaimPhase, ClaimRef, ClaimUse, PersistentVolume, PersistentVolumeClaim, PodVolumes,
    StorageClass,
};
use pellucid::model::{Object, Pod};

use super::driver::Core;

/// Makes the class; its volumes are bound once a pod needs them.
pub(crate) fn class() -> Object {
    Object::StorageClass(StorageClass {
        name: "local".into(),
        provisioner: "kubernetes.io/no-provisioner".into(),
        waits_for_consumer: true,
        ..StorageClass::default()
    })
}

/// Makes a claim as an object of its kind.
pub(crate) fn claim_of(name: &str) -> PersistentVolumeClaim {
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

fn volume_of(name: &str, host: Option<&str>) -> PersistentVolume {
    let reach = host.map(|host| {
        let here = Requirement { key: "host".into(), operator: Operator::In, values: [host.into()].into() };
        [NodeSelectorTerm { expressions: [here].into(), fields: [].into() }].into()
    });
    PersistentVolume {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        resource_version: "1".into(),
        capacity: 1 << 30,
        access_modes: AccessModes::RWO,
        class: "local".into(),
        node_affinity: reach,
        is_free: true,
        ..PersistentVolume::default()
    }
}

/// Makes a claim.
pub(crate) fn claim(name: &str) -> Object {
    Object::PersistentVolumeClaim(claim_of(name))
}

/// Makes a volume that is there for every node, or for nodes with this label `host`.
pub(crate) fn volume(name: &str, host: Option<&str>) -> Object {
    Object::PersistentVolume(volume_of(name, host))
}

/// Returns a volume and a claim that are bound to each other.
pub(crate) fn bound(volume: &str, host: Option<&str>, claim: &str) -> [Object; 2] {
    let by = ClaimRef { namespace: "ns".into(), name: claim.into(), uid: format!("uid-{claim}").into() };
    [
        Object::PersistentVolume(PersistentVolume {
            claim: Some(by),
            is_free: false,
            resource_version: "2".into(),
            ..volume_of(volume, host)
        }),
        Object::PersistentVolumeClaim(PersistentVolumeClaim {
            volume: volume.into(),
            phase: ClaimPhase::Bound,
            bind_completed: true,
            resource_version: "2".into(),
            ..claim_of(claim)
        }),
    ]
}

/// Returns the same pod with a claim.
pub(crate) fn using(mut pod: Pod, claim: &str) -> Pod {
    let claims = [ClaimUse { claim: claim.into(), owner: None }].into();
    Arc::make_mut(&mut pod.spec).volumes = PodVolumes { claims, disks: [].into() };
    pod
}

impl Core {
    /// Reports the outcome of a write.
    pub(crate) fn settle(&mut self, order: &ObjectOrder, outcome: WriteOutcome) {
        self.apply(Input::Report(EffectReport::ObjectDone { id: order.id, outcome }));
    }
}
