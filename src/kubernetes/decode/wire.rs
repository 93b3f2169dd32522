//! The fields of Pods and Nodes that are read, and those that several kinds share. All others are skipped without
//! allocation.
//!
//! These types reject no value (see `lenient`); the readers validate.

use std::sync::Arc;

use pellucid_model::Name;

use crate::decode::lenient::{KnownAnnotations, Lenient, List, Map, Moment, QuantityText};

/// Declares structs of lenient fields, named as in the API.
macro_rules! wire_types {
    ($($(#[$doc:meta])* struct $name:ident { $($(#[$attr:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(crate) struct $name { $($(#[$attr])* pub(crate) $field: $type,)* }

        impl $crate::decode::lenient::Shape for $name {
            const WANTED: &'static str = "an object";
            fn map<'de, A: serde::de::MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
                serde::Deserialize::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Some)
            }
        }
    )*};
}
pub(crate) use wire_types;

wire_types! {
    /// `metadata` of any object.
    struct Meta {
        name: Lenient<Arc<str>>,
        namespace: Lenient<Name>,
        uid: Lenient<Arc<str>>,
        resource_version: Lenient<Arc<str>>,
        creation_timestamp: Lenient<Moment>,
        deletion_timestamp: Lenient<Moment>,
        labels: Map<Name>,
        annotations: Lenient<KnownAnnotations>,
        owner_references: List<OwnerReference>,
    }
    /// An object of which only `metadata` is read.
    struct NamedBody {
        metadata: Lenient<Meta>,
    }
    /// An entry of `metadata.ownerReferences`.
    struct OwnerReference {
        api_version: Lenient<Name>,
        kind: Lenient<Name>,
        name: Lenient<Name>,
        uid: Lenient<Arc<str>>,
        controller: Lenient<bool>,
    }
    struct LabelSelector {
        match_labels: Map<Name>,
        match_expressions: List<Requirement>,
    }
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
        preemption_policy: Lenient<Name>,
        host_network: Lenient<bool>,
        host_users: Lenient<bool>,
        scheduling_gates: List<Named>,
        node_selector: Map<Name>,
        affinity: Lenient<Affinity>,
        topology_spread_constraints: List<SpreadConstraint>,
        tolerations: List<Toleration>,
        containers: List<Container>,
        init_containers: List<Container>,
        overhead: Map<QuantityText>,
        resources: Lenient<Resources>,
        resource_claims: List<Named>,
        volumes: List<Volume>,
        scheduling_group: Lenient<SchedulingGroup>,
    }
    /// `spec.schedulingGroup`.
    struct SchedulingGroup {
        pod_group_name: Lenient<Name>,
    }
    /// A scheduling gate, or a resource claim of a pod.
    struct Named {
        name: Lenient<Name>,
    }
    /// `spec.affinity`.
    struct Affinity {
        node_affinity: Lenient<NodeAffinity>,
        pod_affinity: Lenient<PodTerms>,
        pod_anti_affinity: Lenient<PodTerms>,
    }
    /// `podAffinity` or `podAntiAffinity`.
    struct PodTerms {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: List<PodTerm>,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: List<WeightedPodTerm>,
    }
    struct PodTerm {
        label_selector: Lenient<LabelSelector>,
        match_label_keys: List<Name>,
        mismatch_label_keys: List<Name>,
        namespaces: List<Name>,
        namespace_selector: Lenient<LabelSelector>,
        topology_key: Lenient<Name>,
    }
    struct WeightedPodTerm {
        weight: Lenient<i64>,
        pod_affinity_term: Lenient<PodTerm>,
    }
    /// An entry of `topologySpreadConstraints`.
    struct SpreadConstraint {
        max_skew: Lenient<i64>,
        topology_key: Lenient<Name>,
        when_unsatisfiable: Lenient<Name>,
        label_selector: Lenient<LabelSelector>,
        match_label_keys: List<Name>,
        min_domains: Lenient<i64>,
        node_affinity_policy: Lenient<Name>,
        node_taints_policy: Lenient<Name>,
    }
    /// `spec.affinity.nodeAffinity`.
    struct NodeAffinity {
        #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
        required: Lenient<NodeSelector>,
        #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
        preferred: List<PreferredTerm>,
    }
    /// `required` node affinity of a Pod or a PersistentVolume.
    struct NodeSelector {
        node_selector_terms: List<SelectorTerm>,
    }
    /// An entry of `preferred` node affinity.
    struct PreferredTerm {
        weight: Lenient<i64>,
        preference: Lenient<SelectorTerm>,
    }
    /// A node selector term.
    struct SelectorTerm {
        match_expressions: List<Requirement>,
        match_fields: List<Requirement>,
    }
    /// A requirement of a node selector term or label selector.
    struct Requirement {
        key: Lenient<Name>,
        operator: Lenient<Name>,
        values: List<Name>,
    }
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
        restart_policy_rules: List<RestartRule>,
        resources: Lenient<Resources>,
        ports: List<Port>,
    }
    /// An entry of `restartPolicyRules`.
    struct RestartRule {
        action: Lenient<Name>,
    }
    /// `resources` of a pod, a container or a container status.
    struct Resources {
        requests: Map<QuantityText>,
        limits: Map<QuantityText>,
    }
    /// An entry of a container's `ports`.
    struct Port {
        container_port: Lenient<i64>,
        host_port: Lenient<i64>,
        #[serde(rename = "hostIP")]
        host_ip: Lenient<Name>,
        protocol: Lenient<Name>,
    }
    /// An entry of `spec.volumes`.
    struct Volume {
        name: Lenient<Name>,
        image: Lenient<VolumeImage>,
        persistent_volume_claim: Lenient<ClaimSource>,
        /// Marks a volume for which the volume controller makes a claim. The template is not read.
        ephemeral: Lenient<EmptySource>,
        gce_persistent_disk: Lenient<GceDisk>,
        aws_elastic_block_store: Lenient<IdSource>,
        iscsi: Lenient<IscsiDisk>,
        rbd: Lenient<RbdImage>,
    }
    /// The source of an image volume.
    struct VolumeImage {
        reference: Lenient<Name>,
    }
    /// The source of a volume that mounts a claim.
    struct ClaimSource {
        claim_name: Lenient<Name>,
    }
    /// An object of which only the presence matters.
    struct EmptySource {}
    struct GceDisk {
        pd_name: Lenient<Name>,
        read_only: Lenient<bool>,
    }
    /// The source of an in-tree volume that has an id.
    struct IdSource {
        #[serde(rename = "volumeID")]
        volume_id: Lenient<Name>,
    }
    struct IscsiDisk {
        iqn: Lenient<Name>,
        read_only: Lenient<bool>,
    }
    /// An image in a Ceph pool.
    struct RbdImage {
        monitors: List<Name>,
        pool: Lenient<Name>,
        image: Lenient<Name>,
        read_only: Lenient<bool>,
    }
    /// `status` of a Pod.
    struct PodStatus {
        phase: Lenient<Name>,
        start_time: Lenient<Moment>,
        nominated_node_name: Lenient<Name>,
        conditions: List<Condition>,
        container_statuses: List<ContainerStatus>,
        init_container_statuses: List<ContainerStatus>,
        allocated_resources: Map<QuantityText>,
        resources: Lenient<Resources>,
    }
    /// An entry of `conditions` of a Pod, Node or PodGroup.
    struct Condition {
        r#type: Lenient<Name>,
        status: Lenient<Name>,
        reason: Lenient<Arc<str>>,
        message: Lenient<Arc<str>>,
        last_transition_time: Lenient<Moment>,
    }
    /// A container's status, as the kubelet reports it.
    struct ContainerStatus {
        name: Lenient<Name>,
        allocated_resources: Map<QuantityText>,
        resources: Lenient<Resources>,
    }
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
        declared_features: List<Name>,
    }
    /// An entry of `images` of a Node.
    struct Image {
        names: List<Name>,
        size_bytes: Lenient<i64>,
    }
}
