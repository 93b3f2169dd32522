//! The kinds beside Pods and Nodes: where the API server serves them and which reader they have.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use pellucid_cluster::input::Quarantined;
use pellucid_model::{Object, ObjectKind};
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

use super::lenient::{Fault, Lenient, Shape};
use super::slim_objects::{
    AttachmentBody, BudgetBody, CapacityBody, ClaimBody, ClassBody, CsiDriverBody, CsiNodeBody, GroupBody,
    NamedBody, NamespaceBody, PairsBody, SetBody, VolumeBody,
};
use super::{quarantined, slim};

/// What is read of a kind (or of two that look alike), and how an object is made of it.
pub(crate) trait Body: Shape + Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Returns `metadata`.
    fn meta(&self) -> &Lenient<slim::Meta>;
    /// Makes an object of this kind.
    fn object(&self, kind: ObjectKind, meta: &slim::Meta) -> Result<Object, Fault>;
}

/// What is done for a kind, whatever its body.
pub(crate) trait ForKind {
    /// What comes of it.
    type Output;
    /// Does it.
    fn with<B: Body>(self) -> Self::Output;
}

/// Picks the body of a kind.
pub(crate) fn for_kind<F: ForKind>(kind: ObjectKind, task: F) -> F::Output {
    match kind {
        ObjectKind::Namespace => task.with::<NamespaceBody>(),
        ObjectKind::Service | ObjectKind::ReplicationController => task.with::<PairsBody>(),
        ObjectKind::ReplicaSet | ObjectKind::StatefulSet => task.with::<SetBody>(),
        ObjectKind::PodDisruptionBudget => task.with::<BudgetBody>(),
        ObjectKind::PersistentVolume => task.with::<VolumeBody>(),
        ObjectKind::PersistentVolumeClaim => task.with::<ClaimBody>(),
        ObjectKind::StorageClass => task.with::<ClassBody>(),
        ObjectKind::CsiNode => task.with::<CsiNodeBody>(),
        ObjectKind::CsiDriver => task.with::<CsiDriverBody>(),
        ObjectKind::CsiStorageCapacity => task.with::<CapacityBody>(),
        ObjectKind::VolumeAttachment => task.with::<AttachmentBody>(),
        ObjectKind::PodGroupX
        | ObjectKind::PodGroupSigs
        | ObjectKind::PodGroupIncubator
        | ObjectKind::PodGroupSigsDev
        | ObjectKind::PodGroupNative => task.with::<GroupBody>(),
        ObjectKind::QueueIncubator | ObjectKind::QueueSigsDev | ObjectKind::WorkloadNative => {
            task.with::<NamedBody>()
        }
    }
}

/// Returns where a kind is served. Native PodGroups and Workloads: in Kubernetes 1.36; see `served`.
pub(crate) fn resource(kind: ObjectKind) -> ApiResource {
    let (group, plural, version) = match kind {
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
    };
    let slash = if group.is_empty() { "" } else { "/" };
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: format!("{group}{slash}{version}"),
        kind: kind.as_str().split('.').next().unwrap_or_default().into(),
        plural: plural.into(),
    }
}

/// An object on the wire.
#[derive(Clone, Debug)]
pub(crate) struct SlimObject<B> {
    /// Names and resource version.
    pub(crate) metadata: ObjectMeta,
    /// Everything we read.
    body: Lenient<B>,
}

impl<'de, B: Body> Deserialize<'de> for SlimObject<B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = Lenient::<B>::deserialize(deserializer)?;
        Ok(Self { metadata: slim::object_meta(body.good().map(B::meta)), body })
    }
}

impl<B> kube::Resource for SlimObject<B> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }
    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }
    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }
    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }
    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Decodes a manifest of a kind.
pub fn object_from_value(kind: ObjectKind, value: &Value) -> Result<Object, Quarantined> {
    struct FromValue<'a>(ObjectKind, &'a Value);
    impl ForKind for FromValue<'_> {
        type Output = Result<Object, Quarantined>;
        fn with<B: Body>(self) -> Self::Output {
            match SlimObject::<B>::deserialize(self.1) {
                Ok(slim) => object(self.0, &slim),
                Err(error) => {
                    let fault = Fault::new("", "", error.to_string());
                    Err(quarantined(self.0.as_str(), None, None, fault))
                }
            }
        }
    }
    for_kind(kind, FromValue(kind, value))
}

/// Decodes an object of a kind.
pub(crate) fn object<B: Body>(kind: ObjectKind, slim: &SlimObject<B>) -> Result<Object, Quarantined> {
    let read = || {
        let Some(body) = slim.body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
        let no_meta = slim::Meta::default();
        body.object(kind, body.meta().read("metadata")?.unwrap_or(&no_meta))
    };
    read().map_err(|fault| {
        let meta = slim.body.good().and_then(|body| body.meta().good());
        quarantined(kind.as_str(), meta, None, fault)
    })
}
