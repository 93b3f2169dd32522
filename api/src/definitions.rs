//! The definitions of the gang custom resources, as YAML to install in a cluster.

/// All definitions, the most common first. `api/crds/` has the same files.
pub const DEFINITIONS: [&str; 6] = [
    include_str!("../crds/scheduling.x-k8s.io_podgroups.yaml"),
    include_str!("../crds/scheduling.sigs.k8s.io_podgroups.yaml"),
    include_str!("../crds/scheduling.incubator.k8s.io_podgroups.yaml"),
    include_str!("../crds/scheduling.incubator.k8s.io_queues.yaml"),
    include_str!("../crds/scheduling.sigs.dev_podgroups.yaml"),
    include_str!("../crds/scheduling.sigs.dev_queues.yaml"),
];
