//! Why a node or a pod is refused, and the reasons of the registry for it. The messages are Koordinator's.

use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::Name;
use smallvec::SmallVec;

use super::NAME;
use super::resource_spec::PodProblem;

/// Why a node cannot take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    PolicyMismatch,
    NotInteger,
    BadRatios,
    /// `is_fixed` says that the pod would not fit the empty node either.
    AmplifiedCpu {
        is_fixed: bool,
    },
    BadTopology,
    BindConflict,
    NotWholeCores,
    /// `is_fixed` says that the pod would not fit the empty node either.
    NotEnoughCpus {
        is_fixed: bool,
    },
    NoZones,
    /// Resources of which the chosen NUMA nodes have too little.
    Short(SmallVec<[Name; 2]>),
    /// Resources that no NUMA nodes can give together with the rest.
    Unsatisfied(SmallVec<[Name; 2]>),
}

impl Refusal {
    pub(super) fn cause(&self) -> Cause {
        let fixed = Code::UnschedulableAndUnresolvable;
        let of = |is_fixed| if is_fixed { fixed } else { Code::Unschedulable };
        let (code, reason) = match self {
            Self::PolicyMismatch => (fixed, &POLICY_MISMATCH),
            Self::NotInteger => (fixed, &NOT_INTEGER),
            Self::BadRatios => (fixed, &BAD_RATIOS),
            Self::AmplifiedCpu { is_fixed } => (of(*is_fixed), &AMPLIFIED_CPU),
            Self::BadTopology => (fixed, &BAD_TOPOLOGY),
            Self::BindConflict => (fixed, &BIND_CONFLICT),
            Self::NotWholeCores => (fixed, &NOT_WHOLE_CORES),
            Self::NotEnoughCpus { is_fixed } => (of(*is_fixed), &NOT_ENOUGH_CPUS),
            Self::NoZones => (fixed, &NO_ZONES),
            Self::Short(names) => return about(&SHORT, names),
            Self::Unsatisfied(names) => return about(&UNSATISFIED, names),
        };
        Cause::new(NAME, code, Reason::of(ReasonCode::Plugin(reason)))
    }
}

/// Returns a cause with one reason per resource.
fn about(reason: &'static PluginReason, names: &[Name]) -> Cause {
    let reasons = names.iter().map(|name| Reason::about(ReasonCode::Plugin(reason), name.clone()));
    Cause { plugin: NAME, code: Code::Unschedulable, reasons: reasons.collect() }
}

impl PodProblem {
    pub(super) fn cause(&self) -> Cause {
        let reason = match self {
            Self::NotInteger => Reason::of(ReasonCode::Plugin(&POD_NOT_INTEGER)),
            Self::Unreadable(text) => Reason::about(ReasonCode::Plugin(&UNREADABLE), text.as_str()),
        };
        Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason)
    }
}

/// Makes a reason of code, message, meaning, remedy, and an example: subject, rendered message, situation.
const fn reason(texts: [&'static str; 7], resolver: Resolver, terminal_for: TerminalFor) -> PluginReason {
    let [code, message, meaning, remedy, subject, said, situation] = texts;
    let example = Example { subject, message: said, situation };
    PluginReason {
        code,
        plugin: NAME,
        message,
        resolver,
        terminal_for,
        meaning,
        remedy,
        never: None,
        example,
    }
}

/// Makes a reason of a node, without a subject.
const fn of_node(texts: [&'static str; 5], resolver: Resolver) -> PluginReason {
    let [code, message, meaning, remedy, situation] = texts;
    reason([code, message, meaning, remedy, "", message, situation], resolver, TerminalFor::Node)
}

pub(super) static UNREADABLE: PluginReason = reason(
    [
        "CpuRequestUnreadable",
        "pod asks for CPUs or NUMA nodes in a way that cannot be read: {}",
        "Annotation resource-spec or numa-topology-spec of the pod is no JSON object, or names a policy that does not exist.",
        "Correct the annotation of the pod.",
        "scheduling.koordinator.sh/resource-spec: preferredCPUBindPolicy: \"Full\"",
        "pod asks for CPUs or NUMA nodes in a way that cannot be read: scheduling.koordinator.sh/resource-spec: \
         preferredCPUBindPolicy: \"Full\"",
        "The annotation names the bind policy Full; the policy is called FullPCPUs.",
    ],
    Resolver::PodOwner,
    TerminalFor::Pod,
);

pub(super) static POD_NOT_INTEGER: PluginReason = reason(
    [
        "PodCpusNotInteger",
        "the requested CPUs must be integer",
        "The pod is of QoS class LSE or LSR and so gets CPUs of its own, which cannot be split, and it requests a fraction of \
         one.",
        "Request whole CPUs, or prefer the bind policy ConstrainedBurst, which leaves the pod in the shared pool.",
        "",
        "the requested CPUs must be integer",
        "A pod of class LSR requests 1500m.",
    ],
    Resolver::PodOwner,
    TerminalFor::Pod,
);

pub(super) static NOT_INTEGER: PluginReason = of_node(
    [
        "CpusNotInteger",
        "the requested CPUs must be integer",
        "The node gives every pod CPUs of its own (label cpu-bind-policy, or the kubelet's full-pcpus-only), and the pod \
         requests a fraction of one.",
        "Request whole CPUs, or add nodes that force no bind policy.",
        "The node has the label cpu-bind-policy=FullPCPUsOnly, and the pod requests 1500m.",
    ],
    Resolver::PodOwner,
);

pub(super) static POLICY_MISMATCH: PluginReason = of_node(
    [
        "NumaPolicyMismatch",
        "node(s) NUMA Topology policy not match",
        "The pod names a NUMA topology policy (annotation numa-topology-spec), and the node has another one.",
        "Name the node's policy or none in the pod's annotation, or add nodes with the pod's policy or without one.",
        "The pod asks for SingleNUMANode, and the node's label says Restricted.",
    ],
    Resolver::PodOwner,
);

pub(super) static BAD_RATIOS: PluginReason = of_node(
    [
        "InvalidAmplificationRatio",
        "node(s) invalid CPU amplification ratio",
        "Annotation resource-amplification-ratio of the node is no JSON object of positive numbers, so it is not known how \
         much CPU the node really has.",
        "Correct the annotation of the node.",
        "The annotation is `{\"cpu\": \"1.5\"}`, with a text where a number must be.",
    ],
    Resolver::ClusterAdmin,
);

pub(super) static AMPLIFIED_CPU: PluginReason = of_node(
    [
        "InsufficientAmplifiedCpu",
        "Insufficient amplified cpu",
        "The node offers more CPU than it has (annotation resource-amplification-ratio). A pod with CPUs of its own takes \
         real ones, so its request counts times the ratio, and so do those of such pods on the node; with the pod they are \
         more than the node offers.",
        "Wait for pods to end there, request less, add nodes, or do without CPUs of its own.",
        "The node has 16 CPUs and offers 24, pods with 12 CPUs of their own count as 18, and the pod asks for 6 of its own, \
         which count as 9.",
    ],
    Resolver::Time,
);

pub(super) static BAD_TOPOLOGY: PluginReason = of_node(
    [
        "InvalidCpuTopology",
        "node(s) invalid CPU Topology",
        "The pod gets CPUs of its own, and which CPUs the node has is not known: it has no NodeResourceTopology, or annotation \
         cpu-topology is absent or contradicts itself. Pods without CPUs of their own may use the node.",
        "See why koordlet does not report the node's CPUs; nodes/:nodeName of this plugin says what is wrong with them.",
        "The NodeResourceTopology names CPU 3 twice.",
    ],
    Resolver::ClusterAdmin,
);

pub(super) static BIND_CONFLICT: PluginReason = of_node(
    [
        "CpuBindPolicyConflict",
        "node(s) cpu bind policy conflicts with pod's required cpu bind policy",
        "The pod requires one bind policy, and the node forces another one.",
        "Prefer the policy rather than require it, or add nodes without a forced policy.",
        "The pod requires SpreadByPCPUs, and the node's label is cpu-bind-policy=FullPCPUsOnly.",
    ],
    Resolver::PodOwner,
);

pub(super) static NOT_WHOLE_CORES: PluginReason = of_node(
    [
        "CpusNotWholeCores",
        "node(s) requested cpus not multiple cpus per core",
        "The pod must have whole cores (FullPCPUs, required by the pod or forced by the node), and its CPUs are not a multiple \
         of the threads per core.",
        "Request a multiple of the threads per core, or do not require FullPCPUs.",
        "The pod requires FullPCPUs and requests 3 CPUs, and cores have 2 threads.",
    ],
    Resolver::PodOwner,
);

pub(super) static NOT_ENOUGH_CPUS: PluginReason = of_node(
    [
        "NotEnoughCpus",
        "not enough cpus available to satisfy request",
        "Fewer CPUs of the node are neither reserved nor given to other pods than the pod requests, or fewer in whole cores or \
         on different cores where the pod or the node requires that.",
        "Wait for pods with CPUs of their own to end there, request fewer, or do not require a bind policy.",
        "The pod requires FullPCPUs and requests 8 CPUs, and 3 cores of 2 threads are free in whole.",
    ],
    Resolver::Time,
);

pub(super) static NO_ZONES: PluginReason = of_node(
    [
        "NumaResourcesMissing",
        "node(s) missing NUMA resources",
        "The node or the pod has a NUMA topology policy, and the node's NodeResourceTopology names no NUMA nodes with their \
         resources.",
        "See why koordlet reports no zones, or take the policy away.",
        "The node has the label numa-topology-policy=SingleNUMANode, and no NodeResourceTopology.",
    ],
    Resolver::ClusterAdmin,
);

pub(super) static SHORT: PluginReason = reason(
    [
        "InsufficientNumaResource",
        "Insufficient NUMA {}",
        "The NUMA nodes that the topology policy leaves for the pod have less of this resource left than the pod requests, or \
         it cannot be split among them.",
        "Wait for pods to end there, request less, or relax the topology policy of the node or of the pod.",
        "cpu",
        "Insufficient NUMA cpu",
        "The pod requests 16 CPUs, and the node's two NUMA nodes have 6 and 4 left.",
    ],
    Resolver::Time,
    TerminalFor::Node,
);

pub(super) static UNSATISFIED: PluginReason = reason(
    [
        "UnsatisfiedNumaResource",
        "Unsatisfied NUMA {}",
        "No set of NUMA nodes of the node can give the pod this resource together with the others that it requests.",
        "Wait for pods to end there, request less, or relax the topology policy of the node or of the pod.",
        "memory",
        "Unsatisfied NUMA memory",
        "The pod requests 16 Gi, and the node's two NUMA nodes have 6 and 4 Gi left.",
    ],
    Resolver::Time,
    TerminalFor::Node,
);

/// Returns all reasons.
pub(super) fn all() -> [&'static PluginReason; 13] {
    [
        &UNREADABLE,
        &POD_NOT_INTEGER,
        &NOT_INTEGER,
        &POLICY_MISMATCH,
        &BAD_RATIOS,
        &AMPLIFIED_CPU,
        &BAD_TOPOLOGY,
        &BIND_CONFLICT,
        &NOT_WHOLE_CORES,
        &NOT_ENOUGH_CPUS,
        &NO_ZONES,
        &SHORT,
        &UNSATISFIED,
    ]
}
