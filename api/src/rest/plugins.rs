//! Bodies of the plugins' own endpoints: `/apis/v1/plugins/<Plugin>/state` and the like.
//!
//! The unit of an amount is in its name or follows from the resource beside it: `cpu` in thousandths of a core,
//! `memory` and `ephemeral-storage` in bytes, `pods` and extended resources in pieces. Lists are sorted; a truncated
//! list sets `truncated`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `NodeUnschedulable/state`: the cordoned nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeUnschedulableState {
    /// Names of the cordoned nodes, sorted.
    pub unschedulable_nodes: Vec<String>,
    /// Number of all nodes.
    pub total_nodes: usize,
}

/// `SchedulingGates/state`: which gates hold how many pods back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingGatesState {
    /// The gates, by name.
    pub gates: Vec<GateUse>,
    /// Number of pods that have at least one gate.
    pub gated_pods: usize,
    /// Whether there are more gates than listed.
    pub truncated: bool,
}

/// A scheduling gate and the pods that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateUse {
    /// Name of the gate, as in `spec.schedulingGates[].name`.
    pub gate: String,
    /// Number of pods that have it.
    pub pods: usize,
    /// Up to five of them as `namespace/name`, sorted.
    pub examples: Vec<String>,
}

/// `PrioritySort/state`: pending pods by priority, the highest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrioritySortState {
    /// The priorities in use, the highest first.
    pub priorities: Vec<PriorityUse>,
    /// Number of pending pods.
    pub pending_pods: usize,
    /// Whether there are more priorities than listed.
    pub truncated: bool,
}

/// A priority and the pending pods that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorityUse {
    /// `spec.priority`.
    pub priority: i32,
    /// Number of pending pods, gated ones included.
    pub pending_pods: usize,
    /// Number of those that have scheduling gates.
    pub gated_pods: usize,
}

/// `NodeName/state`: pending pods that ask for a node by name. Normally none: such a pod is placed
/// already.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNameState {
    /// The pods, by namespace and name.
    pub pods: Vec<NamedNode>,
    /// Number of all such pods.
    pub total_pods: usize,
    /// Whether there are more pods than listed.
    pub truncated: bool,
}

/// A pod that asks for a node by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedNode {
    /// `namespace/name` of the pod.
    pub pod: String,
    /// Name of the node.
    pub node_name: String,
    /// Whether there is such a node.
    pub node_exists: bool,
}

/// `TaintToleration/state`: every distinct taint, with the nodes that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaintTolerationState {
    /// The taints, by key, value and effect.
    pub taints: Vec<TaintUse>,
    /// Number of nodes with at least one NoSchedule or NoExecute taint.
    pub nodes_that_refuse: usize,
    /// Number of nodes with at least one PreferNoSchedule taint.
    pub nodes_that_discourage: usize,
    /// Number of all nodes.
    pub total_nodes: usize,
    /// Whether there are more taints than listed.
    pub truncated: bool,
}

/// A taint and the nodes that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaintUse {
    /// Key.
    pub key: String,
    /// Value, empty when there is none.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Number of nodes that have it.
    pub nodes: usize,
    /// Up to five of them, sorted.
    pub examples: Vec<String>,
}

/// `NodeAffinity/state`: the label keys that a selector can name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeAffinityState {
    /// The label keys on nodes, by name.
    pub labels: Vec<LabelUse>,
    /// Number of all nodes.
    pub total_nodes: usize,
    /// Whether there are more keys than listed.
    pub truncated: bool,
}

/// A label key and the nodes that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelUse {
    /// Label key.
    pub key: String,
    /// Number of nodes that have it.
    pub nodes: usize,
    /// Number of distinct values.
    pub distinct_values: usize,
    /// Up to five values, sorted.
    pub examples: Vec<String>,
}

/// `NodePorts/state`: the host ports in use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePortsState {
    /// Nodes on which a host port is in use, by name.
    pub nodes: Vec<NodePortsOfNode>,
    /// Number of all such nodes.
    pub nodes_with_ports: usize,
    /// Whether there are more nodes than listed.
    pub truncated: bool,
}

/// The host ports in use on a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePortsOfNode {
    /// Name of the node.
    pub node_name: String,
    /// The ports, by number, protocol and IP.
    pub used_ports: Vec<UsedPort>,
}

/// A host port in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsedPort {
    /// Port number.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Host IP; `0.0.0.0` stands for all.
    pub host_ip: String,
}

/// `NodeResourcesFit/state`: what the cluster offers and what is left, per resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesFitState {
    /// The resources: cpu, memory, ephemeral-storage, pods, then the others by name.
    pub resources: Vec<ResourceTotals>,
    /// Number of all nodes.
    pub total_nodes: usize,
}

/// One resource over all nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTotals {
    /// Name of the resource.
    pub resource: String,
    /// Unit of the amounts: `milliCPU`, `bytes` or `count`.
    pub unit: String,
    /// What all nodes offer together.
    pub allocatable: i64,
    /// What pods on nodes request, in every stage from reserved to bound.
    pub requested: i64,
    /// `allocatable - requested`.
    pub free: i64,
    /// Number of nodes on which more is requested than there is.
    pub overcommitted_nodes: usize,
    /// The node with the most left, when a node offers the resource.
    pub most_free: Option<MostFree>,
}

/// The node that has the most left of a resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MostFree {
    /// Name of the node.
    pub node_name: String,
    /// What it has left; negative when it is overcommitted.
    pub free: i64,
}

/// `NodeResourcesFit/nodes/:nodeName`: what one node offers and what is left.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesFitNode {
    /// Name of the node.
    pub node_name: String,
    /// The resources the node offers or its pods request, in the order of `state`.
    pub resources: Vec<NodeResource>,
}

/// One resource on one node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResource {
    /// Name of the resource.
    pub resource: String,
    /// Unit of the amounts: `milliCPU`, `bytes` or `count`.
    pub unit: String,
    /// What the node offers.
    pub allocatable: i64,
    /// What its pods request.
    pub requested: i64,
    /// What its pods request as scoring counts it: a container without a request counts as 100m CPU
    /// and 200 MiB of memory. Only for cpu and memory.
    pub requested_for_scoring: Option<i64>,
    /// `allocatable - requested`; negative when overcommitted.
    pub free: i64,
}

/// `NodeResourcesBalancedAllocation/state`: the nodes whose CPU and memory are used most unevenly.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesBalancedAllocationState {
    /// The most uneven nodes, the worst first.
    pub most_unbalanced: Vec<NodeBalance>,
    /// Mean balance over all nodes, 50 to 100.
    pub mean_balance: f64,
    /// Number of all nodes.
    pub total_nodes: usize,
    /// Whether there are more nodes than listed.
    pub truncated: bool,
}

/// How evenly a node's CPU and memory are used.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeBalance {
    /// Name of the node.
    pub node_name: String,
    /// 100 when both are used to the same degree, 50 when one is full and the other unused.
    pub balance: i64,
    /// Requested CPU over allocatable CPU, at most 1.
    pub cpu_fraction: f64,
    /// Requested memory over allocatable memory, at most 1.
    pub memory_fraction: f64,
}

/// `ImageLocality/state`: how many images nodes report, and the widest spread ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageLocalityState {
    /// Number of distinct image names.
    pub total_images: usize,
    /// Number of all nodes.
    pub total_nodes: usize,
    /// The images on the most nodes, then by name.
    pub most_spread: Vec<ImageUse>,
    /// Whether there are more images than listed.
    pub truncated: bool,
}

/// `ImageLocality/images`: the images on nodes, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageLocalityImages {
    /// The images, by name.
    pub images: Vec<ImageUse>,
    /// Whether there are more images than listed.
    pub truncated: bool,
}

/// An image and the nodes that have it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUse {
    /// Name, as nodes report it.
    pub image: String,
    /// Size that scoring uses, bytes: the one that the oldest node with the image reports.
    pub size_bytes: i64,
    /// Number of nodes that have it.
    pub nodes: usize,
    /// What a container with this image adds to a node that has it before the score is scaled, bytes:
    /// the size times the share of nodes that have it.
    pub scaled_bytes: i64,
}

/// `DefaultBinder/state`: pods on their way to a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultBinderState {
    /// Pods whose bind order waits to be pulled.
    pub permitted: usize,
    /// Pods whose PreBind effects are under way.
    pub pre_binding: usize,
    /// Pods whose Binding was sent and is not yet confirmed.
    pub binding: usize,
    /// Pods the API server says are bound.
    pub bound: usize,
    /// The pods that are permitted, pre-binding or binding, by namespace and name.
    pub pods: Vec<BindingPod>,
    /// Whether there are more pods than listed.
    pub truncated: bool,
}

/// A pod on its way to a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingPod {
    /// `namespace/name` of the pod.
    pub pod: String,
    /// Name of the node.
    pub node_name: String,
    /// `permitted`, `pre-binding` or `binding`.
    pub stage: String,
}
