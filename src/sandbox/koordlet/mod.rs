//! What Koordinator's node agent reports: usage as NodeMetrics, CPUs and NUMA nodes as NodeResourceTopologies.

pub(crate) mod metrics;
pub(crate) mod topologies;
