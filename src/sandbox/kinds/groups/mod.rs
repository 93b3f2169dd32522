//! The kinds of gangs: the native PodGroup and Workload, and the custom resources of other schedulers.
//!
//! The files hold the rows of the catalogue with their rules, like `storage` for volumes; the custom resources are
//! installed as definitions at the start. A cluster may serve any of them or none, so either part can be left out.
//! Nothing here writes a status, which is a scheduler's task. The protection of PodGroups in use is in
//! `controllers/pod_groups.rs`.

mod admission;
mod printers;
mod rows;
mod validate;

use serde_json::Value;

pub(crate) use admission::{admit, drop_unserved, is_user, keep_priority, unprotect};
pub(crate) use rows::ROWS;

pub(crate) const POD_GROUPS: &str = "podgroups.scheduling.k8s.io";
const WORKLOADS: &str = "workloads.scheduling.k8s.io";
/// API group of the native kinds.
pub(crate) const GROUP: &str = "scheduling.k8s.io";
/// API version of the native kinds.
pub(crate) const VERSION: &str = "v1alpha2";

/// Which kinds of gangs a sandbox serves. Real clusters serve few of them: the native ones are off by default, and
/// custom resources exist only where they are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gangs {
    /// Whether `scheduling.k8s.io/v1alpha2` PodGroups and Workloads are served, and pods keep `spec.schedulingGroup`.
    pub native: bool,
    /// Whether the definitions of `api/crds` are installed.
    pub custom: bool,
}

impl Default for Gangs {
    fn default() -> Self {
        Self { native: true, custom: true }
    }
}

/// Returns the definitions of the custom resources.
pub(crate) fn definitions() -> Vec<Value> {
    pellucid_api::definitions::DEFINITIONS.map(definition).into()
}

/// Reads one of the definitions of [`pellucid_api::definitions`].
pub fn definition(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("a definition is YAML")
}
