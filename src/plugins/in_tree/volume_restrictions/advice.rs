//! Which pods would have to end, wherever they run, so that a pod can have its ReadWriteOncePod claims.
//!
//! Not here: pods on one node whose disks conflict. Like all that is in the way on a node, the core finds those.

use std::collections::BTreeSet;

use pellucid_framework::View;
use pellucid_framework::advice::{Advice, Change, Proposal};
use pellucid_model::{Name, NodeIdx, Now, Pod, PodKey, PodSpec};

use super::requirements::{claims_in_use, uses};
use super::{ClaimsInUse, VolumeRestrictions};

/// Largest number of pods that end.
const MOST_ENDING: usize = 4;

impl Advice for VolumeRestrictions {
    fn sentence(&self, _view: View<'_>, _spec: &PodSpec, _now: Now) -> Option<String> {
        None
    }

    fn proposals_on(&self, view: View<'_>, spec: &PodSpec, _refused: &[NodeIdx]) -> Vec<Proposal> {
        let users: Vec<&Pod> = claims_in_use(view, spec).flat_map(|claim| users(view, spec, claim)).collect();
        let keys: BTreeSet<PodKey> = users.iter().map(|pod| pod.key.clone()).collect();
        if keys.is_empty()
            || keys.len() > MOST_ENDING
            || !users.iter().all(|pod| pod.can_leave() && !pod.deleting)
        {
            return Vec::new();
        }
        let change = Change::End(keys.into_iter().collect());
        vec![Proposal { change, text: String::new(), cost: 0 }]
    }
}

/// Iterates over the placed pods that use a claim.
fn users<'a>(view: View<'a>, spec: &'a PodSpec, claim: &'a Name) -> impl Iterator<Item = &'a Pod> {
    let cluster = view.cluster();
    let key = (spec.namespace.clone(), claim.clone());
    let nodes: Vec<NodeIdx> =
        view.state::<ClaimsInUse>().into_iter().flat_map(|used| used.nodes(&key)).collect();
    let pods = nodes.into_iter().flat_map(|node| cluster.slot(node).pods.iter());
    let pods = pods.filter_map(|id| cluster.pod(*id)).map(|record| &*record.pod);
    pods.filter(move |pod| uses(spec, claim)(pod))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_model::Object;
    use pellucid_model::storage::{AccessModes, PersistentVolumeClaim};

    use super::*;
    use crate::testing::{cluster_of, mounting, node};

    #[test]
    fn the_pods_end_that_use_the_claims_wherever_they_run() {
        let mut cluster = cluster_of([node("a"), node("b")]);
        for (name, access_modes) in [("data", AccessModes::RWOP), ("shared", AccessModes::default())] {
            let claim = PersistentVolumeClaim { access_modes, ..crate::testing::claim(name) };
            cluster.cluster.apply_object(Arc::new(Object::PersistentVolumeClaim(claim)), &mut Vec::new());
        }
        let ends = |cluster: &crate::testing::TestCluster, claim| {
            let proposals = VolumeRestrictions.proposals_on(cluster.view(), &mounting(claim), &[]);
            proposals
                .into_iter()
                .map(|proposal| match proposal.change {
                    Change::End(pods) => pods.iter().map(PodKey::to_string).collect::<Vec<_>>().join(" "),
                    other => panic!("{other:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert!(ends(&cluster, "data").is_empty());
        cluster.place(mounting("data"), "b");
        cluster.place(mounting("shared"), "b");
        assert_eq!(ends(&cluster, "data"), ["d/p1"]);
        assert!(ends(&cluster, "shared").is_empty(), "it is for many pods");
        // Pods that were placed without us.
        (0..MOST_ENDING).for_each(|_| drop(cluster.place(mounting("data"), "a")));
        assert!(ends(&cluster, "data").is_empty(), "too many");
    }
}
