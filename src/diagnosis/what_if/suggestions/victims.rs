//! Pods whose removal makes a node take a pod.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::simulate::EditBody;
use pellucid_cluster::{Cluster, Place};
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::exhaustive::{Requirement, masks_of_pod_on};
use pellucid_model::relations::{PodAffinityTerm, PodTerms};
use pellucid_model::selector::LabelSelector;
use pellucid_model::{NodeIdx, Pod, PodId, PodKey, cancellation};

use super::parts::Part;
use crate::what_if::requirements::{PodRequirements, missing, requested};

/// Largest number of pods that a fix removes.
pub(super) const MOST_VICTIMS: usize = 8;
/// Number of pods tried that keep the pod out of whole domains.
const MOST_RELATED: usize = 32;
/// Cost of removing a pod, and of removing one of higher priority.
pub(super) const DELETE: u32 = 60;
const DELETE_HIGHER: u32 = 100;

/// Builds the part that deletes a pod.
pub(super) fn delete_pod(asked: &PodRequirements<'_>, key: PodKey) -> Part {
    let record = asked.cluster.find_pod(&key).and_then(|id| asked.cluster.pod(id));
    let is_higher = record.is_some_and(|r| r.pod.priority > asked.record.pod.priority);
    let cost = if is_higher { DELETE_HIGHER } else { DELETE };
    let (text, body) = (format!("let pod {key} go"), EditBody::DeletePod(key.to_string()));
    let command = format!("kubectl -n {} delete pod {}", key.namespace, key.name);
    Part::new(Edit::DeletePod(key), body, text, cost).with_command(command)
}

/// Returns the pods that can leave a node and stay away, those of low priority first, then those with the largest CPU
/// request.
fn movable(cluster: &Cluster, node: NodeIdx) -> Vec<PodId> {
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

/// Returns how many pods at least must leave a node for its missing resources, or `None` when not even all that can
/// leave are enough, or when more than `MOST_VICTIMS` must.
pub(super) fn least(asked: &PodRequirements<'_>, node: NodeIdx) -> Option<usize> {
    let cluster = &asked.cluster;
    let pods = movable(cluster, node);
    let mut least = 1;
    for (_, requirement) in asked.masks.requirements(asked.masks.of(node)) {
        let Some((wanted, available)) = missing(asked, node, requirement) else { continue };
        let Some(resource) = requirement.reason.subject.as_ref() else { continue };
        let amount = |id: &PodId| requested(&cluster.pod(*id)?.pod.spec, resource);
        let mut amounts: Vec<i64> = pods.iter().filter_map(amount).collect();
        amounts.sort_unstable_by_key(|amount| std::cmp::Reverse(*amount));
        let (mut lacking, mut n) = (wanted.saturating_sub(available), 0);
        let mut amounts = amounts.into_iter();
        while lacking > 0 {
            lacking -= amounts.next()?;
            n += 1;
        }
        least = least.max(n);
    }
    (!pods.is_empty() && least <= MOST_VICTIMS).then_some(least)
}

/// Returns a minimal set of pods that must leave a node so that it takes the pod. Returns `None` when removing pods does
/// not help, or more than `MOST_VICTIMS` would have to leave.
pub(crate) fn victims_on(asked: &PodRequirements<'_>, node: NodeIdx) -> Option<Vec<PodKey>> {
    let pods = movable(&asked.cluster, node);
    let mut removal = Removal { asked, node, cluster: asked.cluster.fork(), pods: &pods, gone: Vec::new() };
    removal.remove_first(pods.len());
    let needed = if removal.fits() {
        removal.shortest(pods.len());
        removal.needed()
    } else if removal.needs_others() {
        // The pod needs some of the others there: remove one after another.
        removal.remove_first(0);
        while !removal.fits() {
            let n = removal.gone.len() + 1;
            (n <= pods.len()).then(|| removal.remove_first(n))?;
        }
        removal.needed()
    } else {
        return None;
    };
    let keys = needed.iter().filter_map(|id| asked.cluster.pod(*id).map(|r| r.pod.key.clone()));
    let mut keys: Vec<PodKey> = keys.collect();
    keys.sort();
    (!keys.is_empty() && keys.len() <= MOST_VICTIMS).then_some(keys)
}

/// Returns placed pods that may keep the pod out of whole domains, by its and their required anti-affinity and by its hard
/// topology spread constraints. Those of low priority come first. Returns none if every node fails something else too.
pub(super) fn related(asked: &PodRequirements<'_>) -> Vec<PodKey> {
    let masks = &asked.masks;
    let of_others = |(bit, r): (usize, &Requirement), fixed: u64| {
        matches!(r.plugin, "InterPodAffinity" | "PodTopologySpread") && fixed & (1 << bit) == 0
    };
    let is_open = |node: &NodeIdx| {
        let (mask, fixed) = (masks.of(*node), masks.fixed_of(*node));
        mask != 0 && masks.requirements(mask).all(|requirement| of_others(requirement, fixed))
    };
    if masks.pod.is_some() || !asked.cluster.present().iter().any(is_open) {
        return Vec::new();
    }
    let own = &asked.record.pod;
    let spread = own.spec.spread.iter().filter(|constraint| constraint.is_hard);
    let spread: Vec<&LabelSelector> = spread.filter_map(|constraint| constraint.selector.as_ref()).collect();
    let keeps_apart = |terms: &PodTerms, other: &Pod| {
        let selects =
            |term: &PodAffinityTerm| term.selector.as_ref().is_some_and(|s| s.matches(&other.labels));
        terms.required.iter().any(selects)
    };
    let is_related = |other: &Pod| {
        keeps_apart(&own.spec.pod_anti_affinity, other)
            || keeps_apart(&other.spec.pod_anti_affinity, own)
            || spread.iter().any(|selector| selector.matches(&other.labels))
    };
    let placed =
        asked.cluster.pods().filter(|(_, r)| r.node.is_some() && !r.pod.deleting && r.pod.can_leave());
    let related = placed.filter(|(_, r)| is_related(&r.pod));
    let mut related: Vec<(i32, &PodKey)> = related.map(|(_, r)| (r.pod.priority, &r.pod.key)).collect();
    related.sort_unstable();
    related.into_iter().take(MOST_RELATED).map(|(_, key)| key.clone()).collect()
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

    /// Returns whether the node may fit with fewer pods removed.
    fn needs_others(&mut self) -> bool {
        self.failed().iter().any(|(_, plugin)| matches!(*plugin, "InterPodAffinity" | "PodTopologySpread"))
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
