//! The pods that the members of a gang group need beside them or are spread against. Emptied nodes keep them, because
//! without them a member may be refused everywhere.

use std::collections::{BTreeMap, BTreeSet};

use pellucid_cluster::{Cluster, PodRecord};
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::{Name, Pod, PodId, cancellation};

use super::outlook::Look;

/// Largest number of members with different terms that are looked at.
const MOST_KINDS: usize = 16;

/// Returns the sets of pods to keep that are worth trying: all that the members' terms select, and one per topology
/// domain, the smallest. There are none if no term selects a pod.
pub(super) fn targets(look: &Look<'_>) -> Vec<BTreeSet<PodId>> {
    let cluster = &look.snapshot.cluster;
    let (mut all, mut few) = (BTreeSet::new(), BTreeSet::new());
    for member in kinds(look) {
        for term in member.spec.pod_affinity.required.iter() {
            let selected = selected(look, |record| is_about(cluster, term, member, &record.pod));
            few.extend(one_per_domain(cluster, &term.topology_key, &selected));
            all.extend(selected);
        }
        for constraint in member.spec.spread.iter().filter(|constraint| constraint.is_hard) {
            let Some(selector) = &constraint.selector else { continue };
            all.extend(selected(look, |record| {
                record.pod.key.namespace == member.key.namespace && selector.matches(&record.pod.labels)
            }));
        }
    }
    let mut sets: Vec<BTreeSet<PodId>> = [all, few].into_iter().filter(|set| !set.is_empty()).collect();
    sets.dedup();
    sets
}

/// Returns one pending member of the group for each different set of terms, up to [`MOST_KINDS`].
fn kinds<'s>(look: &Look<'s>) -> Vec<&'s Pod> {
    let cluster = &look.snapshot.cluster;
    let gangs = look.keys.iter().filter_map(|key| cluster.gangs().get(key));
    let members = gangs.flat_map(|gang| gang.members.keys()).filter_map(|id| cluster.pod(*id));
    let mut kinds: Vec<&Pod> = Vec::new();
    for record in members.filter(|record| record.node.is_none()) {
        let (spec, namespace) = (&record.pod.spec, &record.pod.key.namespace);
        let is_alike = |known: &&Pod| {
            known.key.namespace == *namespace
                && known.spec.pod_affinity.required == spec.pod_affinity.required
                && known.spec.spread == spec.spread
        };
        if kinds.len() < MOST_KINDS && !kinds.iter().any(is_alike) {
            kinds.push(&record.pod);
        }
    }
    kinds
}

/// Returns the placed pods of others that could leave and that `is_it` accepts.
fn selected(look: &Look<'_>, is_it: impl Fn(&PodRecord) -> bool) -> Vec<PodId> {
    cancellation::check();
    let pods = look.snapshot.cluster.pods();
    let placed = pods.filter(|(_, r)| r.node.is_some() && r.pod.can_leave() && !look.is_own(r));
    placed.filter(|(_, record)| is_it(record)).map(|(id, _)| id).collect()
}

/// Returns whether a term of a member selects a pod.
fn is_about(cluster: &Cluster, term: &PodAffinityTerm, member: &Pod, pod: &Pod) -> bool {
    let namespace = &pod.key.namespace;
    let is_named = match term.namespaces.is_empty() && term.namespace_selector.is_none() {
        true => member.key.namespace == *namespace,
        false => term.namespaces.contains(namespace),
    };
    let is_selected = || {
        let labels = || cluster.objects().namespace_labels(namespace);
        term.namespace_selector.as_ref().is_some_and(|s| s.is_empty() || s.matches(&labels()))
    };
    term.selector.as_ref().is_some_and(|s| s.matches(&pod.labels)) && (is_named || is_selected())
}

/// Returns of each topology domain the pod that requests the least.
fn one_per_domain(cluster: &Cluster, key: &Name, pods: &[PodId]) -> BTreeSet<PodId> {
    let mut smallest: BTreeMap<Name, (i64, i64, PodId)> = BTreeMap::new();
    for id in pods {
        let Some(record) = cluster.pod(*id) else { continue };
        let node = record.node.and_then(|node| cluster.node(node));
        let Some(domain) = node.and_then(|node| node.labels.get(key)) else { continue };
        let requests = &record.pod.spec.requests.list;
        let size = (requests.milli_cpu, requests.memory, *id);
        smallest.entry(domain.clone()).and_modify(|known| *known = size.min(*known)).or_insert(size);
    }
    smallest.into_values().map(|(.., id)| id).collect()
}
