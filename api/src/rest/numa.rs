//! Bodies of the endpoints of NodeNUMAResource.
//!
//! Names of `nodes/:nodeName`, `cpuTopologyOptions/:nodeName` and `availableCPUs/:nodeName` are Koordinator's. Sets of CPUs
//! are Linux cpuset lists (`0-3,8`), amounts are quantities by resource name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// `NodeNUMAResource/state` and `NodeNUMAResource/nodes`: nodes with a NodeResourceTopology or with pods that hold CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaState {
    /// Page and snapshot.
    pub meta: Meta,
    /// Number of NodeResourceTopologies.
    pub topologies: usize,
    /// Number of nodes without one.
    pub unreported: usize,
    /// Number of nodes of which something cannot be used.
    pub with_problems: usize,
    /// NodeResourceTopologies of nodes that do not exist, the first thousand by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_node: Vec<String>,
    /// The nodes, by name.
    pub nodes: Vec<NumaNode>,
    /// Whether `nodes` is cut.
    pub truncated: bool,
}

/// A node's CPUs and NUMA nodes in short.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaNode {
    /// Name of the node.
    pub node_name: String,
    /// Number of logical CPUs; 0 when they are not known.
    pub cpus: usize,
    /// Number of CPUs that are kept from pods.
    pub reserved_cpus: usize,
    /// Number of CPUs that pods have.
    pub allocated_cpus: usize,
    /// Number of CPUs that can be given.
    pub available_cpus: usize,
    /// Number of NUMA nodes with amounts.
    pub numa_nodes: usize,
    /// NUMA topology policy, empty for none.
    pub numa_topology_policy: String,
    /// Bind policy that the node forces, empty for none.
    pub cpu_bind_policy: String,
    /// Number of pods that hold CPUs or amounts on NUMA nodes.
    pub pods: usize,
    /// Number of problems.
    pub problems: usize,
}

/// `NodeNUMAResource/nodes/:nodeName`: everything about a node's CPUs and NUMA nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaNodeDetail {
    /// Name of the node.
    pub name: String,
    /// What the node reports.
    #[serde(flatten)]
    pub options: CpuTopologyOptions,
    /// What is left of each NUMA node.
    #[serde(rename = "remainingNUMANodeResources")]
    pub remaining_numa_node_resources: Vec<NumaNodeResource>,
    /// What pods hold of each NUMA node.
    #[serde(rename = "allocatedNUMANodeResources")]
    pub allocated_numa_node_resources: Vec<NumaNodeResource>,
    /// CPUs that can be given.
    #[serde(rename = "availableCPUs")]
    pub available_cpus: String,
    /// CPUs that pods have, by id.
    #[serde(rename = "allocatedCPUs")]
    pub allocated_cpus: BTreeMap<String, CpuDetail>,
    /// Pods that hold something, by name.
    pub allocated_pods: Vec<NumaPod>,
    /// CPUs that the kubelet gave to pods, and that this scheduler gives to nobody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kubelet_pods: Vec<NumaPod>,
    /// Shared pools: CPUs of pods without CPUs of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared_pools: Vec<CpuSharedPool>,
    /// Shared pools of BE pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub be_shared_pools: Vec<CpuSharedPool>,
    /// What about the node cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<NumaProblem>,
}

/// `NodeNUMAResource/cpuTopologyOptions/:nodeName`: what a node reports of its CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuTopologyOptions {
    /// The CPUs; absent when they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_topology: Option<CpuTopologyBody>,
    /// CPUs that no pod is given.
    #[serde(rename = "reservedCPUs")]
    pub reserved_cpus: String,
    /// How many pods may have a CPU at the same time.
    pub max_ref_count: u16,
    /// The kubelet's CPU manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<KubeletCpuPolicy>,
    /// NUMA topology policy, empty for none.
    pub numa_topology_policy: String,
    /// What each NUMA node offers, amplified and without reserved CPUs.
    #[serde(rename = "numaNodeResources")]
    pub numa_node_resources: Vec<NumaNodeResource>,
    /// By how much the amounts are larger than what the node has, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub amplification_ratios: BTreeMap<String, f64>,
}

/// The CPUs of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuTopologyBody {
    /// Number of logical CPUs.
    #[serde(rename = "numCPUs")]
    pub num_cpus: usize,
    /// Number of cores.
    pub num_cores: usize,
    /// Number of NUMA nodes.
    pub num_nodes: usize,
    /// Number of sockets.
    pub num_sockets: usize,
    /// The logical CPUs, by id.
    pub cpu_details: BTreeMap<String, CpuDetail>,
}

/// A logical CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuDetail {
    /// Id of the CPU.
    #[serde(rename = "cpuID")]
    pub cpu_id: usize,
    /// Its core: the socket in the upper 16 bits, the core's id in the socket in the lower ones.
    #[serde(rename = "coreID")]
    pub core_id: u32,
    /// Its NUMA node.
    #[serde(rename = "nodeID")]
    pub node_id: u16,
    /// Its socket.
    #[serde(rename = "socketID")]
    pub socket_id: u16,
    /// How many pods have it. Under `cpuDetails` always 0.
    pub ref_count: u16,
    /// Exclusive policy of the pod that has it, empty for none.
    pub exclusive_policy: String,
}

/// The kubelet's CPU manager.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletCpuPolicy {
    /// `none` or `static`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Its options, such as `full-pcpus-only`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// CPUs that the kubelet keeps for the system.
    #[serde(rename = "reservedCPUs", skip_serializing_if = "String::is_empty")]
    pub reserved_cpus: String,
}

/// Amounts on a NUMA node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaNodeResource {
    /// Id of the NUMA node.
    pub node: u16,
    /// Amounts by resource.
    pub resources: BTreeMap<String, String>,
}

/// A pod with what it holds of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaPod {
    /// uid of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Namespace of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its CPUs.
    pub cpuset: String,
    /// Exclusive policy that the pod names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_exclusive_policy: String,
    /// Its amounts on NUMA nodes.
    #[serde(rename = "numaNodeResources", skip_serializing_if = "Vec::is_empty")]
    pub numa_node_resources: Vec<NumaNodeResource>,
}

/// CPUs of pods without CPUs of their own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuSharedPool {
    /// Socket of the CPUs.
    pub socket: u16,
    /// NUMA node of the CPUs.
    pub node: u16,
    /// The CPUs.
    pub cpuset: String,
}

/// Something about a node that cannot be used.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumaProblem {
    /// The annotation, label or field.
    pub field: String,
    /// Its value, or what of it cannot be used.
    pub value: String,
    /// What is wrong, and what counts instead.
    pub problem: String,
}

/// `NodeNUMAResource/availableCPUs/:nodeName`: what can be given of a node's CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableCpus {
    /// CPUs that can be given.
    #[serde(rename = "availableCPUs")]
    pub available_cpus: String,
    /// CPUs that pods have, by id.
    pub allocated: BTreeMap<String, CpuDetail>,
}
