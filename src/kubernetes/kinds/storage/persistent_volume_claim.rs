//! PersistentVolumeClaims. VolumeBinding patches them, and a patch without an answer is settled by reading the object.

use pellucid_model::storage::{ClaimPhase, PersistentVolumeClaim};
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{filled, flag, name, selector, text};
use crate::decode::lenient::{Fault, Lenient, List};
use crate::decode::objects::{bodies, object, own_name};
use crate::decode::wire::{LabelSelector, Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::storage::{PhaseStatus, Storage, access_modes, bytes, class_mark, is_block, known};

pub(crate) static PERSISTENT_VOLUME_CLAIM: BuiltIn = BuiltIn {
    resource: Resource { verbs: &["get", "patch"], ..Resource::new("", "v1", "persistentvolumeclaims") },
    read: |text| object(ObjectKind::PersistentVolumeClaim, text, persistent_volume_claim),
};

wire_types! {
    struct ClaimBody {
        metadata: Lenient<Meta>,
        spec: Lenient<ClaimSpec>,
        status: Lenient<PhaseStatus>,
    }
    /// `spec` of a PersistentVolumeClaim.
    struct ClaimSpec {
        access_modes: List<Name>,
        resources: Lenient<ClaimResources>,
        storage_class_name: Lenient<Name>,
        volume_attributes_class_name: Lenient<Name>,
        volume_mode: Lenient<Name>,
        selector: Lenient<LabelSelector>,
        volume_name: Lenient<Name>,
    }
    /// `spec.resources` of a PersistentVolumeClaim.
    struct ClaimResources {
        requests: Lenient<Storage>,
    }
}

bodies!(ClaimBody);

fn persistent_volume_claim(body: &ClaimBody, meta: &Meta) -> Result<Object, Fault> {
    let claim = claim(meta).map_err(|f| f.under("metadata"))?;
    let phase = body.status.within("status", |status| {
        Ok(match name(&status.phase, "phase")?.as_str() {
            "" | "Pending" => ClaimPhase::Pending,
            "Bound" => ClaimPhase::Bound,
            "Lost" => ClaimPhase::Lost,
            other => return Err(Fault::new("phase", other, "unknown phase")),
        })
    })?;
    let claim = body.spec.within("spec", |spec| with_spec(claim, spec))?;
    Ok(Object::PersistentVolumeClaim(PersistentVolumeClaim { phase, ..claim }))
}

/// Starts a claim from `metadata`.
fn claim(meta: &Meta) -> Result<PersistentVolumeClaim, Fault> {
    let known = known(meta)?;
    let owners = meta.owner_references.each("ownerReferences", |owner| {
        let controls = flag(&owner.controller, "controller")?;
        let is_pod = (name(&owner.api_version, "apiVersion")?.as_str(), name(&owner.kind, "kind")?.as_str())
            == ("v1", "Pod");
        if controls && is_pod { text(&owner.uid, "uid").map(Some) } else { Ok(None) }
    })?;
    Ok(PersistentVolumeClaim {
        namespace: name(&meta.namespace, "namespace")?,
        name: own_name(meta)?,
        uid: text(&meta.uid, "uid")?,
        resource_version: text(&meta.resource_version, "resourceVersion")?,
        class: class_mark(known)?,
        selected_node: filled(&known.selected_node, "annotations.volume.kubernetes.io/selected-node")?,
        bind_completed: known.bind_completed,
        owner_pod: owners.into_iter().flatten().next(),
        deleting: meta.deletion_timestamp.read("deletionTimestamp")?.is_some(),
        ..PersistentVolumeClaim::default()
    })
}

fn with_spec(claim: PersistentVolumeClaim, spec: &ClaimSpec) -> Result<PersistentVolumeClaim, Fault> {
    let requested = spec.resources.within("resources", |resources| {
        resources.requests.within("requests", |amounts| bytes(&amounts.storage, "storage"))
    })?;
    Ok(PersistentVolumeClaim {
        requested: requested.unwrap_or(0),
        access_modes: access_modes(&spec.access_modes)?,
        class: match claim.class {
            Some(class) => Some(class),
            None => spec.storage_class_name.read("storageClassName")?.cloned(),
        },
        attributes_class: name(&spec.volume_attributes_class_name, "volumeAttributesClassName")?,
        is_block: is_block(&spec.volume_mode)?,
        selector: selector(&spec.selector, "selector")?,
        volume: name(&spec.volume_name, "volumeName")?,
        ..claim
    })
}
