//! Finds which pods would have to leave a node so that it takes a pod.
//!
//! Not preemption: priorities only order the pods, and budgets do not count. Only the pods on the node itself are
//! looked at.

use std::cmp::Reverse;

use pellucid_cluster::{Cluster, Place};
use pellucid_cycle::what_if::exhaustive::masks_of_pod_on;
use pellucid_model::{NodeIdx, PodId, PodKey, cancellation};

use crate::what_if::requirements::PodRequirements;

/// Returns a minimal set of pods that must leave a node of a state so that it takes the pod, by name. Pods of low
/// priority go first, then those with the largest CPU request. Returns `None` when the node takes the pod already, or
/// does not even without all pods that can leave it.
pub(crate) fn victims_among(
    state: &Cluster,
    asked: &PodRequirements<'_>,
    node: NodeIdx,
) -> Option<Vec<PodKey>> {
    let mut cluster = state.fork();
    let pods = by_priority(&cluster, node);
    let fits = |cluster: &mut Cluster| {
        cancellation::check();
        let masks = masks_of_pod_on(cluster, asked.profile, (asked.id, &asked.record.pod.spec), &[node]);
        masks.pod.is_none() && masks.of(node) == 0
    };
    if pods.is_empty() || fits(&mut cluster) {
        return None;
    }
    let gone: Option<Vec<(PodId, Place)>> =
        pods.into_iter().map(|id| Some((id, cluster.displace(id)?))).collect();
    if !fits(&mut cluster) {
        return None;
    }
    // Puts back the pods that may stay, those of high priority first.
    let mut needed: Vec<PodId> = Vec::new();
    for (id, place) in gone?.into_iter().rev() {
        cluster.put_back(id, place);
        if !fits(&mut cluster) {
            cluster.release(id);
            needed.push(id);
        }
    }
    let mut keys: Vec<PodKey> =
        needed.iter().filter_map(|id| cluster.pod(*id).map(|record| record.pod.key.clone())).collect();
    keys.sort();
    Some(keys)
}

/// Returns the pods on a node that can leave it, those that go first at the front.
fn by_priority(cluster: &Cluster, node: NodeIdx) -> Vec<PodId> {
    let can_leave = |id: &PodId| {
        cluster.pod(*id).is_some_and(|r| r.node == Some(node) && !r.pod.deleting && r.pod.can_leave())
    };
    let mut pods: Vec<PodId> = cluster.slot(node).pods.iter().copied().filter(can_leave).collect();
    pods.sort_by_cached_key(|id| {
        cluster
            .pod(*id)
            .map(|r| (r.pod.priority, Reverse(r.pod.spec.requests.list.milli_cpu), r.pod.key.clone()))
    });
    pods
}
