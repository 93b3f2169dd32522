//! The plugins, one folder each. [`registry`] lists them in kube-scheduler's default order; start there.
//!
//! PURE: plugins read a `View` and return values, and perform no I/O. To add a plugin, add a folder and a line in
//! [`registry`].
//!
//! Modules shared by several plugins:
//! - `claims` looks up a pod's volume claims;
//! - `describing` words what nodes do not fulfil;
//! - `koordinator` reads Koordinator's priority classes of pods;
//! - `listing` bounds the lists in endpoint responses;
//! - `node_mask` stores a set of nodes as bits;
//! - `relations` counts placed pods by label class and node, and maps nodes to topology domains;
//! - `scored` selects the resources and amounts that the resource scores use;
//! - `water_filling` shares an amount among claimants with guarantees, weights and requests.

use pellucid_framework::{PluginFactory, args};

mod claims;
mod describing;
#[cfg(test)]
mod endpoint_tests;
mod koordinator;
mod listing;
mod node_mask;
mod relations;
mod scored;
#[cfg(test)]
mod testing;

pub mod coscheduling;
pub mod default_binder;
pub mod default_preemption;
pub mod device_share;
pub mod dynamic_resources;
pub mod elastic_quota;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod load_aware_scheduling;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_name;
pub mod node_numa_resource;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod priority_sort;
pub mod proportion;
pub mod reservation;
pub mod scheduling_gates;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;
pub mod water_filling;

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
