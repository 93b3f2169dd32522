//! One number for what the state says: equal for equal states, whatever the process, the order of events, or the
//! numbers of slots.
//!
//! Plugins' derived states follow from nodes, pods and objects and are not in it.

use pellucid_model::collections::FxHashMap;
use pellucid_model::stable_hash::StableHash;

use crate::state::Cluster;

impl Cluster {
    /// Returns the hash of nodes, of pods with their places, stages and nominations, and the number of pods.
    pub fn content_hash(&self) -> (u64, usize) {
        let mut hash = StableHash::default();
        for idx in self.by_name() {
            hash.add(&self.node(*idx));
        }
        let mut pods: Vec<_> = self.pods().collect();
        pods.sort_by(|(_, a), (_, b)| a.pod.key.cmp(&b.pod.key));
        // Pods of one shape share a spec, which is the long part.
        let mut specs: FxHashMap<_, u64> = FxHashMap::default();
        for (id, record) in &pods {
            let pod = &record.pod;
            let spec = *specs.entry(record.shape).or_insert_with(|| {
                let mut hash = StableHash::default();
                hash.add(&pod.spec);
                hash.finish()
            });
            let node = record.node.map(|node| &self.slot(node).name);
            let nominated = self.nominator().of(*id).map(|nomination| &nomination.node);
            hash.add(&(&pod.key, &pod.uid, node, record.stage.as_str(), nominated));
            hash.add(&(spec, &pod.gates, pod.deleting, pod.member_of()));
        }
        (hash.finish(), pods.len())
    }
}
