//! Selects the constraints of a pod: its own, or else the default ones with a selector built from the Services that
//! select the pod and from its owner.

use std::borrow::Cow;

use pellucid_framework::View;
use pellucid_model::relations::SpreadConstraint;
use pellucid_model::selector::{LabelSelector, Labels, Requirement};
use pellucid_model::{ObjectKind, PodSpec};

use super::super::relations::Relations;
use super::args::Defaults;

/// A constraint that applies to a pod.
#[derive(Clone)]
pub(super) struct Constraint<'a> {
    /// The rule. Ignore its own selector; use `selector`.
    pub(super) rule: &'a SpreadConstraint,
    /// Selects the counted pods; `None` counts none.
    pub(super) selector: Option<Cow<'a, LabelSelector>>,
}

impl Constraint<'_> {
    /// Returns whether a pod of the same namespace with these labels is counted.
    pub(super) fn counts(&self, labels: &Labels) -> bool {
        self.selector.as_ref().is_some_and(|s| s.matches(labels))
    }
}

/// Returns the hard (`DoNotSchedule`) or the soft constraints that apply to a pod.
pub(super) fn constraints<'a>(
    view: View<'_>,
    spec: &'a PodSpec,
    defaults: &'a Defaults,
    is_hard: bool,
) -> Vec<Constraint<'a>> {
    if !spec.spread.is_empty() {
        let wanted = spec.spread.iter().filter(|c| c.is_hard == is_hard);
        let own = |rule: &'a SpreadConstraint| Constraint {
            rule,
            selector: rule.selector.as_ref().map(Cow::Borrowed),
        };
        return wanted.map(own).collect();
    }
    let mut wanted = defaults.constraints.iter().filter(|c| c.is_hard == is_hard).peekable();
    if wanted.peek().is_none() {
        return Vec::new();
    }
    let Some(selector) = default_selector(view, spec) else { return Vec::new() };
    wanted.map(|rule| Constraint { rule, selector: Some(Cow::Owned(selector.clone())) }).collect()
}

/// Returns the combined selector of the Services that select a pod and of its owner; `None` when there is no
/// requirement.
fn default_selector(view: View<'_>, spec: &PodSpec) -> Option<LabelSelector> {
    let services = view.state::<Relations>().map_or(&[][..], |r| r.services(&spec.namespace));
    if services.is_empty() && spec.owner.is_none() {
        return None;
    }
    let matching = services.iter().map(|(_, selector)| selector).filter(|s| s.matches(&spec.labels));
    let mut all: Vec<Requirement> = matching.flat_map(|s| s.requirements()).cloned().collect();
    if let Some(owner) = &spec.owner {
        let kind = ObjectKind::of_owner(owner.kind);
        let key = (spec.namespace.clone(), owner.name.clone());
        let object = view.cluster().objects().get(kind, &key);
        if let Some(selector) = object.and_then(|o| o.pod_selector()) {
            // A ReplicationController's pairs replace those of Services; the requirements of other owners are added.
            if kind == ObjectKind::ReplicationController {
                all.retain(|r| selector.keys().all(|key| *key != r.key));
            }
            all.extend(selector.requirements().iter().cloned());
        }
    }
    if all.is_empty() { None } else { Some(LabelSelector::new(all)) }
}
