//! The kinds of gangs: the native PodGroup and Workload, and the custom resources of other schedulers.
//!
//! Rows of the catalogue with their rules, as `storage` has them for volumes; the custom resources are installed
//! as definitions at the start. A cluster may serve any of them or none, so either half can be left out. Nothing
//! here writes a status: that is a scheduler's business. PodGroups that go while pods use them are in
//! `controllers/pod_groups.rs`.

mod admission;
mod printers;
mod rows;
mod validate;

use serde_json::Value;

pub(super) use admission::{admit, drop_unserved, is_user, keep_priority, unprotect};
pub(super) use rows::ROWS;

/// The table of native PodGroups.
pub(super) const POD_GROUPS: &str = "podgroups.scheduling.k8s.io";
/// The table of native Workloads.
const WORKLOADS: &str = "workloads.scheduling.k8s.io";
/// The group of both.
pub(super) const GROUP: &str = "scheduling.k8s.io";
/// The version of both.
pub(super) const VERSION: &str = "v1alpha2";

/// Which kinds of gangs a sandbox serves. Real clusters serve few of them: the native ones are off by default, and
/// custom resources are there when somebody installed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gangs {
    /// PodGroup and Workload `scheduling.k8s.io/v1alpha2`, and `spec.schedulingGroup` of pods.
    pub native: bool,
    /// The definitions of `api/crds`.
    pub custom: bool,
}

impl Default for Gangs {
    fn default() -> Self {
        Self { native: true, custom: true }
    }
}

/// Returns the definitions of the custom resources, as objects.
pub(super) fn definitions() -> Vec<Value> {
    let definitions = pellucid_api::definitions::DEFINITIONS;
    definitions.map(|text| serde_saphyr::from_str(text).expect("a definition is YAML")).into()
}
