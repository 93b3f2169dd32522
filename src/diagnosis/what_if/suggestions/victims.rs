//! Parts of fixes that remove pods, and which pods to consider. `verdict::victims` finds who must leave one node.

use pellucid_api::rest::simulate::{EditBody, ObjectOf};
use pellucid_cycle::what_if::edit::Edit;
use pellucid_cycle::what_if::exhaustive::Requirement;
use pellucid_model::pod::StandsFor;
use pellucid_model::relations::{PodAffinityTerm, PodTerms};
use pellucid_model::selector::LabelSelector;
use pellucid_model::{CustomKindRef, NodeIdx, Pod, PodId, PodKey};

use super::parts::Part;
use crate::requirements::victims::{MOST_VICTIMS, movable};
use crate::requirements::{PodRequirements, missing, requested};

/// Number of pods tried that keep the pod out of whole domains.
const MOST_RELATED: usize = 32;
/// Cost of removing a pod, and of removing one of higher priority.
pub(super) const DELETE: u32 = 60;
const DELETE_HIGHER: u32 = 100;

/// Builds the part that deletes a pod, or the object for which it stands.
pub(super) fn delete_pod(asked: &PodRequirements<'_>, key: PodKey) -> Part {
    let record = asked.cluster.find_pod(&key).and_then(|id| asked.cluster.pod(id));
    let is_higher = record.is_some_and(|r| r.pod.priority > asked.record.pod.priority);
    let cost = if is_higher { DELETE_HIGHER } else { DELETE };
    let stands_for = record.and_then(|record| record.pod.stands_for.as_deref());
    if let Some(part) = stands_for.and_then(|of| delete_object(asked, of, cost)) {
        return part;
    }
    let (text, body) = (format!("let pod {key} go"), EditBody::DeletePod(key.to_string()));
    let command = format!("kubectl -n {} delete pod {}", key.namespace, key.name);
    Part::new(Edit::DeletePod(key), body, text, cost).with_command(command)
}

/// Builds the part that deletes an object with a pod that stands for it.
fn delete_object(asked: &PodRequirements<'_>, of: &StandsFor, cost: u32) -> Option<Part> {
    let is_kind = |kind: &CustomKindRef| {
        let group = of.api_version.split_once('/').map_or("", |(group, _)| group);
        kind.0.kind == of.kind.as_str() && kind.0.group == group
    };
    let kind = asked.cluster.custom_objects().kinds().find(is_kind)?;
    let CustomKindRef(about) = kind;
    let namespace = about.is_namespaced.then(|| of.namespace.to_string());
    let at = namespace.as_ref().map(|namespace| format!("-n {namespace} ")).unwrap_or_default();
    let command = format!("kubectl {at}delete {}.{} {}", about.plural, about.group, of.name);
    let body = ObjectOf { kind: about.qualified.to_owned(), namespace, name: of.name.to_string() };
    let edit = Edit::DeleteCustom(kind, (of.namespace.clone(), of.name.clone()));
    let text = format!("let {} {} go", about.kind, of.name);
    Some(Part::new(edit, EditBody::DeleteObject(body), text, cost).with_command(command))
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
