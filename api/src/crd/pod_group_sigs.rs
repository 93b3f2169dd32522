//! PodGroup `scheduling.sigs.k8s.io/v1alpha1`: scheduler-plugins up to 1.24, and Koordinator.
//!
//! Koordinator's own definition has no status subresource: where it is installed, the status is written with the
//! object. There is no minimum of 1 either, because Koordinator has groups of 0.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceList;
use super::pod_group::PodGroupStatus;

/// What the group asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "scheduling.sigs.k8s.io",
    version = "v1alpha1",
    kind = "PodGroup",
    namespaced,
    shortname = "pg",
    shortname = "pgs",
    status = "PodGroupStatus",
    derive = "PartialEq",
    doc = "Pods that are placed together or not at all.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase","description":"Where the group is in its life."}"#,
    printcolumn = r#"{"name":"MinMember","type":"integer","jsonPath":".spec.minMember","description":"Members that make a quorum."}"#,
    printcolumn = r#"{"name":"Running","type":"integer","jsonPath":".status.running","description":"Members that run."}"#,
    printcolumn = r#"{"name":"Succeeded","type":"integer","jsonPath":".status.succeeded","description":"Members that succeeded."}"#,
    printcolumn = r#"{"name":"Failed","type":"integer","jsonPath":".status.failed","description":"Members that failed."}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp","description":"Time since creation."}"#
)]
pub struct PodGroupSpec {
    /// How many members make a quorum; 0 lets every member be placed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_member: Option<i32>,
    /// What the cluster must have free before the group is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_resources: Option<ResourceList>,
    /// How long members wait for the others, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}
