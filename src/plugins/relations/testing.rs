//! Helpers shared by the unit tests of spread and affinity: labelled pods on labelled nodes.

use std::sync::Arc;

use pellucid_framework::plugin::{Plugin, PreScored};
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::selector::{LabelSelector, Labels};
use pellucid_model::{Name, Node, Object, Pod, PodKey, PodSpec};

use super::super::testing::{TestCluster, node};

/// Returns a pod with labels in namespace `d`.
pub(crate) fn labelled(name: &str, labels: &[(&str, &str)], spec: PodSpec) -> Pod {
    Pod {
        key: PodKey::new("d", name),
        uid: name.into(),
        scheduler_name: "s".into(),
        labels: pairs(labels),
        spec: Arc::new(spec),
        ..Pod::default()
    }
}

pub(crate) fn pairs(labels: &[(&str, &str)]) -> Labels {
    Labels::new(labels.iter().map(|(k, v)| (Name::new(k), Name::new(v))))
}

/// Returns a node with hostname and zone labels; an empty text leaves the zone out.
pub(crate) fn in_zone(name: &str, zone: &str) -> Node {
    let labels = [("kubernetes.io/hostname", name), ("topology.kubernetes.io/zone", zone)];
    let labels: Vec<_> = labels.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    Node { labels: pairs(&labels), ..node(name) }
}

/// Returns a selector for one label value.
pub(crate) fn selecting(key: &str, value: &str) -> LabelSelector {
    LabelSelector::of_pairs(&[(key.into(), value.into())])
}

/// Returns a term by zone for pods with one label value.
pub(crate) fn zone_term(key: &str, value: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: "topology.kubernetes.io/zone".into(),
        selector: Some(selecting(key, value)),
        ..PodAffinityTerm::default()
    }
}

impl TestCluster {
    /// Adds a pod to the cluster, on a node if it names one. Returns the pod as the cluster stores it.
    pub(crate) fn see(&mut self, pod: Pod) -> Arc<Pod> {
        let key = pod.key.clone();
        self.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
        let id = self.cluster.find_pod(&key).expect("it is there");
        self.cluster.pod(id).expect("it is there").pod.clone()
    }

    /// Adds one pod with a label on each of the nodes.
    pub(crate) fn put(&mut self, (key, value): (&str, &str), nodes: &[&str]) {
        for node in nodes {
            let name = format!("{value}-{}", self.cluster.pods().count());
            self.see(Pod {
                node_name: Some((*node).into()),
                ..labelled(&name, &[(key, value)], PodSpec::default())
            });
        }
    }

    pub(crate) fn object(&mut self, object: Object) {
        self.cluster.apply_object(Arc::new(object), &mut Vec::new());
    }

    /// Returns the raw and the normalised scores of all nodes, in the order of their numbers; `None` when PreScore
    /// skips.
    pub(crate) fn scores(&self, plugin: &dyn Plugin, spec: &PodSpec) -> Option<[Vec<i64>; 2]> {
        let (view, nodes) = (self.view(), self.view().nodes());
        let PreScored::Ready(value) = plugin.pre_score()?.pre_score(view, spec, nodes) else { return None };
        let mut raw = vec![0; nodes.len()];
        plugin.score()?.score(view, spec, &value, nodes, &mut raw);
        let mut normalised = raw.clone();
        plugin.score()?.normalize_all(view, &value, nodes, &mut normalised);
        Some([raw, normalised])
    }
}
