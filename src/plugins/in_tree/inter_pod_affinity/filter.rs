//! Filter: checks the pod's required affinity, its required anti-affinity, and the required anti-affinity of placed
//! pods.

use std::cmp::Reverse;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::plugin::{CycleValue, Filter, Measure, Nodes, PreFilter, PreFiltered, Reads};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, Reason, View};
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::{Name, NodeIdx, Now, PodSpec};

use super::super::relations::Relations;
use super::hints::Waiting;
use super::sums::{Sums, for_each_about};
use super::terms::{Terms, Use, is_about};
use super::{InterPodAffinity, NAME, requirements, whole_cause};

/// Pod counts per domain.
pub(super) struct Prepared {
    /// Pods that match every required affinity term of the pod.
    pub(super) affinity: Sums,
    /// Whether no pod matches and the pod matches its own terms: it may then be the first of its kind.
    is_first: bool,
    /// Pods that match at least one required anti-affinity term of the pod.
    anti_affinity: Sums,
    /// Pods with a required anti-affinity term that matches the pod.
    existing: Sums,
}

impl Prepared {
    /// Returns whether the pod's required affinity accepts a node, or `None` when the node lacks a topology key.
    pub(super) fn is_near(&self, node: NodeIdx) -> Option<bool> {
        let mut all_near = true;
        for key in self.affinity.keys() {
            all_near &= key.on(node)? > 0;
        }
        Some(all_near || self.is_first)
    }
}

impl PreFilter for InterPodAffinity {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        let (Some(relations), Some(terms)) = (view.state::<Relations>(), view.state::<Terms>()) else {
            return PreFiltered::Skip;
        };
        let existing = existing(view, relations, terms, spec);
        let (near, far) = (&spec.pod_affinity.required, &spec.pod_anti_affinity.required);
        if existing.is_empty() && near.is_empty() && far.is_empty() {
            return PreFiltered::Skip;
        }
        let affinity = matching_all(view, relations, spec, near);
        let anti_affinity = avoided(view, relations, spec);
        let matches_itself =
            |t: &PodAffinityTerm| is_about(view, t, &spec.namespace, (&spec.namespace, &spec.labels));
        let is_first = affinity.is_empty() && near.iter().all(matches_itself);
        let prepared = Prepared { affinity, is_first, anti_affinity, existing };
        PreFiltered::Ready { value: Arc::new(prepared), nodes: None }
    }
}

/// Counts the placed pods with a required anti-affinity term that matches the pod, once per term.
fn existing(view: View<'_>, relations: &Relations, terms: &Terms, spec: &PodSpec) -> Sums {
    let mut sums = Sums::default();
    terms.about(view, spec, Use::Refusing, |group| {
        let key = sums.key(relations, &group.term.term.topology_key);
        sums.add(key, &group.counts, 1);
    });
    sums
}

/// Counts the placed pods that match the pod's required anti-affinity, once per term.
fn avoided(view: View<'_>, relations: &Relations, spec: &PodSpec) -> Sums {
    let mut sums = Sums::default();
    for term in &spec.pod_anti_affinity.required {
        let key = sums.key(relations, &term.topology_key);
        for_each_about(view, relations, term, &spec.namespace, |class| sums.add(key, &class.counts, 1));
    }
    sums
}

/// Counts the placed pods that match every term, per domain of each term's key.
pub(super) fn matching_all(
    view: View<'_>,
    relations: &Relations,
    spec: &PodSpec,
    terms: &[PodAffinityTerm],
) -> Sums {
    let mut sums = Sums::default();
    let Some((first, rest)) = terms.split_first() else { return sums };
    for term in terms {
        sums.key(relations, &term.topology_key);
    }
    for_each_about(view, relations, first, &spec.namespace, |class| {
        let about =
            |t: &PodAffinityTerm| is_about(view, t, &spec.namespace, (&class.namespace, &class.labels));
        if rest.iter().all(about) {
            for key in 0..sums.keys().len() {
                sums.add(key, &class.counts, 1);
            }
        }
    });
    sums
}

impl Filter for InterPodAffinity {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn filter(&self, _view: View<'_>, _spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>) {
        let Some(prepared) = value.downcast_ref::<Prepared>() else { return };
        let mut cause = |code, reason| nodes.cause(Cause::new(NAME, code, Reason::of(reason)));
        let not_near = cause(Code::UnschedulableAndUnresolvable, ReasonCode::PodAffinityMismatch);
        let not_far = cause(Code::Unschedulable, ReasonCode::PodAntiAffinityConflict);
        let not_wanted = cause(Code::Unschedulable, ReasonCode::ExistingAntiAffinityConflict);
        nodes.refuse(|node| {
            if prepared.is_near(node) != Some(true) {
                return not_near;
            }
            let is_taken = |sums: &Sums| sums.keys().iter().any(|key| key.on(node).is_some_and(|n| n > 0));
            if is_taken(&prepared.anti_affinity) {
                return not_far;
            }
            if is_taken(&prepared.existing) { not_wanted } else { CauseId::FEASIBLE }
        });
    }

    fn needs(&self, view: View<'_>, spec: &PodSpec, other: &PodSpec) -> bool {
        Waiting { view, spec }.wants(other)
    }

    /// The pod's affinity is one reason, because one pod must match all of its terms; each anti-affinity term of the pod,
    /// and each of placed pods, is one.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        let prepared = value.downcast_ref::<Prepared>()?;
        whole_cause::every_reason(view, spec, prepared)
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        requirements::of(view, spec, refused)
    }

    fn detail(&self, view: View<'_>, spec: &PodSpec, _: &Cause, node: NodeIdx, _: Now) -> Option<String> {
        requirements::on_node(view, spec, node)
    }

    /// Returns, per topology key, the domain with the fewest conflicting pods and their number.
    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        let (Some(relations), Some(terms)) = (view.state::<Relations>(), view.state::<Terms>()) else {
            return Vec::new();
        };
        let (sums, what) = match cause.reasons.first().map(|r| r.code) {
            Some(ReasonCode::PodAntiAffinityConflict) => (avoided(view, relations, spec), "pods to avoid in"),
            Some(ReasonCode::ExistingAntiAffinityConflict) => {
                (existing(view, relations, terms, spec), "pods that avoid it in")
            }
            _ => return Vec::new(),
        };
        let measured = sums.keys().iter().filter_map(|key| {
            let in_the_way = |node: &NodeIdx| Some((key.on(*node)?, *node)).filter(|(pods, _)| *pods > 0);
            let by_pods = |(pods, node): &(i64, NodeIdx)| (*pods, Reverse(view.cluster().slot(*node).tie));
            let (requested, best_node) = nodes.iter().filter_map(in_the_way).min_by_key(by_pods)?;
            let resource = Name::new(&format!("{what} {}", key.name()));
            Some(Measure { resource, requested, available: 0, best_node })
        });
        let mut all: Vec<Measure> = measured.collect();
        all.sort_by(|a, b| a.resource.cmp(&b.resource));
        all
    }
}
