//! A hash of the state's content: equal for equal states, in any process and independent of the order of events and
//! of slot numbers.
//!
//! Derived states of plugins are left out, because they follow from nodes, pods and objects.

use pellucid_model::collections::FxHashMap;
use pellucid_model::stable_hash::StableHash;

use crate::state::Cluster;

impl Cluster {
    /// Returns a hash over nodes and pods (with node, stage and nomination), and the number of pods.
    pub fn content_hash(&self) -> (u64, usize) {
        let mut hash = StableHash::default();
        for idx in self.by_name() {
            hash.add(&self.node(*idx));
        }
        let mut pods: Vec<_> = self.pods().collect();
        pods.sort_by(|(_, a), (_, b)| a.pod.key.cmp(&b.pod.key));
        // Pods of one shape share a spec, so its hash, the expensive part, is computed once.
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
