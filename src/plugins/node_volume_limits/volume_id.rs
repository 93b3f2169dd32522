//! What makes two volumes one: the CSI driver and the handle, and how in-tree volumes translate to them.

use pellucid_model::Name;
use pellucid_model::storage::{CsiNode, CsiVolume, Disk};

/// A volume's name at its driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Handle {
    /// The handle of a volume that exists.
    Volume(Name),
    /// Namespace and name of a claim for which there is no volume yet. It counts as one that nobody else uses.
    Claim(Name, Name),
}

/// A volume as it counts against a driver's limit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct VolumeId {
    /// CSI driver.
    pub(super) driver: Name,
    /// Handle.
    pub(super) handle: Handle,
    /// The in-tree plugin it was made for. It counts only where a node's CSINode says that CSI serves it.
    pub(super) migrated_from: Option<Name>,
}

impl VolumeId {
    /// A volume that exists; `None` when driver or handle are empty.
    pub(super) fn of_volume(csi: &CsiVolume) -> Option<Self> {
        let is_named = !csi.driver.is_empty() && !csi.handle.is_empty();
        is_named.then(|| Self {
            driver: csi.driver.clone(),
            handle: Handle::Volume(csi.handle.clone()),
            migrated_from: csi.migrated_from.clone(),
        })
    }

    /// The volume that a provisioner will make for a claim.
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

    /// A disk that a pod names itself, when CSI may serve it.
    pub(super) fn of_disk(disk: &Disk) -> Option<Self> {
        let (plugin, handle) = match disk {
            Disk::GcePersistentDisk { name, .. } => {
                // Nothing in the pod says in which project and zone the disk is.
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

    /// Whether it counts on a node.
    pub(super) fn counts_on(&self, node: Option<&CsiNode>) -> bool {
        self.migrated_from.as_ref().is_none_or(|plugin| is_migrated(plugin, node))
    }
}

/// The CSI driver that took the place of an in-tree plugin.
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

/// Whether CSI serves an in-tree plugin's volumes on a node. For most it is so wherever there is a CSINode;
/// volumes of Azure Files and vSphere are not counted at all.
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
