//! Hints: which events could bring a pod near those it needs, or away from those it must avoid.

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
        [
            EventKinds::POD_DELETE,
            EventKinds::POD_LABEL,
            EventKinds::POD_SELF,
            EventKinds::NODE_ADD,
            EventKinds::NODE_DELETE,
            EventKinds::NODE_LABEL,
            EventKinds::NAMESPACE,
        ]
        .into_iter()
        .fold(EventKinds::POD_ADD, EventKinds::with)
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
            // The pods on it do not count any more, on whichever nodes of their domains.
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

/// The pod that waits.
struct Waiting<'a> {
    view: View<'a>,
    spec: &'a PodSpec,
}

impl Waiting<'_> {
    /// Whether a term of a pod with one spec is about a pod with another.
    fn about(&self, term: &PodAffinityTerm, of: &PodSpec, other: &PodSpec) -> bool {
        is_about(self.view, term, &of.namespace, (&other.namespace, &other.labels))
    }

    /// Whether the other pod matches all of the pod's required affinity, of which there is some.
    fn wants(&self, other: &PodSpec) -> bool {
        let near = &self.spec.pod_affinity.required;
        !near.is_empty() && near.iter().all(|t| self.about(t, self.spec, other))
    }

    /// Whether the pod matches all of its own required affinity: without the last pod that it wants to be near, it
    /// may be the first of its kind.
    fn may_be_first(&self) -> bool {
        self.wants(self.spec)
    }

    /// Whether it may help that some pods do not count any more, whatever they are.
    fn may_gain_by_fewer_pods(&self) -> bool {
        let has_terms = !self.spec.pod_anti_affinity.required.is_empty();
        has_terms || self.may_be_first() || !self.existing_keys().is_empty()
    }

    /// Whether the other pod matches some of the pod's required anti-affinity.
    fn avoids(&self, other: &PodSpec) -> bool {
        self.spec.pod_anti_affinity.required.iter().any(|t| self.about(t, self.spec, other))
    }

    /// Whether a term of the pod's required anti-affinity was about another pod and is not any more. Others may still
    /// be: they keep it away from other nodes.
    fn is_freed_of(&self, old: &PodSpec, new: &PodSpec) -> bool {
        let about = |term, other| self.about(term, self.spec, other);
        self.spec.pod_anti_affinity.required.iter().any(|t| about(t, old) && !about(t, new))
    }

    /// Whether the pod matches some required anti-affinity of the other.
    fn is_avoided_by(&self, other: &PodSpec) -> bool {
        other.pod_anti_affinity.required.iter().any(|t| self.about(t, other, self.spec))
    }

    /// Whether new labels of a node bring it into another domain that matters.
    fn gains_by_labels(&self, old: &Labels, new: &Labels) -> bool {
        let moved = |key: &Name| old.get(key) != new.get(key);
        let near = self.spec.pod_affinity.required.iter();
        let far = self.spec.pod_anti_affinity.required.iter();
        let leaves_none_near = self.may_be_first();
        near.map(|t| &t.topology_key).any(|key| (new.get(key).is_some() || leaves_none_near) && moved(key))
            || far.map(|t| &t.topology_key).any(moved)
            || self.existing_keys().iter().any(moved)
    }

    /// Returns the keys of the anti-affinity of placed pods that keeps the pod away.
    fn existing_keys(&self) -> Vec<Name> {
        let mut keys = Vec::new();
        if let Some(terms) = self.view.state::<Terms>() {
            terms.about(self.view, self.spec, Use::Refusing, |g| keys.push(g.term.term.topology_key.clone()));
        }
        keys
    }

    /// Whether other labels of a namespace could make terms match, or no longer match.
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
