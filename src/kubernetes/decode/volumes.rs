//! Decodes the volumes of a pod that decide where it fits.

use std::sync::Arc;

use pellucid_model::Name;
use pellucid_model::storage::{ClaimUse, Disk, PodVolumes};

use crate::decode::fields::{filled, flag, name, required};
use crate::decode::lenient::Fault;
use crate::decode::wire;

/// Reads `spec.volumes` of the pod with this name and uid.
pub(crate) fn volumes(spec: &wire::PodSpec, pod: &str, uid: &Arc<str>) -> Result<PodVolumes, Fault> {
    let claims = spec.volumes.each("volumes", |volume| claim(volume, pod, uid))?;
    let disks = spec.volumes.each("volumes", disk)?;
    Ok(PodVolumes {
        claims: claims.into_iter().flatten().collect(),
        disks: disks.into_iter().flatten().collect(),
    })
}

fn claim(volume: &wire::Volume, pod: &str, uid: &Arc<str>) -> Result<Option<ClaimUse>, Fault> {
    let field = "persistentVolumeClaim";
    if let Some(source) = volume.persistent_volume_claim.read(field)? {
        let claim = required(&source.claim_name, "claimName").map_err(|f| f.under(field))?;
        return Ok(Some(ClaimUse { claim, owner: None }));
    }
    if volume.ephemeral.read("ephemeral")?.is_none() {
        return Ok(None);
    }
    // The volume controller makes the claim under this name, owned by the pod.
    let own = required(&volume.name, "name")?;
    Ok(Some(ClaimUse { claim: Name::new(&format!("{pod}-{own}")), owner: Some(uid.clone()) }))
}

fn disk(volume: &wire::Volume) -> Result<Option<Disk>, Fault> {
    if let Some(gce) = volume.gce_persistent_disk.read("gcePersistentDisk")? {
        let read = || {
            let name = required(&gce.pd_name, "pdName")?;
            Ok(Some(Disk::GcePersistentDisk { name, read_only: flag(&gce.read_only, "readOnly")? }))
        };
        return read().map_err(|f: Fault| f.under("gcePersistentDisk"));
    }
    if let Some(ebs) = volume.aws_elastic_block_store.read("awsElasticBlockStore")? {
        let id = required(&ebs.volume_id, "volumeID").map_err(|f| f.under("awsElasticBlockStore"))?;
        return Ok(Some(Disk::AwsElasticBlockStore { id }));
    }
    if let Some(iscsi) = volume.iscsi.read("iscsi")? {
        let read = || {
            let iqn = required(&iscsi.iqn, "iqn")?;
            Ok(Some(Disk::Iscsi { iqn, read_only: flag(&iscsi.read_only, "readOnly")? }))
        };
        return read().map_err(|f: Fault| f.under("iscsi"));
    }
    let Some(rbd) = volume.rbd.read("rbd")? else { return Ok(None) };
    let read = || {
        Ok(Some(Disk::Rbd {
            monitors: rbd.monitors.each("monitors", |monitor| Ok(monitor.clone()))?.into(),
            pool: filled(&rbd.pool, "pool")?.unwrap_or_else(|| "rbd".into()),
            image: name(&rbd.image, "image")?,
            read_only: flag(&rbd.read_only, "readOnly")?,
        }))
    };
    read().map_err(|f: Fault| f.under("rbd"))
}
