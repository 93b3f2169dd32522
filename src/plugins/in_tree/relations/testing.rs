//! Helpers shared by the unit tests of spread and affinity: labelled pods on labelled nodes.

use pellucid_model::Node;
use pellucid_model::relations::PodAffinityTerm;
use pellucid_model::selector::LabelSelector;

use crate::testing::node;
pub(crate) use crate::testing::{labelled, pairs};

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
