//! All plugins of this binary: [`registry`] lists them in kube-scheduler's default order; start there.
//!
//! Each plugin of Koordinator's and kube-batch's is a crate in a folder of this one, and those that kube-scheduler has are
//! `in_tree`; `helper` is what several of them share. PURE: plugins read a `View` and return values, and perform no I/O. To
//! add a plugin, add its crate and a line in [`registry`].

pub use pellucid_coscheduling as coscheduling;
pub use pellucid_device_share as device_share;
pub use pellucid_elastic_quota as elastic_quota;
use pellucid_framework::PluginFactory;
pub use pellucid_in_tree_plugins::*;
pub use pellucid_load_aware_scheduling as load_aware_scheduling;
pub use pellucid_node_numa_resource as node_numa_resource;
pub use pellucid_plugin_helper::water_filling;
pub use pellucid_proportion as proportion;
pub use pellucid_reservation as reservation;

#[cfg(test)]
mod endpoint_tests;

/// Returns every plugin in this binary, in the order of the default configuration. Filters run in this order, which
/// also orders causes.
pub fn registry() -> Vec<Box<dyn PluginFactory>> {
    vec![
        Box::new(scheduling_gates::registration()),
        Box::new(priority_sort::registration()),
        Box::new(coscheduling::registration()),
        Box::new(node_unschedulable::registration()),
        Box::new(node_name::registration()),
        Box::new(taint_toleration::registration()),
        Box::new(node_affinity::registration()),
        Box::new(node_ports::registration()),
        Box::new(node_resources_fit::registration()),
        Box::new(volume_restrictions::registration()),
        Box::new(node_volume_limits::registration()),
        Box::new(volume_binding::registration()),
        Box::new(volume_zone::registration()),
        Box::new(pod_topology_spread::registration()),
        Box::new(inter_pod_affinity::registration()),
        Box::new(dynamic_resources::registration()),
        Box::new(elastic_quota::registration()),
        Box::new(proportion::registration()),
        Box::new(default_preemption::registration()),
        Box::new(node_resources_balanced_allocation::registration()),
        Box::new(image_locality::registration()),
        Box::new(default_binder::registration()),
        Box::new(node_declared_features::registration()),
        Box::new(reservation::registration()),
        Box::new(load_aware_scheduling::registration()),
        Box::new(node_numa_resource::registration()),
        Box::new(device_share::registration()),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_unique_and_every_plugin_has_a_state() {
        let all = registry();
        assert_eq!(pellucid_framework::registry::check(&all), Ok(()));
        for factory in &all {
            let made = factory.make(&serde_json::Value::Null).expect("defaults are valid");
            assert_eq!(made.name(), factory.name());
            assert_eq!(factory.endpoints()[0].path, "state", "{}", factory.name());
            assert!(made.score().is_some() == (factory.default_weight() > 0), "{}", factory.name());
            assert_eq!(factory.args_schema()["type"], "object");
        }
    }

    #[test]
    fn unknown_arguments_are_refused_everywhere() {
        for factory in registry() {
            let typed = json!({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "X"});
            assert!(factory.make(&typed).is_ok(), "{}", factory.name());
            let Err(problems) = factory.make(&json!({"nonsense": 1})) else { panic!("{}", factory.name()) };
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].field, "nonsense");
            assert!(factory.make(&json!([1])).is_err(), "{}", factory.name());
        }
    }
}
