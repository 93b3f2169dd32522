//! The labels and annotations that the plugin reads and writes, with Koordinator's names.

/// Pod annotation: bind and exclusive policies.
pub(super) const RESOURCE_SPEC: &str = "scheduling.koordinator.sh/resource-spec";
/// Pod annotation of the Binding: what the pod holds.
pub(super) const RESOURCE_STATUS: &str = "scheduling.koordinator.sh/resource-status";
/// Pod annotation: NUMA topology policy.
pub(super) const NUMA_TOPOLOGY_SPEC: &str = "scheduling.koordinator.sh/numa-topology-spec";

/// Node label: how CPUs are bound on the node.
pub(super) const CPU_BIND_POLICY: &str = "node.koordinator.sh/cpu-bind-policy";
/// Node label: which NUMA node is filled first.
pub(super) const NUMA_ALLOCATE_STRATEGY: &str = "node.koordinator.sh/numa-allocate-strategy";
/// Node label: NUMA topology policy.
pub(super) const NUMA_TOPOLOGY_POLICY: &str = "node.koordinator.sh/numa-topology-policy";

/// Annotation of nodes and NodeResourceTopologies: reserved CPUs.
pub(super) const RESERVATION: &str = "node.koordinator.sh/reservation";
/// Annotation of nodes and NodeResourceTopologies: CPUs of the system's own QoS class.
pub(super) const SYSTEM_QOS_RESOURCE: &str = "node.koordinator.sh/system-qos-resource";
/// Annotation of nodes and NodeResourceTopologies: amplification ratios.
pub(super) const AMPLIFICATION_RATIO: &str = "node.koordinator.sh/resource-amplification-ratio";

/// Annotation of NodeResourceTopologies: all logical CPUs.
pub(super) const CPU_TOPOLOGY: &str = "node.koordinator.sh/cpu-topology";
/// Annotation of NodeResourceTopologies: CPUs that kubelet and koordlet gave to pods.
pub(super) const POD_CPU_ALLOCS: &str = "node.koordinator.sh/pod-cpu-allocs";
/// Annotation of NodeResourceTopologies: shared CPUs of LS pods.
pub(super) const CPU_SHARED_POOLS: &str = "node.koordinator.sh/cpu-shared-pools";
/// Annotation of NodeResourceTopologies: shared CPUs of BE pods.
pub(super) const BE_CPU_SHARED_POOLS: &str = "node.koordinator.sh/be-cpu-shared-pools";
/// Annotation of NodeResourceTopologies: the kubelet's CPU manager.
pub(super) const CPU_MANAGER_POLICY: &str = "kubelet.koordinator.sh/cpu-manager-policy";
