//! A hash of the state's content: equal for equal states, in any process and independent of the order of events and
//! of slot numbers.
//!
//! It adds up the hashes of all nodes and pods, so nothing is sorted. The hash of a node object, which is long, is kept
//! beside the object ([`NodeHash`]). Derived states of plugins are left out, because they follow from nodes, pods and
//! objects.

use std::sync::{Arc, OnceLock};

use pellucid_model::collections::FxHashMap;
use pellucid_model::stable_hash::StableHash;
use pellucid_model::{Node, PodId};

use crate::shapes::ShapeId;
use crate::state::{Cluster, PodRecord};

/// The hash of a node object, worked out by the first reader and shared by all snapshots that have the object.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeHash(Arc<OnceLock<(Arc<Node>, u64)>>);

impl NodeHash {
    /// Returns the hash of the object. One that was kept of another object is not heeded.
    fn of(&self, node: &Arc<Node>) -> u64 {
        let hash = || {
            let mut hash = StableHash::default();
            hash.add(node);
            hash.finish()
        };
        match self.0.get_or_init(|| (node.clone(), hash())) {
            (kept, hash) if Arc::ptr_eq(kept, node) => *hash,
            _ => hash(),
        }
    }
}

impl Cluster {
    /// Returns a hash over nodes and pods (with node, stage and nomination), and the number of pods.
    pub fn content_hash(&self) -> (u64, usize) {
        let slots = self.by_name().iter().map(|idx| self.slot(*idx));
        let nodes = slots.filter_map(|slot| Some(slot.hash.of(slot.node.as_ref()?)));
        let nodes = nodes.fold(0, u64::wrapping_add);
        let (mut pods, mut n) = (0u64, 0);
        // Pods of one shape share a spec, so its hash, the expensive part, is computed once.
        let mut specs: FxHashMap<ShapeId, u64> = FxHashMap::default();
        for (id, record) in self.pods() {
            let spec = *specs.entry(record.shape).or_insert_with(|| {
                let mut hash = StableHash::default();
                hash.add(&record.pod.spec);
                hash.finish()
            });
            pods = pods.wrapping_add(self.pod_hash(id, record, spec));
            n += 1;
        }
        let mut hash = StableHash::default();
        hash.add(&(nodes, pods, n));
        (hash.finish(), n)
    }

    fn pod_hash(&self, id: PodId, record: &PodRecord, spec: u64) -> u64 {
        let pod = &record.pod;
        let node = record.node.map(|node| self.node_name(node).as_str());
        let nominated = self.nominator().of(id).map(|nomination| nomination.node.as_str());
        let mut hash = StableHash::default();
        let texts = [&*pod.key.namespace, &*pod.key.name, &*pod.uid, record.stage.as_str()];
        texts.into_iter().for_each(|text| hash.add_text(text));
        for name in [node, nominated] {
            hash.add_text(if name.is_some() { "on" } else { "" });
            hash.add_text(name.unwrap_or_default());
        }
        hash.add_number(spec);
        if !pod.gates.is_empty() || pod.deleting || pod.member_of().is_some() {
            hash.add(&(&pod.gates, pod.deleting, pod.member_of()));
        }
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::Name;

    use super::*;

    fn node(ready: bool) -> Arc<Node> {
        Arc::new(Node { name: Name::new("n"), ready, ..Node::default() })
    }

    #[test]
    fn the_hash_of_another_object_is_never_given() {
        let (old, new) = (node(false), node(true));
        let kept = NodeHash::default();
        let of_old = kept.of(&old);
        assert_eq!(kept.of(&old), of_old);
        assert_eq!(kept.of(&new), NodeHash::default().of(&new));
        assert_ne!(kept.of(&new), of_old);
    }

    #[test]
    fn a_changed_node_changes_the_hash_and_a_copy_keeps_what_it_saw() {
        let mut cluster = Cluster::default();
        let mut events = Vec::new();
        cluster.apply_node(node(false), &mut events);
        let (seen, before) = (cluster.fork(), cluster.content_hash());
        cluster.apply_node(node(true), &mut events);
        assert_ne!(cluster.content_hash(), before);
        assert_eq!(seen.content_hash(), before);
        cluster.apply_node(node(false), &mut events);
        assert_eq!(cluster.content_hash(), before, "equal states have equal hashes");
    }
}
