//! Finds which pods would have to leave a node so that it takes a pod.
//!
//! Not preemption: priorities only order the pods, and budgets do not count. Only the pods on the node itself are
//! looked at.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::{Cluster, Place, PodRecord};
use pellucid_cycle::what_if::exhaustive::masks_of_pod_on;
use pellucid_model::{NodeIdx, PodId, PodKey, cancellation};

use crate::requirements::PodRequirements;

/// Largest number of pods that a fix removes from a node.
pub(crate) const MOST_VICTIMS: usize = 8;

/// Number of pods that are tried as the first to leave, where the pod needs some of those on the node.
const MOST_FIRSTS: usize = 16;

/// Returns the pods that can leave a node and stay away, those of low priority first, then those with the largest CPU
/// request.
pub(crate) fn movable(cluster: &Cluster, node: NodeIdx) -> Vec<PodId> {
    let is_movable = |id: &PodId| {
        cluster.pod(*id).is_some_and(|r| !r.pod.deleting && r.pod.can_leave() && r.node == Some(node))
    };
    let mut pods: Vec<PodId> = cluster.slot(node).pods.iter().copied().filter(is_movable).collect();
    pods.sort_by_cached_key(|id| {
        cluster.pod(*id).map(|r| {
            let requests = &r.pod.spec.requests.list;
            (r.pod.priority, std::cmp::Reverse(requests.milli_cpu), r.pod.key.clone())
        })
    });
    pods
}

/// Returns a minimal set of pods that must leave a node so that it takes the pod. Returns `None` when removing pods does
/// not help, or more than [`MOST_VICTIMS`] would have to leave.
pub(crate) fn victims_on(asked: &PodRequirements<'_>, node: NodeIdx) -> Option<Vec<PodKey>> {
    victims_among(&asked.cluster, asked, node).filter(|pods| pods.len() <= MOST_VICTIMS)
}

/// Returns a minimal set of pods that must leave a node of a state so that it takes the pod, by name. Returns `None` when
/// the node takes the pod already, or when removing pods does not help.
pub(crate) fn victims_among(
    state: &Cluster,
    asked: &PodRequirements<'_>,
    node: NodeIdx,
) -> Option<Vec<PodKey>> {
    let pods = movable(state, node);
    let mut removal = Removal { asked, node, cluster: state.fork(), pods: &pods, gone: Vec::new() };
    removal.remove_first(pods.len());
    let emptied = removal.failed();
    let needed = if emptied.is_empty() {
        removal.shortest(pods.len());
        removal.needed()
    } else {
        removal.remove_first(0);
        let before = removal.failed();
        // What only the emptied node lacks are pods there that the pod needs.
        let needs_others = emptied.iter().any(|lacked| !before.contains(lacked));
        if !needs_others || !removal.remove_but_needed(&before) {
            return None;
        }
        removal.needed()
    };
    let mut keys: Vec<PodKey> =
        needed.iter().filter_map(|id| state.pod(*id).map(|record| record.pod.key.clone())).collect();
    keys.sort();
    (!keys.is_empty()).then_some(keys)
}

/// Returns whether a node takes the pod once all pods on it have left that can, but for those that stay.
pub(crate) fn takes_without_its_pods(
    asked: &PodRequirements<'_>,
    node: NodeIdx,
    stays: impl Fn(&PodRecord) -> bool,
) -> bool {
    cancellation::check();
    let mut cluster = asked.cluster.fork();
    let leaves = |id: &PodId| cluster.pod(*id).is_some_and(|r| r.pod.can_leave() && !stays(r));
    let gone: Vec<PodId> = cluster.slot(node).pods.iter().copied().filter(leaves).collect();
    for id in gone {
        cluster.release(id);
    }
    let masks = masks_of_pod_on(&mut cluster, asked.profile, (asked.id, &asked.record.pod.spec), &[node]);
    masks.pod.is_none() && masks.of(node) == 0
}

/// A copy of the state from which the first pods of a list are removed.
struct Removal<'a> {
    asked: &'a PodRequirements<'a>,
    node: NodeIdx,
    cluster: Cluster,
    pods: &'a [PodId],
    gone: Vec<(PodId, Place)>,
}

impl Removal<'_> {
    /// Removes the first `n` pods of the list and no others.
    fn remove_first(&mut self, n: usize) {
        while self.gone.len() > n {
            if let Some((id, place)) = self.gone.pop() {
                self.cluster.put_back(id, place);
            }
        }
        while let Some(id) = self.pods.get(self.gone.len()).filter(|_| self.gone.len() < n) {
            let Some(place) = self.cluster.displace(*id) else { return };
            self.gone.push((*id, place));
        }
    }

    fn failed(&mut self) -> Vec<(ReasonCode, &'static str)> {
        cancellation::check();
        let PodRequirements { id, profile, record, .. } = self.asked;
        let masks = masks_of_pod_on(&mut self.cluster, profile, (*id, &record.pod.spec), &[self.node]);
        let of_pod = masks.pod.iter().flat_map(|c| c.reasons.iter().map(|r| (r.code, c.plugin)));
        let failed = masks.requirements(masks.of(self.node)).map(|(_, r)| (r.reason.code, r.plugin));
        of_pod.chain(failed).collect()
    }

    fn fits(&mut self) -> bool {
        self.failed().is_empty()
    }

    /// Removes one pod after another until the node fits, but for those without which it lacks what it did not before. Returns
    /// whether it fits then. Of several that the pod needs one of, the last stays: so others are tried as the first.
    fn remove_but_needed(&mut self, before: &[(ReasonCode, &'static str)]) -> bool {
        (0..self.pods.len().min(MOST_FIRSTS)).any(|first| {
            self.remove_first(0);
            self.remove_but_needed_from(first, before)
        })
    }

    /// Does so with the pods of the list from this one on, then with those before.
    fn remove_but_needed_from(&mut self, first: usize, before: &[(ReasonCode, &'static str)]) -> bool {
        let (later, sooner) = self.pods.split_at(first);
        for id in sooner.iter().chain(later) {
            let Some(place) = self.cluster.displace(*id) else { continue };
            let failed = self.failed();
            if failed.iter().any(|lacked| !before.contains(lacked)) {
                self.cluster.put_back(*id, place);
                continue;
            }
            self.gone.push((*id, place));
            if failed.is_empty() {
                return true;
            }
        }
        false
    }

    /// Removes as few of the first pods as suffice, given that the first `enough` do and that more never harm.
    fn shortest(&mut self, mut enough: usize) {
        let mut fails = 0;
        while enough > fails {
            let middle = fails + (enough - fails) / 2;
            self.remove_first(middle);
            if self.fits() { enough = middle } else { fails = middle + 1 }
        }
        self.remove_first(enough);
    }

    /// Puts back the pods whose removal was not needed, the last removed first, and returns the others.
    fn needed(mut self) -> Vec<PodId> {
        let mut needed = Vec::new();
        for (id, place) in std::mem::take(&mut self.gone).into_iter().rev() {
            self.cluster.put_back(id, place);
            if !self.fits() {
                self.cluster.release(id);
                needed.push(id);
            }
        }
        needed
    }
}
