//! Decodes storage kinds: claims, classes, CSI drivers, nodes and capacities, attachments. Volumes are in
//! `persistent_volume`.

use pellucid_model::selector::Requirement;
use pellucid_model::storage::{
    AccessModes, ClaimPhase, CsiDriver, CsiNode, CsiNodeDriver, CsiStorageCapacity, PersistentVolumeClaim,
    StorageClass, VolumeAttachment,
};
use pellucid_model::{Name, Object, ObjectKind, quantity};

use crate::decode::fields::{exactly, filled, flag, name, required, selector, text};
use crate::decode::lenient::{Fault, KnownAnnotations, Lenient, List, QuantityText};
use crate::decode::objects::ObjectBody;
use crate::decode::slim::Meta;
use crate::decode::slim_objects::{
    AttachmentBody, CapacityBody, ClaimBody, ClaimSpec, ClassBody, CsiDriverBody, CsiNodeBody,
};
use crate::decode::workloads::{own_key, own_name};

impl ObjectBody for ClaimBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let claim = claim(meta).map_err(|f| f.under("metadata"))?;
        let phase = self.status.within("status", |status| {
            Ok(match name(&status.phase, "phase")?.as_str() {
                "" | "Pending" => ClaimPhase::Pending,
                "Bound" => ClaimPhase::Bound,
                "Lost" => ClaimPhase::Lost,
                other => return Err(Fault::new("phase", other, "unknown phase")),
            })
        })?;
        let claim = self.spec.within("spec", |spec| with_spec(claim, spec))?;
        Ok(Object::PersistentVolumeClaim(PersistentVolumeClaim { phase, ..claim }))
    }
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
        is_block: is_block(&spec.volume_mode)?,
        selector: selector(&spec.selector, "selector")?,
        volume: name(&spec.volume_name, "volumeName")?,
        ..claim
    })
}

/// Returns the known annotations of an object.
pub(super) fn known(meta: &Meta) -> Result<&KnownAnnotations, Fault> {
    static NONE: KnownAnnotations = KnownAnnotations::NONE;
    Ok(meta.annotations.read("annotations")?.unwrap_or(&NONE))
}

/// Returns the class from the older annotation, which takes precedence over the field.
pub(super) fn class_mark(known: &KnownAnnotations) -> Result<Option<Name>, Fault> {
    Ok(known.class.read("annotations.volume.beta.kubernetes.io/storage-class")?.cloned())
}

/// Reads a quantity in bytes, rounded up; `None` when absent.
pub(super) fn bytes(value: &Lenient<QuantityText>, field: &str) -> Result<Option<i64>, Fault> {
    let Some(QuantityText(text)) = value.read(field)? else { return Ok(None) };
    let parsed = quantity::units(text);
    parsed.map(Some).map_err(|e| Fault::new(field, text, format!("not a quantity: {}", e.problem)))
}

/// Reads `accessModes`.
pub(super) fn access_modes(list: &List<Name>) -> Result<AccessModes, Fault> {
    let modes = list.each("accessModes", |mode| {
        Ok(match mode.as_str() {
            "ReadWriteOnce" => AccessModes::RWO,
            "ReadOnlyMany" => AccessModes::ROX,
            "ReadWriteMany" => AccessModes::RWX,
            "ReadWriteOncePod" => AccessModes::RWOP,
            other => return Err(Fault::new("", other, "unknown access mode")),
        })
    })?;
    Ok(modes.into_iter().fold(AccessModes::default(), AccessModes::with))
}

/// Reads `volumeMode`.
pub(super) fn is_block(value: &Lenient<Name>) -> Result<bool, Fault> {
    match name(value, "volumeMode")?.as_str() {
        "" | "Filesystem" => Ok(false),
        "Block" => Ok(true),
        other => Err(Fault::new("volumeMode", other, "unknown volume mode")),
    }
}

impl ObjectBody for ClassBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let requirement = |own: &crate::decode::slim_objects::TopologyRequirement| {
            let values = own.values.each("values", |value| Ok(value.clone()))?.into();
            Ok(Requirement { values, ..exactly(required(&own.key, "key")?, Name::default()) })
        };
        let terms = self.allowed_topologies.each("allowedTopologies", |term| {
            let all = term.match_label_expressions.each("matchLabelExpressions", requirement)?;
            Ok(all.into_boxed_slice())
        })?;
        Ok(Object::StorageClass(StorageClass {
            name: own_key(meta)?.1,
            provisioner: name(&self.provisioner, "provisioner")?,
            waits_for_consumer: match name(&self.volume_binding_mode, "volumeBindingMode")?.as_str() {
                "" | "Immediate" => false,
                "WaitForFirstConsumer" => true,
                other => return Err(Fault::new("volumeBindingMode", other, "unknown binding mode")),
            },
            allowed_topologies: terms.into(),
        }))
    }
}

impl ObjectBody for CsiNodeBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let field = "annotations.storage.alpha.kubernetes.io/migrated-plugins";
        let migrated = || name(&known(meta)?.migrated_plugins, field);
        let migrated = migrated().map_err(|f| f.under("metadata"))?;
        let drivers = self.spec.within("spec", |spec| {
            spec.drivers.each("drivers", |driver| {
                let count = driver
                    .allocatable
                    .within("allocatable", |room| Ok(room.count.read("count")?.copied()))?;
                Ok(CsiNodeDriver { name: required(&driver.name, "name")?, count })
            })
        })?;
        let plugins = migrated.split(',').map(str::trim).filter(|p| !p.is_empty());
        Ok(Object::CsiNode(CsiNode {
            name: own_key(meta)?.1,
            drivers: drivers.into(),
            migrated: plugins.map(Name::new).collect(),
        }))
    }
}

impl ObjectBody for CsiDriverBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let name = own_key(meta)?.1;
        self.spec.within("spec", |spec| {
            let tracks_capacity = flag(&spec.storage_capacity, "storageCapacity")?;
            let on_node = &spec.prevent_pod_scheduling_if_missing;
            let required_on_node = flag(on_node, "preventPodSchedulingIfMissing")?;
            Ok(Object::CsiDriver(CsiDriver { name, tracks_capacity, required_on_node }))
        })
    }
}

impl ObjectBody for CapacityBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let (namespace, own_name) = own_key(meta)?;
        let largest = bytes(&self.maximum_volume_size, "maximumVolumeSize")?;
        let capacity = bytes(&self.capacity, "capacity")?;
        Ok(Object::CsiStorageCapacity(CsiStorageCapacity {
            namespace,
            name: own_name,
            class: name(&self.storage_class_name, "storageClassName")?,
            largest: largest.or(capacity),
            nodes: selector(&self.node_topology, "nodeTopology")?,
        }))
    }
}

impl ObjectBody for AttachmentBody {
    fn object(&self, _: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let own_name = own_key(meta)?.1;
        self.spec.within("spec", |spec| {
            let field = "persistentVolumeName";
            Ok(Object::VolumeAttachment(VolumeAttachment {
                name: own_name,
                driver: name(&spec.attacher, "attacher")?,
                node: name(&spec.node_name, "nodeName")?,
                volume: spec.source.within("source", |source| name(&source.persistent_volume_name, field))?,
            }))
        })
    }
}
