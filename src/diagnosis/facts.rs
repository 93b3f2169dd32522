//! What pods tell the lists that they are in: what lists of pods are filtered and sorted by.

use std::collections::BTreeMap;
use std::time::Duration;

use pellucid_cycle::Snapshot;
use pellucid_framework::list::{Attribute, Facts};
use pellucid_model::quantity::format_amount;
use pellucid_model::requests::ResourceList;
use pellucid_model::{GangKey, Pod};

use crate::owner::owner;

/// What pods are filtered and sorted by.
pub(crate) const OF_PODS: &[Attribute] = &[
    Attribute::Namespace,
    Attribute::Name,
    Attribute::Reason,
    Attribute::Owner,
    Attribute::Node,
    Attribute::Gang,
    Attribute::Stage,
    Attribute::Labels,
    Attribute::Age,
    Attribute::Priority,
];

/// What units of the queue, and the pods that a summary counts, are filtered and sorted by.
pub(crate) const OF_UNITS: &[Attribute] = &[
    Attribute::Namespace,
    Attribute::Name,
    Attribute::Reason,
    Attribute::Owner,
    Attribute::Gang,
    Attribute::Stage,
    Attribute::Labels,
    Attribute::Age,
    Attribute::Priority,
];

/// Returns what a pod itself tells a list.
pub(crate) fn facts_of<'s>(snapshot: &'s Snapshot, pod: &'s Pod) -> Facts<'s> {
    let gang = pod.member_of().map(names_of);
    Facts {
        namespace: &pod.key.namespace,
        name: &pod.key.name,
        owner: owner(&snapshot.cluster, pod).map(|owner| (owner.kind, owner.name)),
        gangs: gang.into_iter().collect(),
        labels: Some(&pod.labels),
        created: Some(created(pod)),
        priority: Some(pod.priority),
        ..Facts::default()
    }
}

/// Returns when a pod was created, since 1970.
pub(crate) fn created(pod: &Pod) -> Duration {
    Duration::from_secs(u64::try_from(pod.created).unwrap_or(0))
}

/// Returns namespace and name of a gang.
pub(crate) fn names_of(key: &GangKey) -> (&str, &str) {
    (&key.namespace, &key.name)
}

/// Returns the requests of a pod as quantities, by resource.
pub(crate) fn requests(list: &ResourceList) -> BTreeMap<String, String> {
    let named = list.named().filter(|(name, _)| &**name != "pods");
    named.map(|(name, amount)| (name.to_string(), format_amount(&name, amount))).collect()
}
