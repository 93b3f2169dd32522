//! Definitions of custom resources, as YAML to install in a cluster: of gangs, which `crate::crd` has as types, and of Koordinator's
//! kinds, for clusters without Koordinator.

/// All definitions, the most common first. `api/crds/` has the same files.
pub const DEFINITIONS: [&str; 6] = [
    include_str!("../crds/scheduling.x-k8s.io_podgroups.yaml"),
    include_str!("../crds/scheduling.sigs.k8s.io_podgroups.yaml"),
    include_str!("../crds/scheduling.incubator.k8s.io_podgroups.yaml"),
    include_str!("../crds/scheduling.incubator.k8s.io_queues.yaml"),
    include_str!("../crds/scheduling.sigs.dev_podgroups.yaml"),
    include_str!("../crds/scheduling.sigs.dev_queues.yaml"),
];

/// Definitions of the kinds of Koordinator's plugins. `api/crds/koordinator/` has the same files.
pub mod koordinator {
    /// ElasticQuota.
    pub const ELASTIC_QUOTAS: &str =
        include_str!("../crds/koordinator/scheduling.sigs.k8s.io_elasticquotas.yaml");
    /// ElasticQuotaProfile.
    pub const ELASTIC_QUOTA_PROFILES: &str =
        include_str!("../crds/koordinator/quota.koordinator.sh_elasticquotaprofiles.yaml");
    /// Reservation.
    pub const RESERVATIONS: &str =
        include_str!("../crds/koordinator/scheduling.koordinator.sh_reservations.yaml");
    /// Device.
    pub const DEVICES: &str = include_str!("../crds/koordinator/scheduling.koordinator.sh_devices.yaml");
    /// NodeMetric.
    pub const NODE_METRICS: &str = include_str!("../crds/koordinator/slo.koordinator.sh_nodemetrics.yaml");
    /// NodeResourceTopology.
    pub const NODE_RESOURCE_TOPOLOGIES: &str =
        include_str!("../crds/koordinator/topology.node.k8s.io_noderesourcetopologies.yaml");

    /// All of them.
    pub const ALL: [&str; 6] = [
        ELASTIC_QUOTAS,
        ELASTIC_QUOTA_PROFILES,
        RESERVATIONS,
        DEVICES,
        NODE_METRICS,
        NODE_RESOURCE_TOPOLOGIES,
    ];
}
