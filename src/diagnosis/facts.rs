//! What pods tell the lists that they are in: what lists of pods are filtered and sorted by.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_framework::list::{Attribute, Facts};
use pellucid_framework::{Plugin, View};
use pellucid_model::quantity::format_amount;
use pellucid_model::requests::ResourceList;
use pellucid_model::{GangKey, Name, Pod};

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
pub(crate) fn facts_of<'s>(snapshot: &'s Snapshot, record: &'s PodRecord) -> Facts<'s> {
    let pod = &record.pod;
    let gang = pod.member_of().map(names_of);
    Facts {
        namespace: &pod.key.namespace,
        name: &pod.key.name,
        owner: owner(&snapshot.cluster, pod).map(|owner| (owner.kind, owner.name)),
        gangs: gang.into_iter().collect(),
        labels: Some(&pod.labels),
        created: Some(created(pod)),
        priority: Some(pod.priority),
        groups: groups_of(snapshot, record),
        ..Facts::default()
    }
}

/// Returns the groups of a pod that plugins of its profile know, by what the groups are called.
pub(crate) fn groups_of(snapshot: &Snapshot, record: &PodRecord) -> Vec<(&'static str, Name)> {
    let Some((_, profile)) = snapshot.profile_of(record) else { return Vec::new() };
    let group = |plugin: &Arc<dyn Plugin>| {
        let group = plugin.pod_groups()?.group(View::new(&snapshot.cluster), &record.pod.spec)?;
        let factory = snapshot.registry.iter().find(|factory| factory.name() == plugin.name())?;
        Some((factory.groups()?.name, group))
    };
    profile.plugins.iter().filter_map(group).collect()
}

/// Returns groups as a body has them.
pub(crate) fn named(groups: &[(&'static str, Name)]) -> BTreeMap<String, String> {
    groups.iter().map(|(name, group)| ((*name).to_owned(), group.to_string())).collect()
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
