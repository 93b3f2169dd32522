//! The watched kinds (Pods, Nodes, every [`ObjectKind`], and kinds that plugins bring): where each is served and what its watch may expect.
//! `decode` reads the objects.

use kube::core::{ApiResource, DynamicObject};
use pellucid_model::{CustomKindRef, ObjectKind};

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pod,
    Node,
    Object(ObjectKind),
    Custom(CustomKindRef),
}

impl Kind {
    /// Returns the name of the kind, as in logs and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Node => "Node",
            Self::Object(kind) => kind.as_str(),
            Self::Custom(kind) => kind.0.qualified,
        }
    }

    /// Returns whether the server may lack the kind, which then has no objects.
    pub(crate) fn is_optional(self) -> bool {
        matches!(self, Self::Object(_) | Self::Custom(_))
    }

    /// Returns whether the version is found by discovery (`served`).
    pub(crate) fn is_discovered(self) -> bool {
        matches!(self, Self::Object(ObjectKind::PodGroupNative | ObjectKind::WorkloadNative))
    }

    /// Returns where the kind is served. For native PodGroups and Workloads, that is the version of Kubernetes 1.36.
    pub(crate) fn resource(self) -> ApiResource {
        let (group, plural, version) = match self {
            Self::Pod => ("", "pods", "v1"),
            Self::Node => ("", "nodes", "v1"),
            Self::Object(kind) => served_at(kind),
            Self::Custom(CustomKindRef(kind)) => (kind.group, kind.plural, kind.version),
        };
        let slash = if group.is_empty() { "" } else { "/" };
        ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: format!("{group}{slash}{version}"),
            kind: self.as_str().split('.').next().unwrap_or_default().into(),
            plural: plural.into(),
        }
    }
}

/// Returns API group, plural name and version.
fn served_at(kind: ObjectKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        ObjectKind::PodGroupX => ("scheduling.x-k8s.io", "podgroups", "v1alpha1"),
        ObjectKind::PodGroupSigs => ("scheduling.sigs.k8s.io", "podgroups", "v1alpha1"),
        ObjectKind::PodGroupIncubator => ("scheduling.incubator.k8s.io", "podgroups", "v1alpha1"),
        ObjectKind::PodGroupSigsDev => ("scheduling.sigs.dev", "podgroups", "v1alpha2"),
        ObjectKind::PodGroupNative => ("scheduling.k8s.io", "podgroups", "v1alpha2"),
        ObjectKind::QueueIncubator => ("scheduling.incubator.k8s.io", "queues", "v1alpha1"),
        ObjectKind::QueueSigsDev => ("scheduling.sigs.dev", "queues", "v1alpha2"),
        ObjectKind::WorkloadNative => ("scheduling.k8s.io", "workloads", "v1alpha2"),
        ObjectKind::Namespace => ("", "namespaces", "v1"),
        ObjectKind::Service => ("", "services", "v1"),
        ObjectKind::ReplicationController => ("", "replicationcontrollers", "v1"),
        ObjectKind::ReplicaSet => ("apps", "replicasets", "v1"),
        ObjectKind::StatefulSet => ("apps", "statefulsets", "v1"),
        ObjectKind::PodDisruptionBudget => ("policy", "poddisruptionbudgets", "v1"),
        ObjectKind::PersistentVolume => ("", "persistentvolumes", "v1"),
        ObjectKind::PersistentVolumeClaim => ("", "persistentvolumeclaims", "v1"),
        ObjectKind::StorageClass => ("storage.k8s.io", "storageclasses", "v1"),
        ObjectKind::CsiNode => ("storage.k8s.io", "csinodes", "v1"),
        ObjectKind::CsiDriver => ("storage.k8s.io", "csidrivers", "v1"),
        ObjectKind::CsiStorageCapacity => ("storage.k8s.io", "csistoragecapacities", "v1"),
        ObjectKind::VolumeAttachment => ("storage.k8s.io", "volumeattachments", "v1"),
    }
}

/// Returns the path of a kind across all namespaces.
pub(crate) fn path(resource: &ApiResource) -> String {
    <DynamicObject as kube::Resource>::url_path(resource, None)
}
