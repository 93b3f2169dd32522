//! The claims used by pods on nodes, with the number of pods per node.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_cluster::DerivedState;
use pellucid_cluster::derived::Placed;
use pellucid_model::{CowMap, NodeIdx, Pod};

use super::super::claims::{ClaimKey, named};

/// Number of pods per node that use a claim.
pub(super) type PerNode = BTreeMap<NodeIdx, u32>;

/// Holds the claims in use, as derived state of the cluster. Claims of generic ephemeral volumes are excluded, because
/// no other pod can name them.
#[derive(Clone, Default)]
pub struct ClaimsInUse {
    claims: CowMap<ClaimKey, Arc<PerNode>>,
}

impl ClaimsInUse {
    /// Returns whether a placed pod uses a claim.
    pub(super) fn is_used(&self, claim: &ClaimKey) -> bool {
        self.claims.get(claim).is_some()
    }

    /// Iterates over the nodes whose pods use a claim.
    pub(super) fn nodes(&self, claim: &ClaimKey) -> impl Iterator<Item = NodeIdx> {
        self.claims.get(claim).into_iter().flat_map(|nodes| nodes.keys().copied())
    }

    /// Iterates over the claims in use, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ClaimKey, &PerNode)> {
        self.claims.iter().map(|(claim, nodes)| (claim, &**nodes))
    }

    fn change(&mut self, node: NodeIdx, pod: &Pod, change: impl Fn(&mut u32)) {
        for mounted in named(&pod.spec) {
            let key = (pod.spec.namespace.clone(), mounted.claim.clone());
            // Remove and reinsert the entry, so that it is copied only when a published snapshot still shares it.
            let mut nodes = self.claims.remove(&key).unwrap_or_default();
            let counts = Arc::make_mut(&mut nodes);
            let count = counts.entry(node).or_default();
            change(count);
            if *count == 0 {
                counts.remove(&node);
            }
            if !counts.is_empty() {
                self.claims.insert(key, nodes);
            }
        }
    }
}

impl DerivedState for ClaimsInUse {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let (node, pod) = (placed.node, placed.pod);
        self.change(node, pod, |count| *count += 1);
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        let (node, pod) = (placed.node, placed.pod);
        self.change(node, pod, |count| *count = count.saturating_sub(1));
    }
}
