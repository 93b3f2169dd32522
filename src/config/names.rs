//! The plugin names of kube-scheduler, so that a name we lack is told from a misspelt one.

/// Every plugin in the registry of kube-scheduler 1.36.
const KUBE_SCHEDULER: [&str; 23] = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
    "GangScheduling",
    "TopologyPlacementGenerator",
    "PodGroupPodsCount",
];

/// Plugins that kube-scheduler had once and refuses by name now.
const REMOVED: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// What a name is, when no plugin of ours has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// kube-scheduler has it, this version does not.
    NotYet,
    /// kube-scheduler had it once.
    Removed,
    /// Nobody knows it.
    Unknown,
}

/// Judges a name that is not in the registry.
pub(super) fn foreign(name: &str) -> Foreign {
    if KUBE_SCHEDULER.contains(&name) {
        Foreign::NotYet
    } else if REMOVED.contains(&name) {
        Foreign::Removed
    } else {
        Foreign::Unknown
    }
}
