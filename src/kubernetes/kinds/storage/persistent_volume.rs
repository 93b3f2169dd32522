//! PersistentVolumes, and the translation of in-tree volumes into CSI volumes. VolumeBinding patches volumes; a patch
//! without an answer is settled by reading the object.
//!
//! Kubernetes serves the in-tree volumes of clouds through CSI drivers. Volume limits count them by the driver's
//! volume handle, so the handle is built as in Kubernetes' translation library.

use std::sync::Arc;

use pellucid_model::selector::{Labels, NodeSelectorTerm};
use pellucid_model::storage::{ClaimRef, CsiVolume, PersistentVolume};
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{labels, name, required, term, text};
use crate::decode::lenient::{Fault, Lenient, List};
use crate::decode::objects::{bodies, object, own_name};
use crate::decode::wire::{EmptySource, GceDisk, IdSource, Meta, NodeSelector, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::storage::{PhaseStatus, Storage, access_modes, bytes, class_mark, is_block, known};

pub(crate) static PERSISTENT_VOLUME: BuiltIn = BuiltIn {
    resource: Resource {
        is_namespaced: false,
        verbs: &["get", "patch"],
        ..Resource::new("", "v1", "persistentvolumes")
    },
    read: |text| object(ObjectKind::PersistentVolume, text, persistent_volume),
};

wire_types! {
    struct VolumeBody {
        metadata: Lenient<Meta>,
        spec: Lenient<VolumeSpec>,
        status: Lenient<PhaseStatus>,
    }
    /// `spec` of a PersistentVolume.
    struct VolumeSpec {
        capacity: Lenient<Storage>,
        access_modes: List<Name>,
        storage_class_name: Lenient<Name>,
        volume_attributes_class_name: Lenient<Name>,
        volume_mode: Lenient<Name>,
        claim_ref: Lenient<ClaimReference>,
        node_affinity: Lenient<VolumeAffinity>,
        csi: Lenient<CsiSource>,
        aws_elastic_block_store: Lenient<IdSource>,
        gce_persistent_disk: Lenient<GceDisk>,
        azure_disk: Lenient<AzureDiskSource>,
        azure_file: Lenient<EmptySource>,
        cinder: Lenient<IdSource>,
        vsphere_volume: Lenient<VsphereSource>,
        portworx_volume: Lenient<IdSource>,
    }
    /// `spec.claimRef` of a PersistentVolume.
    struct ClaimReference {
        namespace: Lenient<Name>,
        name: Lenient<Name>,
        uid: Lenient<Arc<str>>,
    }
    /// `spec.nodeAffinity` of a PersistentVolume.
    struct VolumeAffinity {
        required: Lenient<NodeSelector>,
    }
    /// The source of a CSI volume.
    struct CsiSource {
        driver: Lenient<Name>,
        volume_handle: Lenient<Name>,
    }
    /// The source of an Azure disk.
    struct AzureDiskSource {
        #[serde(rename = "diskURI")]
        disk_uri: Lenient<Name>,
    }
    /// The source of a vSphere volume.
    struct VsphereSource {
        volume_path: Lenient<Name>,
    }
}

bodies!(VolumeBody);

fn persistent_volume(body: &VolumeBody, meta: &Meta) -> Result<Object, Fault> {
    let volume = identity(meta).map_err(|f| f.under("metadata"))?;
    let is_free = body.status.within("status", |status| {
        Ok(match name(&status.phase, "phase")?.as_str() {
            "" | "Available" => true,
            "Pending" | "Bound" | "Released" | "Failed" => false,
            other => return Err(Fault::new("phase", other, "unknown phase")),
        })
    })?;
    let volume = body.spec.within("spec", |spec| with_spec(volume, spec))?;
    Ok(Object::PersistentVolume(PersistentVolume { is_free, ..volume }))
}

/// Starts a volume from `metadata`.
fn identity(meta: &Meta) -> Result<PersistentVolume, Fault> {
    Ok(PersistentVolume {
        name: own_name(meta)?,
        uid: text(&meta.uid, "uid")?,
        resource_version: text(&meta.resource_version, "resourceVersion")?,
        labels: labels(meta)?,
        class: class_mark(known(meta)?)?.unwrap_or_default(),
        deleting: meta.deletion_timestamp.read("deletionTimestamp")?.is_some(),
        ..PersistentVolume::default()
    })
}

fn with_spec(volume: PersistentVolume, spec: &VolumeSpec) -> Result<PersistentVolume, Fault> {
    let capacity = spec.capacity.within("capacity", |amounts| bytes(&amounts.storage, "storage"))?;
    Ok(PersistentVolume {
        capacity: capacity.unwrap_or(0),
        access_modes: access_modes(&spec.access_modes)?,
        class: match volume.class.is_empty() {
            true => name(&spec.storage_class_name, "storageClassName")?,
            false => volume.class,
        },
        attributes_class: name(&spec.volume_attributes_class_name, "volumeAttributesClassName")?,
        is_block: is_block(&spec.volume_mode)?,
        claim: claim(spec)?,
        node_affinity: node_affinity(spec)?,
        csi: csi(spec, &volume.name, &volume.labels)?,
        ..volume
    })
}

fn claim(spec: &VolumeSpec) -> Result<Option<ClaimRef>, Fault> {
    spec.claim_ref.if_present("claimRef", |claim| {
        Ok(ClaimRef {
            namespace: name(&claim.namespace, "namespace")?,
            name: name(&claim.name, "name")?,
            uid: text(&claim.uid, "uid")?,
        })
    })
}

fn node_affinity(spec: &VolumeSpec) -> Result<Option<Box<[NodeSelectorTerm]>>, Fault> {
    spec.node_affinity.within("nodeAffinity", |affinity| {
        affinity.required.if_present("required", |nodes| {
            nodes.node_selector_terms.each("nodeSelectorTerms", term).map(Into::into)
        })
    })
}

fn csi(spec: &VolumeSpec, own_name: &Name, labels: &Labels) -> Result<Option<CsiVolume>, Fault> {
    let csi = spec.csi.if_present("csi", |csi| {
        Ok(CsiVolume {
            driver: required(&csi.driver, "driver")?,
            handle: name(&csi.volume_handle, "volumeHandle")?,
            migrated_from: None,
        })
    })?;
    if csi.is_some() { Ok(csi) } else { in_tree(spec, own_name, labels) }
}

fn in_tree(spec: &VolumeSpec, own_name: &Name, labels: &Labels) -> Result<Option<CsiVolume>, Fault> {
    let migrated = |plugin: &str, driver: &str, handle: Name| {
        Ok(Some(CsiVolume { driver: driver.into(), handle, migrated_from: Some(plugin.into()) }))
    };
    if let Some(id) = id(&spec.aws_elastic_block_store, "awsElasticBlockStore")? {
        return migrated("kubernetes.io/aws-ebs", "ebs.csi.aws.com", ebs_handle(&id));
    }
    if let Some(gce) = spec.gce_persistent_disk.read("gcePersistentDisk")? {
        let disk = required(&gce.pd_name, "pdName").map_err(|f| f.under("gcePersistentDisk"))?;
        return migrated("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", gce_handle(&disk, labels));
    }
    if let Some(azure) = spec.azure_disk.read("azureDisk")? {
        let uri = required(&azure.disk_uri, "diskURI").map_err(|f| f.under("azureDisk"))?;
        return migrated("kubernetes.io/azure-disk", "disk.csi.azure.com", uri);
    }
    if spec.azure_file.read("azureFile")?.is_some() {
        // Each counts as its own volume, whatever share it is on.
        return migrated("kubernetes.io/azure-file", "file.csi.azure.com", own_name.clone());
    }
    if let Some(id) = id(&spec.cinder, "cinder")? {
        return migrated("kubernetes.io/cinder", "cinder.csi.openstack.org", id);
    }
    if let Some(vsphere) = spec.vsphere_volume.read("vsphereVolume")? {
        let path = required(&vsphere.volume_path, "volumePath").map_err(|f| f.under("vsphereVolume"))?;
        return migrated("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", path);
    }
    if let Some(id) = id(&spec.portworx_volume, "portworxVolume")? {
        return migrated("kubernetes.io/portworx-volume", "pxd.portworx.com", id);
    }
    Ok(None)
}

fn id(source: &Lenient<IdSource>, field: &str) -> Result<Option<Name>, Fault> {
    source.if_present(field, |source| required(&source.volume_id, "volumeID"))
}

/// Returns the volume id: `aws://<zone>/<id>` is the same volume as `<id>`.
fn ebs_handle(id: &Name) -> Name {
    match id.strip_prefix("aws://").and_then(|rest| rest.rsplit('/').next()) {
        Some(own) => Name::new(own),
        None => id.clone(),
    }
}

/// Returns the handle of a zonal disk, or of a regional one if the volume's zone label names several zones.
fn gce_handle(disk: &Name, labels: &Labels) -> Name {
    let label = |key: &str| labels.get(&key.into()).cloned();
    let zones = label("topology.kubernetes.io/zone")
        .or_else(|| label("failure-domain.beta.kubernetes.io/zone"))
        .unwrap_or_default();
    let text = match zones.split_once("__") {
        Some((first, _)) => {
            let region = first.rsplit_once('-').map_or(first, |(region, _)| region);
            format!("projects/UNSPECIFIED/regions/{region}/disks/{disk}")
        }
        None => {
            let zone = if zones.is_empty() { "UNSPECIFIED" } else { &*zones };
            format!("projects/UNSPECIFIED/zones/{zone}/disks/{disk}")
        }
    };
    Name::new(&text)
}
