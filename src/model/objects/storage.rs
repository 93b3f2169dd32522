//! Volumes: what a pod mounts, and the objects that stand behind it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::selector::{LabelSelector, Labels, NodeSelectorTerm, Requirement};

/// A claim that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimUse {
    /// Name of the PersistentVolumeClaim, in the pod's namespace.
    pub claim: Name,
    /// For a generic ephemeral volume: the uid of the pod, which must own the claim.
    pub owner: Option<Arc<str>>,
}

/// A disk named in the pod itself, of a kind that nodes cannot share freely.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Disk {
    /// `gcePersistentDisk`.
    GcePersistentDisk {
        /// `pdName`.
        name: Name,
        /// Shared by readers only.
        read_only: bool,
    },
    /// `awsElasticBlockStore`; never shared.
    AwsElasticBlockStore {
        /// `volumeID`.
        id: Name,
    },
    /// `iscsi`.
    Iscsi {
        /// `iqn`.
        iqn: Name,
        /// Shared by readers only.
        read_only: bool,
    },
    /// `rbd`.
    Rbd {
        /// `monitors`.
        monitors: Box<[Name]>,
        /// `pool`.
        pool: Name,
        /// `image`.
        image: Name,
        /// Shared by readers only.
        read_only: bool,
    },
}

/// What of a pod's volumes decides where it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodVolumes {
    /// Claims, in the order of the pod.
    pub claims: Box<[ClaimUse]>,
    /// Disks, in the order of the pod.
    pub disks: Box<[Disk]>,
}

impl PodVolumes {
    /// Whether the pod mounts nothing that matters.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.disks.is_empty()
    }
}

/// A set of access modes, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AccessModes(pub u8);

impl AccessModes {
    /// `ReadWriteOnce`.
    pub const RWO: Self = Self(1);
    /// `ReadOnlyMany`.
    pub const ROX: Self = Self(2);
    /// `ReadWriteMany`.
    pub const RWX: Self = Self(4);
    /// `ReadWriteOncePod`.
    pub const RWOP: Self = Self(8);

    /// Whether every mode of `other` is in the set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A claim as a volume names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimRef {
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Name,
    /// uid; empty when whoever bound it did not say.
    pub uid: Arc<str>,
}

/// The CSI volume behind a PersistentVolume, also that of an in-tree volume that is migrated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiVolume {
    /// Driver.
    pub driver: Name,
    /// Handle: volumes with the same one are one volume.
    pub handle: Name,
    /// For an in-tree volume its plugin name, such as `kubernetes.io/aws-ebs`: it counts for the driver only
    /// on nodes whose CSINode says that the plugin is migrated.
    pub migrated_from: Option<Name>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolume {
    /// Name.
    pub name: Name,
    /// uid.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`: a precondition of our writes.
    pub resource_version: Arc<str>,
    /// Labels.
    pub labels: Labels,
    /// `spec.capacity.storage`, bytes.
    pub capacity: i64,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.storageClassName`, empty when absent.
    pub class: Name,
    /// Whether `spec.volumeMode` is `Block`.
    pub is_block: bool,
    /// `spec.claimRef`.
    pub claim: Option<ClaimRef>,
    /// `spec.nodeAffinity.required`.
    pub node_affinity: Option<Box<[NodeSelectorTerm]>>,
    /// Whether `status.phase` is `Available`, `Pending` or absent: such a one may still be bound.
    pub is_free: bool,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The CSI volume, when there is one.
    pub csi: Option<CsiVolume>,
}

/// `status.phase` of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimPhase {
    /// Pending, also when absent.
    #[default]
    Pending,
    /// Bound.
    Bound,
    /// Its volume is gone.
    Lost,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolumeClaim {
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Name,
    /// uid.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`: a precondition of our writes.
    pub resource_version: Arc<str>,
    /// `spec.resources.requests.storage`, bytes.
    pub requested: i64,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.storageClassName` (or the older annotation); `None` when absent.
    pub class: Option<Name>,
    /// Whether `spec.volumeMode` is `Block`.
    pub is_block: bool,
    /// `spec.selector`.
    pub selector: Option<LabelSelector>,
    /// `spec.volumeName`, empty when unbound.
    pub volume: Name,
    /// `status.phase`.
    pub phase: ClaimPhase,
    /// Annotation `volume.kubernetes.io/selected-node`.
    pub selected_node: Option<Name>,
    /// Annotation `pv.kubernetes.io/bind-completed`.
    pub bind_completed: bool,
    /// uid of the controlling owner, when that is a Pod.
    pub owner_pod: Option<Arc<str>>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageClass {
    /// Name.
    pub name: Name,
    /// `provisioner`; `kubernetes.io/no-provisioner` makes nothing.
    pub provisioner: Name,
    /// Whether `volumeBindingMode` is `WaitForFirstConsumer`.
    pub waits_for_consumer: bool,
    /// `allowedTopologies`: one of the terms must hold. Empty: anywhere.
    pub allowed_topologies: Box<[Box<[Requirement]>]>,
}

/// A driver on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiNodeDriver {
    /// Driver.
    pub name: Name,
    /// `allocatable.count`: how many volumes of it the node takes. `None`: any number.
    pub count: Option<i64>,
}

/// A CSINode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiNode {
    /// Name: that of the Node.
    pub name: Name,
    /// Drivers.
    pub drivers: Box<[CsiNodeDriver]>,
    /// Annotation `storage.alpha.kubernetes.io/migrated-plugins`: in-tree plugins whose volumes CSI serves.
    pub migrated: Box<[Name]>,
}

/// A CSIDriver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiDriver {
    /// Name.
    pub name: Name,
    /// `spec.storageCapacity`: CSIStorageCapacity objects say where there is room.
    pub tracks_capacity: bool,
    /// `spec.preventPodSchedulingIfMissing`: a node without the driver takes no pod that needs it.
    pub required_on_node: bool,
}

/// A CSIStorageCapacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiStorageCapacity {
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Name,
    /// `storageClassName`.
    pub class: Name,
    /// `maximumVolumeSize`, else `capacity`, bytes: the largest volume that can be made. `None`: unknown.
    pub largest: Option<i64>,
    /// `nodeTopology`: the nodes meant; `None` means none.
    pub nodes: Option<LabelSelector>,
}

/// A VolumeAttachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// Name.
    pub name: Name,
    /// `spec.attacher`: the driver.
    pub driver: Name,
    /// `spec.nodeName`.
    pub node: Name,
    /// `spec.source.persistentVolumeName`, empty for an inline volume.
    pub volume: Name,
}
