//! The plugin's reasons, and the causes that are made of them. The words are Koordinator's, so that what reads its messages
//! reads these.

use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use pellucid_framework::{Cause, Code, Reason};

use super::NAME;
use super::allocator::Lack;
use super::request::Invalid;

/// What helps where no pod's end would, if it is another text.
macro_rules! never {
    () => {
        None
    };
    ($never:literal) => {
        Some($never)
    };
}

/// Declares a reason that refuses nodes.
macro_rules! node_reasons {
    ($($name:ident, $code:literal, $message:literal, $resolver:ident, $meaning:literal, $remedy:literal,
       $(never $never:literal,)? $subject:literal => $example:literal, $situation:literal;)*) => { $(
        static $name: PluginReason = PluginReason {
            code: $code,
            plugin: NAME,
            message: $message,
            resolver: Resolver::$resolver,
            terminal_for: TerminalFor::Node,
            meaning: $meaning,
            remedy: $remedy,
            never: never!($($never)?),
            example: Example { subject: $subject, message: $example, situation: $situation },
        };
    )* };
}

node_reasons! {
    ISOLATION, "GpuIsolationMissing", "GPUIsolationProviderHAMICore not found on the node", ClusterAdmin,
        "The pod shares a GPU and names in label koordinator.sh/gpu-isolation-provider what keeps the shares apart, and the node \
         does not have that label with the same value.",
        "Install the provider on the node and label it, or drop the label from the pod.",
        "" => "GPUIsolationProviderHAMICore not found on the node", "The pod has the label with HAMi-core, and the node has none.";
    DEVICES, "InsufficientDevices", "Insufficient {} devices", Time,
        "The node has fewer healthy devices of the type that the pod's hints select with enough free, and a free virtual \
         function where it wants one, than the pod requests.",
        "Wait for pods to end, request less or fewer devices, or loosen the pod's device-allocate-hint.",
        never "Request less or fewer devices, add nodes that have as many, or loosen the pod's device-allocate-hint.",
        "gpu" => "Insufficient gpu devices", "The pod requests half a card, and the most that is free of a card is 40 of 100.";
    FUNCTIONS, "InsufficientVirtualFunctions", "Insufficient {} VirtualFunctions", ClusterAdmin,
        "The pod wants a virtual function with each device, and no device of the type on the node has any.",
        "Drop vfSelector from the pod's device-allocate-hint, or set up virtual functions on the node and list them in its \
         Device.",
        "rdma" => "Insufficient rdma VirtualFunctions", "The pod's device-allocate-hint has a vfSelector, and no adapter of the node has vfGroups.";
    PARTITION_TABLE, "MissingGpuPartitionTable", "node(s) missing GPU Partition Table", ClusterAdmin,
        "GPUs must be allocated by a partition table, because the pod or the node says so, and the node's Device has none.",
        "Add the table to the Device, or drop gpu-partition-spec from the pod or the policy Honor from the node.",
        "" => "node(s) missing GPU Partition Table", "The pod has annotation gpu-partition-spec, and the Device no gpu-partitions.";
    PARTITION_SIZE, "UnsupportedGpuCount", "node(s) Unsupported number of GPU requests", PodOwner,
        "GPUs must be allocated by the node's partition table, and it has no entry with as many GPUs.",
        "Request a number of GPUs that the table has.",
        "" => "node(s) Unsupported number of GPU requests", "The pod requests 3 GPUs, and the table has entries of 1, 2, 4 and 8.";
    PARTITION, "InsufficientPartitionedGpuDevices", "Insufficient Partitioned GPU Devices", Time,
        "GPUs must be allocated by the node's partition table, and in each entry of that size a GPU is in use, unhealthy, not \
         selected or too small, or its bandwidth is too low.",
        "Wait for pods to end, or ask for less ringBusBandwidth.",
        never "Ask for less ringBusBandwidth, or add nodes that have it.",
        "" => "Insufficient Partitioned GPU Devices", "Of both pairs of the table one GPU is in use.";
    TOPOLOGY, "MissingGpuTopology", "node(s) missing GPU Device Topology Tree", ClusterAdmin,
        "The pod demands GPUs within a scope of the topology, and the node's Device has no topology of its GPUs.",
        "Add the topology to the Device, or drop requiredTopologyScope from the pod's device-allocate-hint.",
        "" => "node(s) missing GPU Device Topology Tree", "The pod demands GPUs on one PCIe switch, and the Device says nothing of switches.";
    SHARED_SCOPE, "UnsupportedMultiSharedGpu", "node(s) Unsupported Multi-Shared GPU", PodOwner,
        "The pod demands several shared GPUs within a scope of the topology; scopes are searched for whole GPUs, or for one.",
        "Drop requiredTopologyScope from the pod's device-allocate-hint, or request whole GPUs.",
        "" => "node(s) Unsupported Multi-Shared GPU", "The pod requests koordinator.sh/gpu.shared: 2 on one PCIe switch.";
    GPUS, "InsufficientGpuDevices", "Insufficient GPU Devices", Time,
        "The node has fewer healthy GPUs with enough free, of those that the pod's hints select, than the pod requests.",
        "Wait for pods to end, request less or fewer GPUs, or loosen the pod's device-allocate-hint.",
        never "Request less or fewer GPUs, add nodes that have as many, or loosen the pod's device-allocate-hint.",
        "" => "Insufficient GPU Devices", "The pod requests two whole GPUs, and one GPU of the node is free.";
    SCOPED_GPUS, "InsufficientTopologyScopedGpuDevices", "Insufficient Topology Scoped GPU Devices", Time,
        "No scope of the node's topology that is as narrow as the pod demands has enough healthy GPUs with enough free.",
        "Wait for pods to end, request fewer GPUs, or demand a wider scope. No node satisfies scope Device, as in Koordinator.",
        never "Request fewer GPUs, or demand a wider scope. No node satisfies scope Device, as in Koordinator.",
        "" => "Insufficient Topology Scoped GPU Devices", "The pod demands two GPUs on one PCIe switch, and each switch has one that is free.";
    JOINT, "JointAllocateViolation", "node(s) Device Joint-Allocate rules violation", Time,
        "The pod wants its devices on the same PCIe switches, and the devices that are free are on different ones.",
        "Wait for pods to end, or drop requiredScope from the pod's device-joint-allocate.",
        never "Drop requiredScope from the pod's device-joint-allocate, or add nodes that have such devices together.",
        "" => "node(s) Device Joint-Allocate rules violation", "The GPU that is free is on one switch, and the RDMA adapter that is free on another.";
}

/// Refuses a pod whose resources do not go together.
static COMBINATION: PluginReason = PluginReason {
    code: "InvalidDeviceRequest",
    plugin: NAME,
    message: "invalid resource device requests: [{}]",
    resolver: Resolver::PodOwner,
    terminal_for: TerminalFor::Pod,
    meaning: "The pod requests a combination of device resources that has no meaning, or amounts that are no whole number of \
              devices. A cluster without Devices does not ask.",
    remedy: "Request one of: nvidia.com/gpu, amd.com/gpu, dcu.com/gpu or koordinator.sh/gpu alone; gpu-memory or \
             gpu-memory-ratio, alone or with gpu-core; the same with gpu.shared, which must divide the amounts.",
    never: None,
    example: Example {
        subject: "koordinator.sh/gpu-core",
        message: "invalid resource device requests: [koordinator.sh/gpu-core]",
        situation: "The pod requests koordinator.sh/gpu-core: 50 and no memory.",
    },
};

/// Refuses a pod that requests more than one device, and no whole number.
static UNIT: PluginReason = PluginReason {
    code: "InvalidDeviceUnit",
    plugin: NAME,
    message: "invalid resource unit {}",
    resolver: Resolver::PodOwner,
    terminal_for: TerminalFor::Pod,
    meaning: "An amount above 100, which is one device, must be a multiple of 100.",
    remedy: "Request a whole number of devices, or a part of one.",
    never: None,
    example: Example {
        subject: "koordinator.sh/rdma: 150",
        message: "invalid resource unit koordinator.sh/rdma: 150",
        situation: "The pod requests one and a half RDMA adapters.",
    },
};

/// Refuses a pod with an annotation about devices that cannot be read.
static UNREADABLE: PluginReason = PluginReason {
    code: "DeviceAnnotationUnreadable",
    plugin: NAME,
    message: "annotation {}",
    resolver: Resolver::PodOwner,
    terminal_for: TerminalFor::Pod,
    meaning: "The pod requests devices, and an annotation that says how cannot be read.",
    remedy: "Correct the annotation.",
    never: None,
    example: Example {
        subject: "scheduling.koordinator.sh/device-allocate-hint: gpu.requiredTopologyScope: must be one of Device, PCIe, \
                  NUMANode, Node (\"Rack\")",
        message: "annotation scheduling.koordinator.sh/device-allocate-hint: gpu.requiredTopologyScope: must be one of \
                  Device, PCIe, NUMANode, Node (\"Rack\")",
        situation: "The pod demands its GPUs within a scope that does not exist.",
    },
};

/// Returns all reasons.
pub(super) fn all() -> [&'static PluginReason; 14] {
    [
        &ISOLATION,
        &DEVICES,
        &FUNCTIONS,
        &PARTITION_TABLE,
        &PARTITION_SIZE,
        &PARTITION,
        &TOPOLOGY,
        &SHARED_SCOPE,
        &GPUS,
        &SCOPED_GPUS,
        &JOINT,
        &COMBINATION,
        &UNIT,
        &UNREADABLE,
    ]
}

/// Returns the reason for what a node lacks.
pub(super) fn reason(lack: Lack) -> Reason {
    let of = |reason| Reason::of(ReasonCode::Plugin(reason));
    match lack {
        Lack::Isolation => of(&ISOLATION),
        Lack::Devices(kind) => Reason::about(ReasonCode::Plugin(&DEVICES), kind),
        Lack::Functions(kind) => Reason::about(ReasonCode::Plugin(&FUNCTIONS), kind),
        Lack::PartitionTable => of(&PARTITION_TABLE),
        Lack::PartitionSize => of(&PARTITION_SIZE),
        Lack::Partition => of(&PARTITION),
        Lack::Topology => of(&TOPOLOGY),
        Lack::SharedScope => of(&SHARED_SCOPE),
        Lack::Gpus => of(&GPUS),
        Lack::ScopedGpus => of(&SCOPED_GPUS),
        Lack::Joint => of(&JOINT),
    }
}

/// Returns the cause of a node that lacks something. `is_fixed` says whether it would lack something without any pods.
pub(super) fn cause(lack: Lack, is_fixed: bool) -> Cause {
    let code = if is_fixed { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable };
    Cause::new(NAME, code, reason(lack))
}

/// Returns the refusal of a pod.
pub(super) fn refusal(invalid: &Invalid) -> Cause {
    let reason = match invalid {
        Invalid::Combination(names) => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            Reason::about(ReasonCode::Plugin(&COMBINATION), names.join(" ").as_str())
        }
        Invalid::Unit(name, amount) => {
            Reason::about(ReasonCode::Plugin(&UNIT), format!("{name}: {amount}").as_str())
        }
        Invalid::Unreadable((key, problem)) => {
            Reason::about(ReasonCode::Plugin(&UNREADABLE), format!("{key}: {problem}").as_str())
        }
    };
    Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason)
}
