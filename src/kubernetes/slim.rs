//! The parts of Pods and Nodes we read from the wire. Every other field is skipped without allocation.
//!
//! No type here refuses anything (see `lenient`); `decode` judges. `metadata` holds just what the watch
//! machinery needs.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess};

use super::lenient::{Lenient, List, Map, MirrorMark, Moment, QuantityText, Shape};
use crate::model::Name;

/// Declares structs of lenient fields in the API's spelling.
macro_rules! slim {
    ($($(#[$doc:meta])* struct $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $name { $($(#[$attr])* pub(super) $field: $type,)* }

        impl Shape for $name {
            const WANTED: &'static str = "an object";
            fn map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
                Self::deserialize(MapAccessDeserializer::new(map)).map(Some)
            }
        }
    )*};
}

slim! {
    /// `metadata`.
    struct Meta {
        name: Lenient<Arc<str>>,
        namespace: Lenient<Name>,
        uid: Lenient<Arc<str>>,
        resource_version: Lenient<Arc<str>>,
        creation_timestamp: Lenient<Moment>,
        deletion_timestamp: Lenient<Moment>,
        labels: Map<Name>,
        annotations: Lenient<MirrorMark>,
    }
    /// A Pod.
    struct PodBody {
        metadata: Lenient<Meta>,
        spec: Lenient<PodSpec>,
        status: Lenient<PodStatus>,
    }
    /// `spec` of a Pod.
    struct PodSpec {
        node_name: Lenient<Name>,
        scheduler_name: Lenient<Name>,
        priority: Lenient<i64>,
        host_network: Lenient<bool>,
        scheduling_gates: List<Gate>,
        node_selector: Map<Name>,
        affinity: Lenient<Affinity>,
        tolerations: List<Toleration>,
        containers: List<Container>,
        init_containers: List<Container>,
        overhead: Map<QuantityText>,
        resources: Lenient<Resources>,
        volumes: List<Volume>,
    }
    /// A scheduling gate.
    struct Gate {
        name: Lenient<Name>,
    }
    /// `spec.affinity`.
    struct Affinity {
        node_affinity: Lenient<NodeAffinity>,
    }
    /// `spec.affinity.nodeAffinity`.
    struct NodeAffinity {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: Lenient<NodeSelector>,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: List<PreferredTerm>,
    }
    /// A node selector.
    struct NodeSelector {
        node_selector_terms: List<SelectorTerm>,
    }
    /// A preferred term.
    struct PreferredTerm {
        weight: Lenient<i64>,
        preference: Lenient<SelectorTerm>,
    }
    /// A node selector term.
    struct SelectorTerm {
        match_expressions: List<Requirement>,
        match_fields: List<Requirement>,
    }
    /// One requirement of a node selector term.
    struct Requirement {
        key: Lenient<Name>,
        operator: Lenient<Name>,
        values: List<Name>,
    }
    /// A toleration.
    struct Toleration {
        key: Lenient<Name>,
        operator: Lenient<Name>,
        value: Lenient<Name>,
        effect: Lenient<Name>,
    }
    /// A container or init container.
    struct Container {
        name: Lenient<Name>,
        image: Lenient<Name>,
        restart_policy: Lenient<Name>,
        resources: Lenient<Resources>,
        ports: List<Port>,
    }
    /// Requests and limits.
    struct Resources {
        requests: Map<QuantityText>,
        limits: Map<QuantityText>,
    }
    /// A port of a container.
    struct Port {
        container_port: Lenient<i64>,
        host_port: Lenient<i64>,
        #[serde(rename = "hostIP")]
        host_ip: Lenient<Name>,
        protocol: Lenient<Name>,
    }
    /// A volume; only image volumes matter so far.
    struct Volume {
        image: Lenient<VolumeImage>,
    }
    /// The image of an image volume.
    struct VolumeImage {
        reference: Lenient<Name>,
    }
    /// `status` of a Pod.
    struct PodStatus {
        phase: Lenient<Name>,
        nominated_node_name: Lenient<Name>,
        conditions: List<Condition>,
        container_statuses: List<ContainerStatus>,
        init_container_statuses: List<ContainerStatus>,
    }
    /// A condition of a Pod or Node.
    struct Condition {
        r#type: Lenient<Name>,
        status: Lenient<Name>,
        reason: Lenient<Arc<str>>,
        message: Lenient<Arc<str>>,
    }
    /// What the kubelet says of a container.
    struct ContainerStatus {
        name: Lenient<Name>,
        allocated_resources: Map<QuantityText>,
        resources: Lenient<Resources>,
    }
    /// A Node.
    struct NodeBody {
        metadata: Lenient<Meta>,
        spec: Lenient<NodeSpec>,
        status: Lenient<NodeStatus>,
    }
    /// `spec` of a Node.
    struct NodeSpec {
        unschedulable: Lenient<bool>,
        taints: List<Taint>,
    }
    /// A taint.
    struct Taint {
        key: Lenient<Name>,
        value: Lenient<Name>,
        effect: Lenient<Name>,
    }
    /// `status` of a Node.
    struct NodeStatus {
        allocatable: Map<QuantityText>,
        capacity: Map<QuantityText>,
        conditions: List<Condition>,
        images: List<Image>,
    }
    /// An image on a Node.
    struct Image {
        names: List<Name>,
        size_bytes: Lenient<i64>,
    }
}

/// A Pod on the wire.
#[derive(Clone, Debug, Default, kube::Resource)]
#[resource(inherit = "core::Pod")]
pub(super) struct SlimPod {
    /// Names, uid and resource version.
    pub(super) metadata: ObjectMeta,
    /// Everything we read.
    pub(super) body: Lenient<PodBody>,
}

/// A Node on the wire.
#[derive(Clone, Debug, Default, kube::Resource)]
#[resource(inherit = "core::Node")]
pub(super) struct SlimNode {
    /// Name, uid and resource version.
    pub(super) metadata: ObjectMeta,
    /// Everything we read.
    pub(super) body: Lenient<NodeBody>,
}

impl<'de> Deserialize<'de> for SlimPod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = Lenient::<PodBody>::deserialize(deserializer)?;
        Ok(Self { metadata: object_meta(body.good().map(|b| &b.metadata)), body })
    }
}

impl<'de> Deserialize<'de> for SlimNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = Lenient::<NodeBody>::deserialize(deserializer)?;
        Ok(Self { metadata: object_meta(body.good().map(|b| &b.metadata)), body })
    }
}

fn object_meta(meta: Option<&Lenient<Meta>>) -> ObjectMeta {
    let Some(meta) = meta.and_then(Lenient::good) else { return ObjectMeta::default() };
    let text = |field: &Lenient<Arc<str>>| field.good().map(|t| t.to_string());
    ObjectMeta {
        name: text(&meta.name),
        namespace: meta.namespace.good().map(|n| n.to_string()),
        resource_version: text(&meta.resource_version),
        ..Default::default()
    }
}
