//! The plugins that kube-scheduler has, one folder each, without those for gangs and queues, which are crates of their own.
//!
//! PURE: plugins read a `View` and return values, and perform no I/O. No plugin knows another.
//!
//! Modules shared by several of them:
//! - `claims` looks up a pod's volume claims;
//! - `node_mask` stores a set of nodes as bits;
//! - `relations` counts placed pods by label class and node, and maps nodes to topology domains.

use pellucid_framework::args;

mod claims;
mod node_mask;
mod relations;
#[cfg(test)]
mod testing;

pub mod default_binder;
pub mod default_preemption;
pub mod dynamic_resources;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_name;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_topology_spread;
pub mod priority_sort;
pub mod scheduling_gates;
pub mod taint_toleration;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;
