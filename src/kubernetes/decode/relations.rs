//! Decodes a pod's relations to other pods: its controller, inter-pod affinity, topology spread constraints.
//!
//! `matchLabelKeys` are merged into the selectors unless the API server has already done so. Then the selector has a
//! requirement on the key, with the value that the label had when the pod was created.

use pellucid_model::Name;
use pellucid_model::gang::Controller;
use pellucid_model::relations::{
    NodeInclusion, Owner, OwnerKind, PodAffinityTerm, PodTerms, SpreadConstraint, WeightedTerm,
};
use pellucid_model::selector::{LabelSelector, Labels, Operator, Requirement};

use crate::decode::fields::{
    exactly, flag, int32, name, required, requirements, selector as selector_of, text,
};
use crate::decode::lenient::{Fault, Lenient, List};
use crate::decode::wire;

/// Reads the controller of a pod if default spread constraints know its kind.
pub(crate) fn owner(meta: &wire::Meta) -> Result<Option<Owner>, Fault> {
    let found = meta.owner_references.each("ownerReferences", |reference| {
        if !flag(&reference.controller, "controller")? {
            return Ok(None);
        }
        let version = name(&reference.api_version, "apiVersion")?;
        let kind = match (version.as_str(), name(&reference.kind, "kind")?.as_str()) {
            ("v1", "ReplicationController") => OwnerKind::ReplicationController,
            ("apps/v1", "ReplicaSet") => OwnerKind::ReplicaSet,
            ("apps/v1", "StatefulSet") => OwnerKind::StatefulSet,
            _ => return Ok(None),
        };
        Ok(Some(Owner { kind, name: required(&reference.name, "name")? }))
    })?;
    Ok(found.into_iter().flatten().next())
}

/// Reads whether a DaemonSet owns the pod.
pub(crate) fn is_daemon(meta: &wire::Meta) -> Result<bool, Fault> {
    let kinds = meta.owner_references.each("ownerReferences", |reference| name(&reference.kind, "kind"))?;
    Ok(kinds.iter().any(|kind| kind.as_str() == "DaemonSet"))
}

/// Reads the controller of a pod, of any kind.
pub(crate) fn controller(meta: &wire::Meta) -> Result<Option<Controller>, Fault> {
    let mut found = None;
    meta.owner_references.each("ownerReferences", |reference| {
        if found.is_none() && flag(&reference.controller, "controller")? {
            found = Some(Controller {
                uid: text(&reference.uid, "uid")?,
                kind: name(&reference.kind, "kind")?.as_str().into(),
                name: name(&reference.name, "name")?.as_str().into(),
            });
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads `podAffinity` or `podAntiAffinity`.
pub(crate) fn terms(
    value: &Lenient<wire::PodTerms>,
    field: &str,
    labels: &Labels,
) -> Result<PodTerms, Fault> {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let weighted = |weighted: &wire::WeightedPodTerm| {
        let weight = int32(&weighted.weight, "weight", 0)?;
        let term = weighted.pod_affinity_term.within("podAffinityTerm", |own| term(own, labels))?;
        Ok(WeightedTerm { weight, term })
    };
    value.within(field, |terms| {
        Ok(PodTerms {
            required: terms.required.each(required, |own| term(own, labels))?.into(),
            preferred: terms.preferred.each(preferred, weighted)?.into(),
        })
    })
}

fn term(term: &wire::PodTerm, labels: &Labels) -> Result<PodAffinityTerm, Fault> {
    let mut selector = requirements(&term.label_selector, "labelSelector")?;
    merge(&mut selector, &term.match_label_keys, "matchLabelKeys", Operator::In, labels)?;
    merge(&mut selector, &term.mismatch_label_keys, "mismatchLabelKeys", Operator::NotIn, labels)?;
    let mut namespaces = term.namespaces.each("namespaces", |n| Ok(n.clone()))?;
    namespaces.sort();
    namespaces.dedup();
    Ok(PodAffinityTerm {
        topology_key: required(&term.topology_key, "topologyKey")?,
        selector: selector.map(LabelSelector::new),
        namespaces: namespaces.into(),
        namespace_selector: selector_of(&term.namespace_selector, "namespaceSelector")?,
    })
}

/// Adds the pod's own values of some labels to a selector. A label that the pod lacks is skipped, and an absent
/// selector stays absent.
fn merge(
    selector: &mut Option<Vec<Requirement>>,
    keys: &List<Name>,
    field: &str,
    operator: Operator,
    labels: &Labels,
) -> Result<(), Fault> {
    let keys = keys.each(field, |key| Ok(key.clone()))?;
    let Some(selector) = selector else { return Ok(()) };
    for key in keys {
        let is_merged = selector.iter().any(|r| r.key == key && r.operator == operator);
        if let (false, Some(value)) = (is_merged, labels.get(&key)) {
            selector.push(Requirement { operator, ..exactly(key, value.clone()) });
        }
    }
    Ok(())
}

/// Reads `topologySpreadConstraints`.
pub(crate) fn spread(spec: &wire::PodSpec, labels: &Labels) -> Result<Box<[SpreadConstraint]>, Fault> {
    use NodeInclusion::{Honor, Ignore};
    let all = spec.topology_spread_constraints.each("topologySpreadConstraints", |own| {
        let mut selector = requirements(&own.label_selector, "labelSelector")?;
        merge(&mut selector, &own.match_label_keys, "matchLabelKeys", Operator::In, labels)?;
        Ok(SpreadConstraint {
            max_skew: at_least_1(int32(&own.max_skew, "maxSkew", 0)?, "maxSkew")?,
            topology_key: required(&own.topology_key, "topologyKey")?,
            is_hard: match name(&own.when_unsatisfiable, "whenUnsatisfiable")?.as_str() {
                "DoNotSchedule" => true,
                "ScheduleAnyway" => false,
                other => return Err(Fault::new("whenUnsatisfiable", other, "unknown action")),
            },
            selector: selector.map(LabelSelector::new),
            min_domains: at_least_1(int32(&own.min_domains, "minDomains", 1)?, "minDomains")?,
            node_affinity_policy: policy(&own.node_affinity_policy, "nodeAffinityPolicy", Honor)?,
            node_taints_policy: policy(&own.node_taints_policy, "nodeTaintsPolicy", Ignore)?,
        })
    })?;
    Ok(all.into())
}

fn at_least_1(value: i32, field: &str) -> Result<i32, Fault> {
    if value < 1 {
        return Err(Fault::new(field, &value.to_string(), "must be 1 or more"));
    }
    Ok(value)
}

fn policy(value: &Lenient<Name>, field: &str, when_absent: NodeInclusion) -> Result<NodeInclusion, Fault> {
    Ok(match value.read(field)?.map_or("", Name::as_str) {
        "" => when_absent,
        "Honor" => NodeInclusion::Honor,
        "Ignore" => NodeInclusion::Ignore,
        other => return Err(Fault::new(field, other, "unknown node inclusion policy")),
    })
}
