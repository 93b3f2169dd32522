//! Volumes: what a pod mounts, and the storage objects behind it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::selector::{LabelSelector, Labels, NodeSelectorTerm, Requirement};

/// A claim that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimUse {
    /// Name of the PersistentVolumeClaim, in the pod's namespace.
    pub claim: Name,
    /// The pod's uid for a generic ephemeral volume, whose claim the pod must own.
    pub owner: Option<Arc<str>>,
}

/// A disk named in the pod itself, of a kind with restrictions on sharing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Disk {
    /// `gcePersistentDisk`.
    GcePersistentDisk {
        /// `pdName`.
        name: Name,
        /// Whether it is mounted read-only; only readers can share it.
        read_only: bool,
    },
    /// `awsElasticBlockStore`, which is never shared.
    AwsElasticBlockStore {
        /// `volumeID`.
        id: Name,
    },
    /// `iscsi`.
    Iscsi {
        /// `iqn`.
        iqn: Name,
        /// Whether it is mounted read-only; only readers can share it.
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
        /// Whether it is mounted read-only; only readers can share it.
        read_only: bool,
    },
}

/// The volumes of a pod that decide where it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodVolumes {
    /// Claims, in the pod's order.
    pub claims: Box<[ClaimUse]>,
    /// Disks, in the pod's order.
    pub disks: Box<[Disk]>,
}

impl PodVolumes {
    /// Returns whether no volume restricts where the pod fits.
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

    /// Returns whether every mode of `other` is in the set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A volume's reference to its claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClaimRef {
    /// Namespace of the claim.
    pub namespace: Name,
    /// Name of the claim.
    pub name: Name,
    /// uid of the claim; empty when the binder did not set it.
    pub uid: Arc<str>,
}

/// The CSI volume behind a PersistentVolume, including a migrated in-tree volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiVolume {
    /// Name of the CSI driver.
    pub driver: Name,
    /// Volume handle; equal handles mean the same volume.
    pub handle: Name,
    /// Plugin name of an in-tree volume, such as `kubernetes.io/aws-ebs`. Such a volume counts for the driver only on
    /// nodes whose CSINode lists the plugin as migrated.
    pub migrated_from: Option<Name>,
}

/// The parts of a PersistentVolume that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolume {
    /// `metadata.name`.
    pub name: Name,
    /// uid of the object.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`: a precondition of our writes.
    pub resource_version: Arc<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `spec.capacity.storage`, in bytes.
    pub capacity: i64,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.storageClassName`, empty when absent.
    pub class: Name,
    /// `spec.volumeAttributesClassName`, empty when absent.
    #[serde(default)]
    pub attributes_class: Name,
    /// Whether `spec.volumeMode` is `Block`.
    pub is_block: bool,
    /// `spec.claimRef`.
    pub claim: Option<ClaimRef>,
    /// `spec.nodeAffinity.required`.
    pub node_affinity: Option<Box<[NodeSelectorTerm]>>,
    /// Whether `status.phase` is `Available` or absent, so that a claim for which it is not reserved may take the volume.
    /// One that is `Pending` is not looked at yet by the controller of volumes.
    pub is_free: bool,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The CSI volume, if there is one.
    pub csi: Option<CsiVolume>,
}

/// `status.phase` of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimPhase {
    /// Pending, also when absent.
    #[default]
    Pending,
    /// Bound to a volume.
    Bound,
    /// Lost: its volume is gone.
    Lost,
}

/// The parts of a PersistentVolumeClaim that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentVolumeClaim {
    /// Namespace of the claim and its pods.
    pub namespace: Name,
    /// Name of the claim.
    pub name: Name,
    /// uid of the object.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`: a precondition of our writes.
    pub resource_version: Arc<str>,
    /// `spec.resources.requests.storage`, in bytes.
    pub requested: i64,
    /// `spec.accessModes`.
    pub access_modes: AccessModes,
    /// `spec.storageClassName` (or the older annotation); `None` when absent.
    pub class: Option<Name>,
    /// `spec.volumeAttributesClassName`, empty when absent.
    #[serde(default)]
    pub attributes_class: Name,
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
    /// uid of the controlling owner, if that is a Pod.
    pub owner_pod: Option<Arc<str>>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// The parts of a StorageClass that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageClass {
    /// `metadata.name`.
    pub name: Name,
    /// `provisioner`; `kubernetes.io/no-provisioner` provisions nothing.
    pub provisioner: Name,
    /// Whether `volumeBindingMode` is `WaitForFirstConsumer`.
    pub waits_for_consumer: bool,
    /// `allowedTopologies`: one of the terms must hold; an empty list allows every node.
    pub allowed_topologies: Box<[Box<[Requirement]>]>,
}

/// A CSI driver on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiNodeDriver {
    /// Name of the driver.
    pub name: Name,
    /// `allocatable.count`: how many of its volumes the node takes; `None` means no limit.
    pub count: Option<i64>,
}

/// The CSI drivers of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiNode {
    /// Name, equal to the Node's.
    pub name: Name,
    /// The CSI drivers on the node.
    pub drivers: Box<[CsiNodeDriver]>,
    /// Annotation `storage.alpha.kubernetes.io/migrated-plugins`: in-tree plugins whose volumes CSI serves.
    pub migrated: Box<[Name]>,
}

/// The parts of a CSIDriver that scheduling reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiDriver {
    /// Name of the driver.
    pub name: Name,
    /// `spec.storageCapacity`: whether CSIStorageCapacity objects say where there is room.
    pub tracks_capacity: bool,
    /// `spec.preventPodSchedulingIfMissing`: whether a node without the driver refuses pods that need it.
    pub required_on_node: bool,
}

/// How much storage a class can still provision on some nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CsiStorageCapacity {
    /// Namespace of the object.
    pub namespace: Name,
    /// Name of the object.
    pub name: Name,
    /// `storageClassName`.
    pub class: Name,
    /// `maximumVolumeSize`, else `capacity`, in bytes: the largest volume that can be created. `None` when unknown.
    pub largest: Option<i64>,
    /// `nodeTopology`: selects the nodes; `None` selects none.
    pub nodes: Option<LabelSelector>,
}

/// A volume that is attached to a node, or being attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeAttachment {
    /// `metadata.name`.
    pub name: Name,
    /// `spec.attacher`: the CSI driver.
    pub driver: Name,
    /// `spec.nodeName`.
    pub node: Name,
    /// `spec.source.persistentVolumeName`; empty for an inline volume.
    pub volume: Name,
}
