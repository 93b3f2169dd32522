//! The fields that are read of kinds other than Pods and Nodes.

use std::sync::Arc;

use pellucid_model::Name;

use crate::decode::lenient::{Lenient, List, Map, Moment, QuantityText, Shape};
use crate::decode::slim::{
    Condition, EmptySource, GceDisk, IdSource, LabelSelector, Meta, NodeSelector, slim_types,
};

slim_types! {
    struct NamespaceBody {
        metadata: Lenient<Meta>,
    }
    /// A kube-batch Queue or a native Workload.
    struct NamedBody {
        metadata: Lenient<Meta>,
    }
    /// A PodGroup of any API group.
    struct GroupBody {
        metadata: Lenient<Meta>,
        spec: Lenient<GroupSpec>,
        status: Lenient<GroupStatus>,
    }
    /// `spec` of a PodGroup: the fields of all API groups.
    struct GroupSpec {
        min_member: Lenient<i64>,
        min_resources: Map<QuantityText>,
        schedule_timeout_seconds: Lenient<i64>,
        queue: Lenient<Name>,
        priority: Lenient<i64>,
        scheduling_policy: Lenient<GroupPolicy>,
        scheduling_constraints: Lenient<GroupConstraints>,
        parent_composite_pod_group_name: Lenient<Name>,
        pod_group_template_ref: Lenient<GroupTemplate>,
        workload_ref: Lenient<WorkloadReference>,
    }
    /// `spec.schedulingPolicy` of a native PodGroup.
    struct GroupPolicy {
        basic: Lenient<EmptySource>,
        gang: Lenient<GangPolicy>,
    }
    /// `spec.schedulingPolicy.gang` of a native PodGroup.
    struct GangPolicy {
        min_count: Lenient<i64>,
    }
    /// `spec.schedulingConstraints` of a native PodGroup; only their presence matters.
    struct GroupConstraints {
        topology: List<EmptySource>,
    }
    /// `spec.podGroupTemplateRef` of a native PodGroup.
    struct GroupTemplate {
        workload: Lenient<WorkloadReference>,
    }
    /// A reference to the Workload that a native PodGroup was made from.
    struct WorkloadReference {
        workload_name: Lenient<Name>,
    }
    /// `status` of a PodGroup: the fields of all API groups.
    struct GroupStatus {
        phase: Lenient<Name>,
        occupied_by: Lenient<Arc<str>>,
        scheduled: Lenient<i64>,
        running: Lenient<i64>,
        succeeded: Lenient<i64>,
        failed: Lenient<i64>,
        schedule_start_time: Lenient<Moment>,
        conditions: List<Condition>,
    }
    /// A Service or a ReplicationController, which select pods by a map of labels.
    struct PairsBody {
        metadata: Lenient<Meta>,
        spec: Lenient<PairsSpec>,
    }
    /// `spec` of a Service or a ReplicationController.
    struct PairsSpec {
        selector: Map<Name>,
        replicas: Lenient<i64>,
    }
    /// A ReplicaSet or a StatefulSet, which select pods by a label selector.
    struct SetBody {
        metadata: Lenient<Meta>,
        spec: Lenient<SetSpec>,
    }
    /// `spec` of a ReplicaSet, a StatefulSet or a PodDisruptionBudget.
    struct SetSpec {
        selector: Lenient<LabelSelector>,
        replicas: Lenient<i64>,
    }
    /// A PodDisruptionBudget.
    struct BudgetBody {
        metadata: Lenient<Meta>,
        spec: Lenient<SetSpec>,
        status: Lenient<BudgetStatus>,
    }
    /// `status` of a PodDisruptionBudget.
    struct BudgetStatus {
        disruptions_allowed: Lenient<i64>,
        disrupted_pods: Map<Moment>,
    }
    /// A PersistentVolume.
    struct VolumeBody {
        metadata: Lenient<Meta>,
        spec: Lenient<VolumeSpec>,
        status: Lenient<PhaseStatus>,
    }
    /// `status` of a PersistentVolume or PersistentVolumeClaim.
    struct PhaseStatus {
        phase: Lenient<Name>,
    }
    /// `spec` of a PersistentVolume.
    struct VolumeSpec {
        capacity: Lenient<Storage>,
        access_modes: List<Name>,
        storage_class_name: Lenient<Name>,
        volume_mode: Lenient<Name>,
        claim_ref: Lenient<ClaimReference>,
        node_affinity: Lenient<VolumeAffinity>,
        csi: Lenient<CsiSource>,
        aws_elastic_block_store: Lenient<IdSource>,
        gce_persistent_disk: Lenient<GceDisk>,
        azure_disk: Lenient<AzureDiskSource>,
        azure_file: Lenient<EmptySource>,
        cinder: Lenient<IdSource>,
        vsphere_volume: Lenient<VsphereSource>,
        portworx_volume: Lenient<IdSource>,
    }
    /// A resource list; only `storage` is read.
    struct Storage {
        storage: Lenient<QuantityText>,
    }
    /// `spec.claimRef` of a PersistentVolume.
    struct ClaimReference {
        namespace: Lenient<Name>,
        name: Lenient<Name>,
        uid: Lenient<Arc<str>>,
    }
    /// `spec.nodeAffinity` of a PersistentVolume.
    struct VolumeAffinity {
        required: Lenient<NodeSelector>,
    }
    /// The source of a CSI volume.
    struct CsiSource {
        driver: Lenient<Name>,
        volume_handle: Lenient<Name>,
    }
    /// The source of an Azure disk.
    struct AzureDiskSource {
        #[serde(rename = "diskURI")]
        disk_uri: Lenient<Name>,
    }
    /// The source of a vSphere volume.
    struct VsphereSource {
        volume_path: Lenient<Name>,
    }
    /// A PersistentVolumeClaim.
    struct ClaimBody {
        metadata: Lenient<Meta>,
        spec: Lenient<ClaimSpec>,
        status: Lenient<PhaseStatus>,
    }
    /// `spec` of a PersistentVolumeClaim.
    struct ClaimSpec {
        access_modes: List<Name>,
        resources: Lenient<ClaimResources>,
        storage_class_name: Lenient<Name>,
        volume_mode: Lenient<Name>,
        selector: Lenient<LabelSelector>,
        volume_name: Lenient<Name>,
    }
    /// `spec.resources` of a PersistentVolumeClaim.
    struct ClaimResources {
        requests: Lenient<Storage>,
    }
    /// A StorageClass.
    struct ClassBody {
        metadata: Lenient<Meta>,
        provisioner: Lenient<Name>,
        volume_binding_mode: Lenient<Name>,
        allowed_topologies: List<TopologyTerm>,
    }
    /// An entry of `allowedTopologies`.
    struct TopologyTerm {
        match_label_expressions: List<TopologyRequirement>,
    }
    /// An entry of `matchLabelExpressions`: the label has one of these values.
    struct TopologyRequirement {
        key: Lenient<Name>,
        values: List<Name>,
    }
    struct CsiNodeBody {
        metadata: Lenient<Meta>,
        spec: Lenient<CsiNodeSpec>,
    }
    /// `spec` of a CSINode.
    struct CsiNodeSpec {
        drivers: List<NodeDriver>,
    }
    /// An entry of `drivers` of a CSINode.
    struct NodeDriver {
        name: Lenient<Name>,
        allocatable: Lenient<NodeDriverRoom>,
    }
    /// `allocatable` of a driver on a node.
    struct NodeDriverRoom {
        count: Lenient<i64>,
    }
    struct CsiDriverBody {
        metadata: Lenient<Meta>,
        spec: Lenient<CsiDriverSpec>,
    }
    /// `spec` of a CSIDriver.
    struct CsiDriverSpec {
        storage_capacity: Lenient<bool>,
        prevent_pod_scheduling_if_missing: Lenient<bool>,
    }
    /// A CSIStorageCapacity.
    struct CapacityBody {
        metadata: Lenient<Meta>,
        storage_class_name: Lenient<Name>,
        capacity: Lenient<QuantityText>,
        maximum_volume_size: Lenient<QuantityText>,
        node_topology: Lenient<LabelSelector>,
    }
    /// A VolumeAttachment.
    struct AttachmentBody {
        metadata: Lenient<Meta>,
        spec: Lenient<AttachmentSpec>,
    }
    /// `spec` of a VolumeAttachment.
    struct AttachmentSpec {
        attacher: Lenient<Name>,
        node_name: Lenient<Name>,
        source: Lenient<AttachmentSource>,
    }
    /// `spec.source` of a VolumeAttachment.
    struct AttachmentSource {
        persistent_volume_name: Lenient<Name>,
    }
}
