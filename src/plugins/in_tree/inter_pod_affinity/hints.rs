//! Queueing hints: events that could bring a pod near pods it requires or away from pods it must avoid.

use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::View;
use pellucid_framework::plugin::{Hint, Hints};
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::selector::Labels;
use pellucid_model::{Name, Object, Pod, PodSpec};

use super::InterPodAffinity;
use super::terms::{Terms, Use, is_about};

impl Hints for InterPodAffinity {
    fn events(&self) -> EventKinds {
        EventKinds::union([
            EventKinds::POD_ADD,
            EventKinds::POD_DELETE,
            EventKinds::POD_LABEL,
            EventKinds::POD_SELF,
            EventKinds::NODE_ADD,
            EventKinds::NODE_DELETE,
            EventKinds::NODE_LABEL,
            EventKinds::NAMESPACE,
        ])
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let waiting = Waiting { view, spec: &pod.spec };
        let helps = match event {
            ClusterEvent::PodBound { id, .. } => {
                view.cluster().pod(*id).is_some_and(|r| waiting.wants(&r.pod.spec))
            }
            ClusterEvent::PodReleased { pod: gone, .. } | ClusterEvent::NominationEnded { pod: gone, .. } => {
                let was_wanted = || waiting.wants(&gone.spec) && waiting.may_be_first();
                waiting.avoids(&gone.spec) || waiting.is_avoided_by(&gone.spec) || was_wanted()
            }
            ClusterEvent::PodChanged { id, old, .. } => view.cluster().pod(*id).is_some_and(|now| {
                let (before, after) = (waiting.wants(&old.spec), waiting.wants(&now.pod.spec));
                let is_no_longer_wanted = || before && waiting.may_be_first();
                (before != after && (after || is_no_longer_wanted()))
                    || waiting.is_freed_of(&old.spec, &now.pod.spec)
            }),
            // Pods on a removed node no longer count, which can help on any other node of their domains.
            ClusterEvent::NodeRemoved(..) => waiting.may_gain_by_fewer_pods(),
            ClusterEvent::PendingUpdated { old, .. } => own_change_helps(old, pod),
            ClusterEvent::NodeAdded(node) => {
                let near = &pod.spec.pod_affinity.required;
                view.labels(*node).is_some_and(|l| near.iter().all(|t| l.get(&t.topology_key).is_some()))
            }
            ClusterEvent::NodeUpdated { node, change, old } if change.any(NodeChange::LABELS) => {
                view.labels(*node).is_some_and(|new| waiting.gains_by_labels(&old.labels, new))
            }
            ClusterEvent::ObjectChanged { old, new } => match new.as_deref().or(old.as_deref()) {
                Some(Object::Namespace(namespace)) => waiting.may_read(&namespace.name),
                _ => false,
            },
            _ => false,
        };
        if helps { Hint::Queue } else { Hint::Skip }
    }
}

/// The pending pod.
pub(super) struct Waiting<'a> {
    pub(super) view: View<'a>,
    pub(super) spec: &'a PodSpec,
}

impl Waiting<'_> {
    /// Returns whether a term of a pod with spec `of` matches a pod with spec `other`.
    fn about(&self, term: &PodAffinityTerm, of: &PodSpec, other: &PodSpec) -> bool {
        is_about(self.view, term, &of.namespace, (&other.namespace, &other.labels))
    }

    /// Returns whether the other pod matches all of the pod's required affinity terms, and there is at least one.
    pub(super) fn wants(&self, other: &PodSpec) -> bool {
        let near = &self.spec.pod_affinity.required;
        !near.is_empty() && near.iter().all(|t| self.about(t, self.spec, other))
    }

    /// Returns whether the pod matches all of its own required affinity: once the last pod that it requires is gone, it
    /// may be the first of its kind.
    fn may_be_first(&self) -> bool {
        self.wants(self.spec)
    }

    /// Returns whether the removal of some pods, whichever they are, may help.
    fn may_gain_by_fewer_pods(&self) -> bool {
        let has_terms = !self.spec.pod_anti_affinity.required.is_empty();
        has_terms || self.may_be_first() || !self.existing_keys().is_empty()
    }

    /// Returns whether the other pod matches at least one of the pod's required anti-affinity terms.
    fn avoids(&self, other: &PodSpec) -> bool {
        self.spec.pod_anti_affinity.required.iter().any(|t| self.about(t, self.spec, other))
    }

    /// Returns whether one of the pod's required anti-affinity terms matched another pod and no longer does. Other
    /// terms may still match and keep the pod away from other nodes.
    fn is_freed_of(&self, old: &PodSpec, new: &PodSpec) -> bool {
        let about = |term, other| self.about(term, self.spec, other);
        self.spec.pod_anti_affinity.required.iter().any(|t| about(t, old) && !about(t, new))
    }

    /// Returns whether the pod matches at least one required anti-affinity term of the other pod.
    fn is_avoided_by(&self, other: &PodSpec) -> bool {
        other.pod_anti_affinity.required.iter().any(|t| self.about(t, other, self.spec))
    }

    /// Returns whether new labels of a node move it into another domain of a relevant key.
    fn gains_by_labels(&self, old: &Labels, new: &Labels) -> bool {
        let moved = |key: &Name| old.get(key) != new.get(key);
        let near = self.spec.pod_affinity.required.iter();
        let far = self.spec.pod_anti_affinity.required.iter();
        let leaves_none_near = self.may_be_first();
        near.map(|t| &t.topology_key).any(|key| (new.get(key).is_some() || leaves_none_near) && moved(key))
            || far.map(|t| &t.topology_key).any(moved)
            || self.existing_keys().iter().any(moved)
    }

    /// Returns the topology keys of the required anti-affinity of placed pods that matches the pod.
    fn existing_keys(&self) -> Vec<Name> {
        let mut keys = Vec::new();
        if let Some(terms) = self.view.state::<Terms>() {
            terms.about(self.view, self.spec, Use::Refusing, |g| keys.push(g.term.term.topology_key.clone()));
        }
        keys
    }

    /// Returns whether new labels of a namespace could change which terms match.
    fn may_read(&self, namespace: &Name) -> bool {
        let terms = &self.spec.pod_affinity.required;
        let mut own = terms.iter().chain(&self.spec.pod_anti_affinity.required);
        own.any(|t| t.namespace_selector.is_some()) || *namespace == self.spec.namespace
    }
}

fn own_change_helps(old: &Pod, new: &Pod) -> bool {
    let (before, after) = (&old.spec, &new.spec);
    let relabelled = old.labels != new.labels && before.labels != after.labels;
    relabelled
        || before.pod_affinity.required != after.pod_affinity.required
        || before.pod_anti_affinity.required != after.pod_anti_affinity.required
}
