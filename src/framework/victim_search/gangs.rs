//! Victims that belong to gangs. A gang that loses its quorum is worth little, so evicting one whole gang is better
//! than evicting one member each of several gangs. This matters only where kube-scheduler's criteria are equal.

use std::collections::BTreeMap;

use pellucid_cluster::Cluster;
use pellucid_cluster::gangs::Gang;
use pellucid_model::{GangKey, Pod};

use super::search::Target;

/// Returns how many members of a gang are placed or have finished.
fn standing(gang: &Gang) -> u32 {
    gang.counts.placed() + gang.ended().0
}

/// Returns the gang of a pod and how many members it can spare; `None` if the pod has no gang or one member is a
/// quorum.
fn spare<'c>(cluster: &'c Cluster, pod: &Pod) -> Option<(&'c GangKey, i64)> {
    let gang = cluster.gangs().of(pod).filter(|gang| gang.definition.min > 1 && !gang.definition.is_basic)?;
    Some((&gang.key, i64::from(standing(gang)) - i64::from(gang.definition.min)))
}

/// Returns how many gangs have their quorum and would lose it with these victims.
pub(super) fn broken(cluster: &Cluster, victims: &[Target]) -> usize {
    let mut left: BTreeMap<&GangKey, i64> = BTreeMap::new();
    for (gang, spare) in victims.iter().filter_map(|v| spare(cluster, &v.pod)).filter(|(_, s)| *s >= 0) {
        *left.entry(gang).or_insert(spare) -= 1;
    }
    left.values().filter(|spare| **spare < 0).count()
}

/// Sets the gang fields of the targets, so that pods of one gang sort next to each other.
pub(super) fn keep_together(cluster: &Cluster, pool: &mut [Target]) {
    let mut since: BTreeMap<GangKey, i64> = BTreeMap::new();
    for target in pool.iter_mut() {
        let Some((gang, spare)) = spare(cluster, &target.pod) else { continue };
        target.gang = Some(gang.clone());
        target.is_broken = spare < 0;
        let first = since.entry(gang.clone()).or_insert(target.since);
        *first = target.since.min(*first);
    }
    for target in pool {
        if let Some(first) = target.gang.as_ref().and_then(|gang| since.get(gang)) {
            target.since = *first;
        }
    }
}
