//! The objects other than pods and nodes that plugins read: volumes, workloads, namespaces, budgets.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gang::{Controller, Named, PodGroup, Queue};
use crate::relations::OwnerKind;
use crate::selector::{LabelSelector, Labels};
use crate::storage::{
    CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
    VolumeAttachment,
};
use crate::{Name, PodKey};

/// A namespace with the labels that selectors read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// `metadata.name`.
    pub name: Name,
    /// `metadata.labels`.
    pub labels: Labels,
}

/// A Service or a controller of pods, reduced to what selects pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Namespace of the object.
    pub namespace: Name,
    /// Name of the object.
    pub name: Name,
    /// Selects the pods; `None` selects none (a Service without a selector).
    pub selector: Option<LabelSelector>,
    /// `spec.replicas` of a controller, 1 when absent; `None` for a Service.
    pub replicas: Option<u32>,
    /// The object that controls this one, such as the Deployment of a ReplicaSet.
    #[serde(default)]
    pub controller: Option<Controller>,
}

/// A PodDisruptionBudget, which limits evictions of the pods it protects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Namespace of the budget and its pods.
    pub namespace: Name,
    /// Name of the budget.
    pub name: Name,
    /// Selects the protected pods; `None` and an empty selector protect none.
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`.
    pub allowed: i32,
    /// `status.disruptedPods`: names of pods whose disruption is counted already.
    pub disrupted: BTreeSet<Arc<str>>,
}

impl Budget {
    /// Returns whether the budget protects a pod. As in kube-scheduler, an empty selector protects none.
    pub fn protects(&self, pod: &PodKey, labels: &Labels) -> bool {
        let selects = |s: &LabelSelector| !s.is_empty() && s.matches(labels);
        self.namespace == pod.namespace && self.selector.as_ref().is_some_and(selects)
    }
}

crate::named! {
    /// The kinds of [`Object`]; named as in the API, with the API group where several groups have a kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[expect(missing_docs, reason = "Kubernetes' own names")]
    pub enum ObjectKind {
        Namespace = "Namespace",
        Service = "Service",
        ReplicationController = "ReplicationController",
        ReplicaSet = "ReplicaSet",
        StatefulSet = "StatefulSet",
        PodDisruptionBudget = "PodDisruptionBudget",
        PersistentVolume = "PersistentVolume",
        PersistentVolumeClaim = "PersistentVolumeClaim",
        StorageClass = "StorageClass",
        CsiNode = "CSINode",
        CsiDriver = "CSIDriver",
        CsiStorageCapacity = "CSIStorageCapacity",
        VolumeAttachment = "VolumeAttachment",
        PodGroupX = "PodGroup.scheduling.x-k8s.io",
        PodGroupSigs = "PodGroup.scheduling.sigs.k8s.io",
        /// `scheduling.incubator.k8s.io` (kube-batch)
        PodGroupIncubator = "PodGroup.scheduling.incubator.k8s.io",
        /// `scheduling.sigs.dev` (kube-batch)
        PodGroupSigsDev = "PodGroup.scheduling.sigs.dev",
        PodGroupNative = "PodGroup.scheduling.k8s.io",
        /// `scheduling.incubator.k8s.io` (kube-batch)
        QueueIncubator = "Queue.scheduling.incubator.k8s.io",
        /// `scheduling.sigs.dev` (kube-batch)
        QueueSigsDev = "Queue.scheduling.sigs.dev",
        WorkloadNative = "Workload.scheduling.k8s.io",
    }
}

impl ObjectKind {
    /// The kinds of PodGroup, in order of precedence.
    pub const POD_GROUPS: [Self; 5] = [
        Self::PodGroupX,
        Self::PodGroupSigs,
        Self::PodGroupIncubator,
        Self::PodGroupSigsDev,
        Self::PodGroupNative,
    ];

    /// Returns the kind of a pod's owner.
    pub fn of_owner(owner: OwnerKind) -> Self {
        match owner {
            OwnerKind::ReplicationController => Self::ReplicationController,
            OwnerKind::ReplicaSet => Self::ReplicaSet,
            OwnerKind::StatefulSet => Self::StatefulSet,
        }
    }
}

/// An immutable object of one of these kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "Kubernetes' own names")]
pub enum Object {
    Namespace(Namespace),
    Service(Workload),
    ReplicationController(Workload),
    ReplicaSet(Workload),
    StatefulSet(Workload),
    PodDisruptionBudget(Budget),
    PersistentVolume(PersistentVolume),
    PersistentVolumeClaim(PersistentVolumeClaim),
    StorageClass(StorageClass),
    CsiNode(CsiNode),
    CsiDriver(CsiDriver),
    CsiStorageCapacity(CsiStorageCapacity),
    VolumeAttachment(VolumeAttachment),
    /// A PodGroup of any API group; its `kind` says which.
    PodGroup(PodGroup),
    QueueIncubator(Queue),
    QueueSigsDev(Queue),
    WorkloadNative(Named),
}

impl Object {
    /// Returns the object's kind.
    pub fn kind(&self) -> ObjectKind {
        match self {
            Self::Namespace(_) => ObjectKind::Namespace,
            Self::Service(_) => ObjectKind::Service,
            Self::ReplicationController(_) => ObjectKind::ReplicationController,
            Self::ReplicaSet(_) => ObjectKind::ReplicaSet,
            Self::StatefulSet(_) => ObjectKind::StatefulSet,
            Self::PodDisruptionBudget(_) => ObjectKind::PodDisruptionBudget,
            Self::PersistentVolume(_) => ObjectKind::PersistentVolume,
            Self::PersistentVolumeClaim(_) => ObjectKind::PersistentVolumeClaim,
            Self::StorageClass(_) => ObjectKind::StorageClass,
            Self::CsiNode(_) => ObjectKind::CsiNode,
            Self::CsiDriver(_) => ObjectKind::CsiDriver,
            Self::CsiStorageCapacity(_) => ObjectKind::CsiStorageCapacity,
            Self::VolumeAttachment(_) => ObjectKind::VolumeAttachment,
            Self::PodGroup(o) => o.kind,
            Self::QueueIncubator(_) => ObjectKind::QueueIncubator,
            Self::QueueSigsDev(_) => ObjectKind::QueueSigsDev,
            Self::WorkloadNative(_) => ObjectKind::WorkloadNative,
        }
    }

    /// Returns namespace (empty for cluster-scoped kinds) and name.
    pub fn key(&self) -> (Name, Name) {
        let cluster_wide = |name: &Name| (Name::default(), name.clone());
        match self {
            Self::Namespace(o) => cluster_wide(&o.name),
            Self::Service(o)
            | Self::ReplicationController(o)
            | Self::ReplicaSet(o)
            | Self::StatefulSet(o) => (o.namespace.clone(), o.name.clone()),
            Self::PodDisruptionBudget(o) => (o.namespace.clone(), o.name.clone()),
            Self::PersistentVolume(o) => cluster_wide(&o.name),
            Self::PersistentVolumeClaim(o) => (o.namespace.clone(), o.name.clone()),
            Self::StorageClass(o) => cluster_wide(&o.name),
            Self::CsiNode(o) => cluster_wide(&o.name),
            Self::CsiDriver(o) => cluster_wide(&o.name),
            Self::CsiStorageCapacity(o) => (o.namespace.clone(), o.name.clone()),
            Self::VolumeAttachment(o) => cluster_wide(&o.name),
            Self::PodGroup(o) => (o.key.namespace.clone(), o.key.name.clone()),
            Self::QueueIncubator(o) | Self::QueueSigsDev(o) => cluster_wide(&o.name),
            Self::WorkloadNative(o) => (o.namespace.clone(), o.name.clone()),
        }
    }

    /// Returns the object as a controller of pods, or `None` when it is none.
    pub fn controller(&self) -> Option<&Workload> {
        match self {
            Self::ReplicationController(o) | Self::ReplicaSet(o) | Self::StatefulSet(o) => Some(o),
            _ => None,
        }
    }

    /// Returns the pod selector of a Service or a controller.
    pub fn pod_selector(&self) -> Option<&LabelSelector> {
        match self {
            Self::Service(o)
            | Self::ReplicationController(o)
            | Self::ReplicaSet(o)
            | Self::StatefulSet(o) => o.selector.as_ref(),
            _ => None,
        }
    }
}
