//! Small nodes and pods for unit tests.

use super::super::{TraceNode, TracePod};

/// Returns a node with 64 cores and GPUs.
pub(super) fn node(name: &str, gpus: u64) -> TraceNode {
    let model = if gpus > 0 { "V100" } else { "" };
    TraceNode { name: name.into(), cpu_milli: 64_000, memory_mib: 262_144, gpus, model: model.into() }
}

/// Returns a pod with 1.5 cores and a part of each of its GPUs.
pub(super) fn pod(name: &str, gpus: u64, gpu_milli: u64) -> TracePod {
    TracePod {
        name: name.into(),
        cpu_milli: 1500,
        memory_mib: 1024,
        gpus,
        gpu_milli,
        models: Vec::new(),
        qos: "LS".into(),
    }
}
