//! Plugin names of other schedulers and older versions, so that an unsupported plugin is distinguished from a misspelt
//! one.
//!
//! Consulted only for names that are not in the registry; adding a plugin to the registry needs no change here.

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

/// Plugins of the scheduler-plugins project, which users build into their own schedulers.
const SCHEDULER_PLUGINS: [&str; 11] = [
    "CapacityScheduling",
    "CrossNodePreemption",
    "LoadVariationRiskBalancing",
    "LowRiskOverCommitment",
    "NetworkOverhead",
    "NodeResourceTopologyMatch",
    "NodeResourcesAllocatable",
    "PreemptionToleration",
    "QOSSort",
    "TargetLoadPacking",
    "TopologicalSort",
];

/// Plugins removed from kube-scheduler, with their replacement.
const REMOVED: [(&str, &str); 13] = [
    ("AzureDiskLimits", "NodeVolumeLimits does its work"),
    ("CinderLimits", "NodeVolumeLimits does its work"),
    ("EBSLimits", "NodeVolumeLimits does its work"),
    ("GCEPDLimits", "NodeVolumeLimits does its work"),
    ("SelectorSpread", SPREAD),
    ("DefaultPodTopologySpread", SPREAD),
    (
        "NodePreferAvoidPods",
        "taint nodes with the effect PreferNoSchedule instead, which TaintToleration scores",
    ),
    ("NodeLabel", "use node affinity instead, or addedAffinity of NodeAffinity for all pods of a profile"),
    ("ServiceAffinity", "use pod affinity instead, which InterPodAffinity carries out"),
    ("NodeResourcesLeastAllocated", "use NodeResourcesFit with scoringStrategy.type LeastAllocated"),
    ("NodeResourcesMostAllocated", "use NodeResourcesFit with scoringStrategy.type MostAllocated"),
    ("RequestedToCapacityRatio", "use NodeResourcesFit with scoringStrategy.type RequestedToCapacityRatio"),
    ("NodeResourceLimits", "nothing takes its place"),
];
const SPREAD: &str = "PodTopologySpread does its work, by default or with defaultConstraints";

/// Extension points that [`GANGS`] implements in other schedulers but perhaps not here. Naming them is not an error.
const GANGS_WORKED_AT: [&str; 4] = ["preFilter", "postFilter", "reserve", "postBind"];

/// Names that other schedulers use for one of our plugins.
const ALIASES: [(&str, &str); 1] = [("unicore-gang-scheduler", GANGS)];

pub(super) const GANGS: &str = "Coscheduling";

/// Plugin, argument and reason for arguments that are accepted without effect.
const UNUSED_ARGS: [(&str, &str, &str); 2] = [
    (
        GANGS,
        "deniedPGExpirationTimeSeconds",
        "a refused gang waits for its backoff and for what could help it",
    ),
    (GANGS, "skipCheckScheduleCycle", "one attempt plans a whole gang, so there are no cycles to check"),
];

/// Classification of a name that is not in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Foreign {
    /// A kube-scheduler plugin that this version does not support yet.
    NotYet,
    /// A plugin of the scheduler-plugins project.
    SchedulerPlugins,
    /// A plugin removed from kube-scheduler, with its replacement.
    Removed(&'static str),
    /// Not a known plugin name.
    Unknown,
}

/// Classifies a name that is not in the registry.
pub(super) fn foreign(name: &str) -> Foreign {
    if KUBE_SCHEDULER.contains(&name) {
        Foreign::NotYet
    } else if SCHEDULER_PLUGINS.contains(&name) {
        Foreign::SchedulerPlugins
    } else if let Some((_, instead)) = REMOVED.iter().find(|(removed, _)| *removed == name) {
        Foreign::Removed(instead)
    } else {
        Foreign::Unknown
    }
}

/// Returns our name for a plugin that other schedulers call `name`.
pub(super) fn our_name(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// Returns whether a plugin implements an extension point in another scheduler.
pub(super) fn worked_elsewhere(plugin: &str, point: &str) -> bool {
    plugin == GANGS && GANGS_WORKED_AT.contains(&point)
}

/// Returns the arguments of a plugin that have no effect, with the reason.
pub(super) fn unused_args(plugin: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    UNUSED_ARGS.into_iter().filter(move |(of, ..)| *of == plugin).map(|(_, field, why)| (field, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_one_kind() {
        for (name, _) in REMOVED {
            assert!(matches!(foreign(name), Foreign::Removed(_)), "{name}");
        }
        for name in SCHEDULER_PLUGINS {
            assert_eq!(foreign(name), Foreign::SchedulerPlugins);
        }
        assert_eq!(foreign("VolumeBinding"), Foreign::NotYet);
        assert_eq!(foreign("volumebinding"), Foreign::Unknown);
        assert_eq!((our_name("unicore-gang-scheduler"), our_name(GANGS)), (Some(GANGS), None));
        assert!(worked_elsewhere("Coscheduling", "postBind") && !worked_elsewhere("NodeName", "postBind"));
    }
}
