//! Identity of a volume: its CSI driver and handle, and the translation of in-tree volumes to them.

use pellucid_model::Name;
use pellucid_model::storage::{CsiNode, CsiVolume, Disk};

/// Identifies a volume within its driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Handle {
    /// The handle of an existing volume.
    Volume(Name),
    /// Namespace and name of a claim without a volume yet. It counts as a volume of its own.
    Claim(Name, Name),
}

/// A volume as it counts towards a driver's limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct VolumeId {
    /// Name of the CSI driver.
    pub(super) driver: Name,
    pub(super) handle: Handle,
    /// The in-tree plugin of the volume. It counts only on nodes whose CSINode shows that CSI serves that plugin.
    pub(super) migrated_from: Option<Name>,
}

impl VolumeId {
    /// Returns the id of an existing volume; `None` when driver or handle are empty.
    pub(super) fn of_volume(csi: &CsiVolume) -> Option<Self> {
        let is_named = !csi.driver.is_empty() && !csi.handle.is_empty();
        is_named.then(|| Self {
            driver: csi.driver.clone(),
            handle: Handle::Volume(csi.handle.clone()),
            migrated_from: csi.migrated_from.clone(),
        })
    }

    /// Returns the id of the volume that a provisioner will create for a claim; `None` without a provisioner.
    pub(super) fn of_claim(provisioner: &Name, namespace: &Name, claim: &Name) -> Option<Self> {
        let handle = Handle::Claim(namespace.clone(), claim.clone());
        match driver_of(provisioner) {
            Some(driver) => {
                let migrated_from = Some(provisioner.clone());
                Some(Self { driver: driver.into(), handle, migrated_from })
            }
            None if provisioner.is_empty() => None,
            None => Some(Self { driver: provisioner.clone(), handle, migrated_from: None }),
        }
    }

    /// Returns the id of a disk in a pod spec; `None` when no CSI driver serves its kind.
    pub(super) fn of_disk(disk: &Disk) -> Option<Self> {
        let (plugin, handle) = match disk {
            Disk::GcePersistentDisk { name, .. } => {
                // The pod does not state the project and zone of the disk.
                let path = format!("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/{name}");
                ("kubernetes.io/gce-pd", Name::new(&path))
            }
            Disk::AwsElasticBlockStore { id } => {
                // `aws://zone/vol-1` names the same volume as `vol-1`.
                let id = if id.starts_with("aws://") { id.rsplit('/').next().unwrap_or(id) } else { id };
                ("kubernetes.io/aws-ebs", Name::new(id))
            }
            Disk::Iscsi { .. } | Disk::Rbd { .. } => return None,
        };
        let (driver, handle) = (driver_of(plugin)?.into(), Handle::Volume(handle));
        Some(Self { driver, handle, migrated_from: Some(plugin.into()) })
    }

    /// Returns whether the volume counts on a node.
    pub(super) fn counts_on(&self, node: Option<&CsiNode>) -> bool {
        self.migrated_from.as_ref().is_none_or(|plugin| is_migrated(plugin, node))
    }
}

/// Returns the CSI driver that replaces an in-tree plugin.
fn driver_of(plugin: &str) -> Option<&'static str> {
    Some(match plugin {
        "kubernetes.io/aws-ebs" => "ebs.csi.aws.com",
        "kubernetes.io/gce-pd" => "pd.csi.storage.gke.io",
        "kubernetes.io/azure-disk" => "disk.csi.azure.com",
        "kubernetes.io/azure-file" => "file.csi.azure.com",
        "kubernetes.io/cinder" => "cinder.csi.openstack.org",
        "kubernetes.io/vsphere-volume" => "csi.vsphere.vmware.com",
        "kubernetes.io/portworx-volume" => "pxd.portworx.com",
        _ => return None,
    })
}

/// Returns whether CSI serves an in-tree plugin's volumes on a node. Most plugins count as migrated on every node with
/// a CSINode; volumes of Azure Files and vSphere never count.
pub(super) fn is_migrated(plugin: &str, node: Option<&CsiNode>) -> bool {
    let Some(node) = node else { return false };
    match plugin {
        "kubernetes.io/aws-ebs"
        | "kubernetes.io/gce-pd"
        | "kubernetes.io/azure-disk"
        | "kubernetes.io/cinder" => true,
        "kubernetes.io/portworx-volume" => node.migrated.iter().any(|name| &**name == plugin),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_translate_as_csi_translation_does() {
        let aws = |id: &str| VolumeId::of_disk(&Disk::AwsElasticBlockStore { id: id.into() });
        assert_eq!(aws("aws://us-east-1a/vol-1"), aws("vol-1"));
        let disk = aws("vol-1").expect("EBS is migrated");
        assert_eq!((&*disk.driver, disk.handle), ("ebs.csi.aws.com", Handle::Volume("vol-1".into())));
        let gce = Disk::GcePersistentDisk { name: "d".into(), read_only: false };
        let gce = VolumeId::of_disk(&gce).expect("GCE PD is migrated");
        assert_eq!(gce.handle, Handle::Volume("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d".into()));
        assert_eq!(VolumeId::of_disk(&Disk::Iscsi { iqn: "i".into(), read_only: true }), None);
    }

    #[test]
    fn a_migrated_volume_counts_where_csi_serves_it() {
        let plain = CsiNode::default();
        let portworx: Name = "kubernetes.io/portworx-volume".into();
        let migrated = CsiNode { migrated: Box::new([portworx.clone()]), ..CsiNode::default() };
        assert!(is_migrated("kubernetes.io/aws-ebs", Some(&plain)));
        assert!(!is_migrated("kubernetes.io/aws-ebs", None));
        assert!(!is_migrated(&portworx, Some(&plain)) && is_migrated(&portworx, Some(&migrated)));
        assert!(!is_migrated("kubernetes.io/azure-file", Some(&plain)));
        let claim = VolumeId::of_claim(&portworx, &"d".into(), &"c".into()).expect("it is counted");
        assert_eq!(&*claim.driver, "pxd.portworx.com");
        assert!(claim.counts_on(Some(&migrated)) && !claim.counts_on(Some(&plain)));
    }
}
