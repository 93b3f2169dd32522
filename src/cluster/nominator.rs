//! The nominator: which pending pods are nominated to which nodes.
//!
//! A nomination keeps room on a node for a pod that is not there yet: preemption makes it, or somebody else
//! by `status.nominatedNodeName`. What the pod requests is looked up in the state, so a nominee counts in
//! full, in whatever stage of the queue it is. Nodes are known by name: a nomination may name a node that
//! is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::model::collections::FxHashMap;
use crate::model::{Name, Now, PodId};

/// Who made a nomination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NominatedBy {
    /// Our preemption.
    Us,
    /// `status.nominatedNodeName` as somebody else wrote it.
    Others,
}

impl NominatedBy {
    /// Returns the word used in bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Us => "preemption",
            Self::Others => "status",
        }
    }
}

/// A nomination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nomination {
    /// Node.
    pub node: Name,
    /// Who made it.
    pub by: NominatedBy,
    /// Since when.
    pub since: Now,
}

/// All nominations. Cheap to copy.
#[derive(Clone, Debug, Default)]
pub struct Nominator {
    by_pod: Arc<FxHashMap<PodId, Nomination>>,
    by_node: Arc<BTreeMap<Name, SmallVec<[PodId; 2]>>>,
}

impl Nominator {
    /// Nominates a pod. Returns what this replaces, unless it is the same node.
    pub fn nominate(&mut self, pod: PodId, nomination: Nomination) -> Option<Nomination> {
        if self.of(pod).is_some_and(|known| known.node == nomination.node) {
            return None;
        }
        let before = self.end(pod);
        Arc::make_mut(&mut self.by_node).entry(nomination.node.clone()).or_default().push(pod);
        Arc::make_mut(&mut self.by_pod).insert(pod, nomination);
        before
    }

    /// Ends a pod's nomination and returns it.
    pub fn end(&mut self, pod: PodId) -> Option<Nomination> {
        self.of(pod)?;
        let nomination = Arc::make_mut(&mut self.by_pod).remove(&pod)?;
        let by_node = Arc::make_mut(&mut self.by_node);
        if let Some(pods) = by_node.get_mut(&nomination.node) {
            pods.retain(|p| *p != pod);
            if pods.is_empty() {
                by_node.remove(&nomination.node);
            }
        }
        Some(nomination)
    }

    /// Returns a pod's nomination.
    pub fn of(&self, pod: PodId) -> Option<&Nomination> {
        self.by_pod.get(&pod)
    }

    /// Returns the pods nominated to a node, in the order of their nominations.
    pub fn on(&self, node: &Name) -> &[PodId] {
        self.by_node.get(node).map_or(&[], |pods| pods)
    }

    /// Iterates over nodes with nominations, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&Name, &[PodId])> {
        self.by_node.iter().map(|(node, pods)| (node, pods.as_slice()))
    }

    /// Returns how many pods are nominated.
    pub fn len(&self) -> usize {
        self.by_pod.len()
    }

    /// Whether no pod is nominated.
    pub fn is_empty(&self) -> bool {
        self.by_pod.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(node: &str) -> Nomination {
        Nomination { node: node.into(), by: NominatedBy::Us, since: Now::default() }
    }

    #[test]
    fn a_pod_has_one_nomination_and_nodes_forget_pods() {
        let mut nominator = Nominator::default();
        assert_eq!(nominator.nominate(PodId(1), to("a")), None);
        assert_eq!(nominator.nominate(PodId(2), to("a")), None);
        assert_eq!(nominator.on(&"a".into()), [PodId(1), PodId(2)]);
        let seen = nominator.clone();
        assert_eq!(nominator.nominate(PodId(1), to("b")), Some(to("a")));
        assert_eq!(nominator.nominate(PodId(1), to("b")), None, "the same node changes nothing");
        assert_eq!(nominator.on(&"a".into()), [PodId(2)]);
        assert_eq!(nominator.end(PodId(2)), Some(to("a")));
        assert_eq!(nominator.end(PodId(2)), None);
        assert_eq!(nominator.nodes().count(), 1);
        assert_eq!(nominator.end(PodId(1)), Some(to("b")));
        assert!(nominator.is_empty() && nominator.nodes().next().is_none());
        assert_eq!(seen.len(), 2, "a copy keeps what it saw");
    }
}
