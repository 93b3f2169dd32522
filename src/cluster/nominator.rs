//! The nominator: which pending pods are nominated to which nodes.
//!
//! A nomination reserves room on a node for a pod that is not there yet. Preemption makes nominations, and so does
//! anybody who writes `status.nominatedNodeName`. The nominated pod's requests are looked up in the state, so it counts
//! in full in every stage of the queue. Nodes are keyed by name, because a nomination may name a node that does not
//! exist.
//!
//! What we write to `status.nominatedNodeName` comes back through the watch, possibly after we have decided anew. The
//! nominator therefore remembers each ordered value until the watch shows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::collections::FxHashMap;
use pellucid_model::{Name, Now, PodId};
use smallvec::SmallVec;

pellucid_model::named! {
    /// Who made a nomination; named as in the REST API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum NominatedBy {
        /// Our own preemption.
        Us = "preemption",
        /// Somebody else, by writing `status.nominatedNodeName`.
        Others = "status",
    }
}

/// A pod's nomination to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nomination {
    /// Name of the node, which need not exist.
    pub node: Name,
    /// Who made it.
    pub by: NominatedBy,
    /// When it was made.
    pub since: Now,
}

/// Values ordered for one pod's `status.nominatedNodeName` that the watch has not shown yet, newest last.
type Echoes = SmallVec<[Option<Name>; 2]>;

/// Echoes remembered per pod. Waiting writes are merged, so there are hardly ever more.
const MOST_ECHOES: usize = 4;

/// All nominations, part of [`Cluster`](super::Cluster). Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Nominator {
    echoes: Arc<FxHashMap<PodId, Echoes>>,
    by_pod: Arc<FxHashMap<PodId, Nomination>>,
    by_node: Arc<BTreeMap<Name, SmallVec<[PodId; 2]>>>,
}

impl Nominator {
    /// Nominates a pod. Returns the nomination that this replaces; changes nothing when the node is the same.
    #[inline]
    pub fn nominate(&mut self, pod: PodId, nomination: Nomination) -> Option<Nomination> {
        if self.of(pod).is_some_and(|known| known.node == nomination.node) {
            return None;
        }
        let before = self.end(pod);
        Arc::make_mut(&mut self.by_node).entry(nomination.node.clone()).or_default().push(pod);
        Arc::make_mut(&mut self.by_pod).insert(pod, nomination);
        before
    }

    /// Ends a pod's nomination and returns it, or `None` when the pod is not nominated.
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

    /// Returns the value that was last ordered to be written for a pod whose object shows `known` now: `known` if none is
    /// under way.
    pub fn written<'a>(&'a self, pod: PodId, known: Option<&'a Name>) -> Option<&'a Name> {
        self.echoes.get(&pod).and_then(|echoes| echoes.last()).map_or(known, Option::as_ref)
    }

    /// Records that `value` was ordered to be written for a pod whose object shows `known` now.
    pub fn expect_echo(&mut self, pod: PodId, known: Option<&Name>, value: Option<Name>) {
        if self.written(pod, known) == value.as_ref() {
            return;
        }
        let echoes = Arc::make_mut(&mut self.echoes).entry(pod).or_default();
        if echoes.len() == MOST_ECHOES {
            echoes.remove(0);
        }
        echoes.push(value);
    }

    /// Returns whether `value`, which the watch now shows for a pod, is one that we ordered. Writes are carried out in
    /// order and some are merged, so values ordered before it are no longer expected either.
    pub fn take_echo(&mut self, pod: PodId, value: Option<&Name>) -> bool {
        let expected = self.echoes.get(&pod).and_then(|e| e.iter().position(|e| e.as_ref() == value));
        let Some(at) = expected else { return false };
        let all = Arc::make_mut(&mut self.echoes);
        if let Some(echoes) = all.get_mut(&pod) {
            echoes.drain(..=at);
            if echoes.is_empty() {
                all.remove(&pod);
            }
        }
        true
    }

    /// Forgets the values ordered for a pod that left the state.
    #[inline]
    pub fn forget_echoes(&mut self, pod: PodId) {
        if self.echoes.contains_key(&pod) {
            Arc::make_mut(&mut self.echoes).remove(&pod);
        }
    }

    /// Returns a pod's nomination, or `None` when the pod is not nominated.
    #[inline]
    pub fn of(&self, pod: PodId) -> Option<&Nomination> {
        self.by_pod.get(&pod)
    }

    /// Returns the pods nominated to a node, in the order of their nominations.
    #[inline]
    pub fn on(&self, node: &Name) -> &[PodId] {
        self.by_node.get(node).map_or(&[], |pods| pods)
    }

    /// Iterates over nodes with nominated pods, sorted by node name.
    #[inline]
    pub fn nodes(&self) -> impl Iterator<Item = (&Name, &[PodId])> {
        self.by_node.iter().map(|(node, pods)| (node, pods.as_slice()))
    }

    /// Returns the number of nominated pods.
    #[inline]
    pub fn len(&self) -> usize {
        self.by_pod.len()
    }

    /// Returns whether no pod is nominated.
    #[inline]
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

    #[test]
    fn what_was_written_is_known_again_in_its_order() {
        let (mut nominator, a, b): (Nominator, Name, Name) = (Nominator::default(), "a".into(), "b".into());
        let pod = PodId(1);
        nominator.expect_echo(pod, None, None);
        assert!(!nominator.take_echo(pod, None), "nothing changes, so nothing comes back");
        nominator.expect_echo(pod, None, Some(a.clone()));
        nominator.expect_echo(pod, None, None);
        nominator.expect_echo(pod, None, Some(b.clone()));
        nominator.expect_echo(pod, None, Some(b.clone()));
        assert!(!nominator.take_echo(pod, Some(&"c".into())), "somebody else's");
        assert!(nominator.take_echo(pod, None), "the first two may have been one write");
        assert!(!nominator.take_echo(pod, Some(&a)));
        assert!(nominator.take_echo(pod, Some(&b)));
        assert!(!nominator.take_echo(pod, Some(&b)));
        nominator.expect_echo(pod, Some(&b), Some(a.clone()));
        nominator.forget_echoes(pod);
        assert!(!nominator.take_echo(pod, Some(&a)));
        assert!(nominator.echoes.is_empty());
    }
}
