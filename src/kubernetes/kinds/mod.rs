//! The registry of watched kinds. One file per kind says where the kind is served, whether the scheduler can do without
//! it, what it must be allowed, and how its objects are read.
//!
//! To add a built-in kind, add its variants to `model::object`, a file here, and a line in `built_in`, which the
//! compiler asks for. Kinds that plugins bring (`model::custom`) are treated alike: watches, readiness, quarantine and
//! metrics know `Kind` alone. Elsewhere, because neither depends on an API server or on the scheduler: the events that
//! a changed object raises (`cluster::event`), and what the sandbox serves (`sandbox::kinds`).
#![expect(
    clippy::result_large_err,
    reason = "unreadable objects are rare, and a readable pod is larger still"
)]

mod custom;
mod gangs;
mod namespace;
mod node;
mod pod;
mod resource;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject};
use pellucid_cluster::input::Quarantined;
use pellucid_model::{CustomKindRef, CustomObject, Node, Object, ObjectKind, Pod};
use serde_json::Value;

use crate::decode::{Decoded, Decoder, Item, from_manifest};
use crate::kinds::resource::BuiltIn;
pub use crate::kinds::resource::Resource;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Pods.
    Pod,
    /// Nodes.
    Node,
    /// Another built-in kind.
    Object(ObjectKind),
    /// A kind that a plugin brings.
    Custom(CustomKindRef),
}

/// Returns the entry of a built-in kind.
fn built_in(kind: ObjectKind) -> &'static BuiltIn {
    match kind {
        ObjectKind::Namespace => &namespace::NAMESPACE,
        ObjectKind::Service => &workloads::service::SERVICE,
        ObjectKind::ReplicationController => &workloads::replication_controller::REPLICATION_CONTROLLER,
        ObjectKind::ReplicaSet => &workloads::replica_set::REPLICA_SET,
        ObjectKind::StatefulSet => &workloads::stateful_set::STATEFUL_SET,
        ObjectKind::PodDisruptionBudget => &workloads::pod_disruption_budget::POD_DISRUPTION_BUDGET,
        ObjectKind::PersistentVolume => &storage::persistent_volume::PERSISTENT_VOLUME,
        ObjectKind::PersistentVolumeClaim => &storage::persistent_volume_claim::PERSISTENT_VOLUME_CLAIM,
        ObjectKind::StorageClass => &storage::storage_class::STORAGE_CLASS,
        ObjectKind::CsiNode => &storage::csi_node::CSI_NODE,
        ObjectKind::CsiDriver => &storage::csi_driver::CSI_DRIVER,
        ObjectKind::CsiStorageCapacity => &storage::csi_storage_capacity::CSI_STORAGE_CAPACITY,
        ObjectKind::VolumeAttachment => &storage::volume_attachment::VOLUME_ATTACHMENT,
        ObjectKind::PodGroupX => &gangs::pod_group::X,
        ObjectKind::PodGroupSigs => &gangs::pod_group::SIGS,
        ObjectKind::PodGroupIncubator => &gangs::pod_group::INCUBATOR,
        ObjectKind::PodGroupSigsDev => &gangs::pod_group::SIGS_DEV,
        ObjectKind::PodGroupNative => &gangs::pod_group::NATIVE,
        ObjectKind::QueueIncubator => &gangs::queue::INCUBATOR,
        ObjectKind::QueueSigsDev => &gangs::queue::SIGS_DEV,
        ObjectKind::WorkloadNative => &gangs::workload::WORKLOAD,
    }
}

/// Returns where the watched kinds are served and what they take, with their names: Pods, Nodes, the other built-in
/// kinds, and those that plugins bring.
pub fn resources(custom: &[CustomKindRef]) -> impl Iterator<Item = (&'static str, Resource)> {
    let others = ObjectKind::ALL.into_iter().map(Kind::Object);
    let custom = custom.iter().copied().map(Kind::Custom);
    let all = [Kind::Pod, Kind::Node].into_iter().chain(others).chain(custom);
    all.map(|kind| (kind.as_str(), kind.resource()))
}

/// Returns the path of a kind across all namespaces.
pub(crate) fn path(resource: &ApiResource) -> String {
    <DynamicObject as kube::Resource>::url_path(resource, None)
}

impl Kind {
    /// Returns the name of the kind, as in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Node => "Node",
            Self::Object(kind) => kind.as_str(),
            Self::Custom(kind) => kind.0.qualified,
        }
    }

    /// Returns where the kind is served and what it takes.
    pub fn resource(self) -> Resource {
        match self {
            Self::Pod => pod::POD.resource,
            Self::Node => node::NODE.resource,
            Self::Object(kind) => built_in(kind).resource,
            Self::Custom(kind) => Resource::of_plugin(kind.0),
        }
    }

    /// Returns where the kind is served, as the client names it.
    pub(crate) fn api_resource(self) -> ApiResource {
        let Resource { group, version, plural, .. } = self.resource();
        let slash = if group.is_empty() { "" } else { "/" };
        ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: format!("{group}{slash}{version}"),
            kind: self.as_str().split('.').next().unwrap_or_default().into(),
            plural: plural.into(),
        }
    }

    /// Reads the text of an object. Fails when it is no JSON.
    pub(crate) fn read(self, text: &[u8]) -> serde_json::Result<Item> {
        Ok(match self {
            Self::Pod => (pod::POD.read)(text)?.map(|pod| Decoded::Pod(Arc::new(pod))),
            Self::Node => (node::NODE.read)(text)?.map(|node| Decoded::Node(Arc::new(node))),
            Self::Object(kind) => {
                (built_in(kind).read)(text)?.map(|object| Decoded::Object(Arc::new(object)))
            }
            Self::Custom(kind) => custom::read(kind, text)?.map(|object| Decoded::Custom(Arc::new(object))),
        })
    }
}

impl Decoder {
    /// Decodes a Pod manifest. Fails with the field that cannot be read.
    pub fn pod(&self, manifest: &Value) -> Result<Pod, Quarantined> {
        self.with(|| from_manifest("Pod", manifest, pod::POD.read))
    }

    /// Decodes a Node manifest. Fails with the field that cannot be read.
    pub fn node(&self, manifest: &Value) -> Result<Node, Quarantined> {
        self.with(|| from_manifest("Node", manifest, node::NODE.read))
    }

    /// Decodes a manifest of another kind. Fails with the field that cannot be read.
    pub fn object(&self, kind: ObjectKind, manifest: &Value) -> Result<Object, Quarantined> {
        self.with(|| from_manifest(kind.as_str(), manifest, built_in(kind).read))
    }

    /// Decodes a manifest of a plugin's kind. Fails with the field that cannot be read.
    pub fn custom(&self, kind: CustomKindRef, manifest: &Value) -> Result<CustomObject, Quarantined> {
        self.with(|| from_manifest(kind.0.qualified, manifest, |text| custom::read(kind, text)))
    }
}
