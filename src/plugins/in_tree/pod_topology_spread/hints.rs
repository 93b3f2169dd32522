//! Queueing hints: events that could bring the skew of some node within bounds.

use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::View;
use pellucid_framework::plugin::{Hint, Hints};
use pellucid_model::relations::NodeInclusion;
use pellucid_model::selector::Labels;
use pellucid_model::{Node, Pod, PodSpec};

use super::PodTopologySpread;
use super::constraints::{Constraint, constraints};

impl Hints for PodTopologySpread {
    fn events(&self) -> EventKinds {
        // Hard default constraints take their selectors from Services and owners. kube-scheduler has no such event:
        // there, the next flush of the queue retries those pods.
        let by_default = if self.defaults_refuse() { EventKinds::WORKLOAD } else { EventKinds::NONE };
        EventKinds::union([
            EventKinds::POD_ADD,
            by_default,
            EventKinds::POD_DELETE,
            EventKinds::POD_LABEL,
            EventKinds::POD_SELF,
            EventKinds::NODE_ADD,
            EventKinds::NODE_DELETE,
            EventKinds::NODE_LABEL,
            EventKinds::NODE_TAINT,
        ])
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let hard = constraints(view, &pod.spec, &self.defaults, true);
        let helps = match event {
            // More pods in the emptiest domain raise the minimum; fewer pods in a full domain lower its count.
            ClusterEvent::PodBound { id, .. } => {
                view.cluster().pod(*id).is_some_and(|r| is_counted(&hard, pod, &r.pod))
            }
            ClusterEvent::PodReleased { pod: gone, .. } | ClusterEvent::NominationEnded { pod: gone, .. } => {
                is_counted(&hard, pod, gone)
            }
            ClusterEvent::PodChanged { id, old, .. } => view
                .cluster()
                .pod(*id)
                .is_some_and(|now| hard.iter().any(|c| counts(c, pod, old) != counts(c, pod, &now.pod))),
            ClusterEvent::PendingUpdated { old, .. } => own_change_helps(&hard, &old.spec, &pod.spec),
            ClusterEvent::NodeAdded(node) => view.labels(*node).is_some_and(|l| has_keys(l, &hard)),
            // The labels of a removed node are no longer known.
            ClusterEvent::NodeRemoved(..) => true,
            ClusterEvent::NodeUpdated { node, change, old } => {
                change.any(NodeChange(NodeChange::LABELS.0 | NodeChange::TAINTS.0))
                    && view
                        .cluster()
                        .node(*node)
                        .is_some_and(|new| node_change_helps(&hard, &pod.spec, old, new))
            }
            ClusterEvent::ObjectChanged { old, new } => {
                let namespace = new.as_ref().or(old.as_ref()).map(|object| object.key().0);
                let is_defaulted = pod.spec.spread.is_empty() && self.defaults_refuse();
                is_defaulted && namespace.is_some_and(|namespace| namespace == pod.key.namespace)
            }
            _ => false,
        };
        if helps { Hint::Queue } else { Hint::Skip }
    }
}

impl PodTopologySpread {
    fn defaults_refuse(&self) -> bool {
        self.defaults.constraints.iter().any(|constraint| constraint.is_hard)
    }
}

/// Returns whether a constraint of `pod` counts another pod.
fn counts(constraint: &Constraint<'_>, pod: &Pod, other: &Pod) -> bool {
    other.key.namespace == pod.key.namespace && !other.deleting && constraint.counts(&other.spec.labels)
}

fn is_counted(hard: &[Constraint<'_>], pod: &Pod, other: &Pod) -> bool {
    hard.iter().any(|c| counts(c, pod, other))
}

fn own_change_helps(hard: &[Constraint<'_>], old: &PodSpec, new: &PodSpec) -> bool {
    let honors_taints = |c: &Constraint<'_>| c.rule.node_taints_policy == NodeInclusion::Honor;
    old.spread != new.spread
        || old.affinity != new.affinity
        || (old.tolerations != new.tolerations && hard.iter().any(honors_taints))
        || hard.iter().any(|c| c.counts(&old.labels) != c.counts(&new.labels))
}

fn has_keys(labels: &Labels, hard: &[Constraint<'_>]) -> bool {
    hard.iter().all(|c| labels.get(&c.rule.topology_key).is_some())
}

/// Returns whether the node joined or left a domain, or started or stopped counting.
fn node_change_helps(hard: &[Constraint<'_>], spec: &PodSpec, old: &Node, new: &Node) -> bool {
    let (had_keys, has_keys) = (has_keys(&old.labels, hard), has_keys(&new.labels, hard));
    if had_keys != has_keys {
        return true;
    }
    has_keys
        && hard.iter().any(|c| {
            let (key, rule) = (&c.rule.topology_key, c.rule);
            let honors_affinity = rule.node_affinity_policy == NodeInclusion::Honor;
            old.labels.get(key) != new.labels.get(key)
                || (rule.node_taints_policy == NodeInclusion::Honor && old.taints != new.taints)
                || (honors_affinity
                    && spec.affinity.accepts(&old.name, &old.labels)
                        != spec.affinity.accepts(&new.name, &new.labels))
        })
}
