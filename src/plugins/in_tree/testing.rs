//! The small cluster of the unit tests, with the derived states of the plugins of this crate that keep one.

use pellucid_framework::PluginFactory;
use pellucid_model::Node;
pub(crate) use pellucid_plugin_helper::testing::*;

pub(crate) fn cluster_of(nodes: impl IntoIterator<Item = Node>) -> TestCluster {
    let factories: [Box<dyn PluginFactory>; 10] = [
        Box::new(crate::node_unschedulable::registration()),
        Box::new(crate::taint_toleration::registration()),
        Box::new(crate::node_ports::registration()),
        Box::new(crate::volume_restrictions::registration()),
        Box::new(crate::node_volume_limits::registration()),
        Box::new(crate::volume_binding::registration()),
        Box::new(crate::pod_topology_spread::registration()),
        Box::new(crate::inter_pod_affinity::registration()),
        Box::new(crate::default_preemption::registration()),
        Box::new(crate::image_locality::registration()),
    ];
    TestCluster::of(&factories, nodes)
}
