//! What Koordinator's node agent reports: usage as NodeMetrics, CPUs and NUMA nodes as NodeResourceTopologies, and
//! devices as Devices.

pub(crate) mod devices;
pub(crate) mod metrics;
pub(crate) mod topologies;
