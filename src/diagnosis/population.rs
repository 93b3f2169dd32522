//! What the pods of a snapshot are, counted once for all readers: which wait and which could leave, by shape, and the least
//! priority of a placed pod.
//!
//! Whether some pod among many thousands can matter to a pod is asked of the shapes. Which placed pods they are is not said
//! here: who needs that walks over the pods.

use std::sync::OnceLock;

use pellucid_cluster::{Cluster, PodRecord, ShapeId};
use pellucid_model::collections::FxHashMap;
use pellucid_model::{PodId, PodSpec};

/// The pods of a snapshot, counted. Pods that wait and pods with a place are counted when they are first asked about.
#[derive(Default)]
pub(crate) struct Population {
    pending: OnceLock<FxHashMap<ShapeId, Vec<PodId>>>,
    placed: OnceLock<Placed>,
}

/// What is known of placed pods.
#[derive(Default)]
struct Placed {
    /// By shape, one whose end gives its room to others.
    leaving: FxHashMap<ShapeId, PodId>,
    least_priority: Option<i32>,
    /// Of those that come back where they were, as the pods of a DaemonSet do.
    least_priority_that_stays: Option<i32>,
}

fn least_of(least: Option<i32>, priority: i32) -> Option<i32> {
    Some(least.map_or(priority, |least| least.min(priority)))
}

impl Placed {
    fn add(&mut self, id: PodId, record: &PodRecord) {
        let priority = record.pod.priority;
        self.least_priority = least_of(self.least_priority, priority);
        if record.pod.can_leave() {
            self.leaving.entry(record.shape).or_insert(id);
        } else {
            self.least_priority_that_stays = least_of(self.least_priority_that_stays, priority);
        }
    }
}

impl Population {
    fn pending(&self, cluster: &Cluster) -> &FxHashMap<ShapeId, Vec<PodId>> {
        self.pending.get_or_init(|| {
            let mut all: FxHashMap<ShapeId, Vec<PodId>> = FxHashMap::default();
            for (id, record) in cluster.pods().filter(|(_, record)| record.node.is_none()) {
                all.entry(record.shape).or_default().push(id);
            }
            all
        })
    }

    fn placed(&self, cluster: &Cluster) -> &Placed {
        self.placed.get_or_init(|| {
            let mut all = Placed::default();
            for (id, record) in cluster.pods().filter(|(_, record)| record.node.is_some()) {
                all.add(id, record);
            }
            all
        })
    }

    /// Returns whether a placed pod has a lower priority.
    pub(crate) fn has_lower(&self, cluster: &Cluster, priority: i32) -> bool {
        self.placed(cluster).least_priority.is_some_and(|least| least < priority)
    }

    /// Returns whether a placed pod that comes back where it was has a lower priority. Who evicts it has its room.
    pub(crate) fn has_lower_that_stays(&self, cluster: &Cluster, priority: i32) -> bool {
        self.placed(cluster).least_priority_that_stays.is_some_and(|least| least < priority)
    }

    /// Returns the pods of a shape that have no place.
    pub(crate) fn of_shape(&self, cluster: &Cluster, shape: ShapeId) -> &[PodId] {
        self.pending(cluster).get(&shape).map_or(&[], Vec::as_slice)
    }

    /// Returns whether `is_it` holds of the spec of some pod without a place, other than `but`. It is asked once per shape.
    pub(crate) fn any_pending(
        &self,
        cluster: &Cluster,
        but: PodId,
        is_it: impl Fn(&PodSpec) -> bool,
    ) -> bool {
        let one = |pods: &Vec<PodId>| pods.iter().find(|id| **id != but).and_then(|id| cluster.pod(*id));
        self.pending(cluster).values().filter_map(one).any(|record| is_it(&record.pod.spec))
    }

    /// Iterates over the shapes of the placed pods that can leave.
    pub(crate) fn leaving<'c>(
        &'c self,
        cluster: &'c Cluster,
    ) -> impl Iterator<Item = (ShapeId, &'c PodSpec)> {
        let all = self.placed(cluster).leaving.iter();
        all.filter_map(|(shape, id)| Some((*shape, &*cluster.pod(*id)?.pod.spec)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_model::{Name, Node, Pod, PodKey};

    use super::*;

    /// Applies a pod of this spec, placed if a node is named. Returns its id.
    fn add(cluster: &mut Cluster, name: &str, (spec, priority): (PodSpec, i32), node: Option<&str>) -> PodId {
        let pod = Pod {
            key: PodKey::new("ns", name),
            uid: name.into(),
            scheduler_name: "ours".into(),
            priority,
            node_name: node.map(Name::new),
            spec: Arc::new(spec),
            ..Pod::default()
        };
        cluster.apply_pod(Arc::new(pod), &mut Vec::new());
        cluster.find_pod(&PodKey::new("ns", name)).expect("it is in the state")
    }

    fn cluster() -> Cluster {
        let mut cluster = Cluster::new(0, [Name::new("ours")], Vec::new());
        cluster.apply_node(Arc::new(Node { name: "n".into(), ..Node::default() }), &mut Vec::new());
        cluster
    }

    fn small() -> PodSpec {
        PodSpec::default()
    }

    fn large() -> PodSpec {
        PodSpec { n_containers: 2, ..PodSpec::default() }
    }

    #[test]
    fn a_pod_is_not_among_the_others_that_wait() {
        let mut cluster = cluster();
        let first = add(&mut cluster, "a", (small(), 0), None);
        let other = add(&mut cluster, "b", (large(), 0), None);
        add(&mut cluster, "c", (small(), 0), Some("n"));
        let (all, is_small) = (Population::default(), |spec: &PodSpec| spec.n_containers == 0);
        assert!(!all.any_pending(&cluster, first, is_small) && all.any_pending(&cluster, other, is_small));
        let shape = cluster.pod(first).expect("there").shape;
        assert_eq!(all.of_shape(&cluster, shape), [first]);
        let second = add(&mut cluster, "d", (small(), 0), None);
        let all = Population::default();
        assert!(all.any_pending(&cluster, first, is_small), "an equal pod waits as well");
        assert_eq!(all.of_shape(&cluster, shape), [first, second]);
    }

    #[test]
    fn pods_that_stay_do_not_leave_but_have_priorities() {
        let mut cluster = cluster();
        let all = Population::default();
        assert!(!all.has_lower(&cluster, i32::MAX), "nothing is placed");
        add(&mut cluster, "daemon", (PodSpec { is_daemon: true, ..small() }, -5), Some("n"));
        add(&mut cluster, "a", (large(), 7), Some("n"));
        add(&mut cluster, "waits", (small(), -9), None);
        let all = Population::default();
        let leaving: Vec<i64> = all.leaving(&cluster).map(|(_, spec)| i64::from(spec.n_containers)).collect();
        assert_eq!(leaving, [2]);
        assert!(all.has_lower(&cluster, -4) && !all.has_lower(&cluster, -5));
    }
}
