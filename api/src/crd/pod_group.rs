//! PodGroup `scheduling.x-k8s.io/v1alpha1`: the Coscheduling of scheduler-plugins since 1.25.
//!
//! Releases since 1.26 have no `scheduled`; the field stays here, so that older objects keep it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceList;

/// What the group asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "scheduling.x-k8s.io",
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
    /// How many members make a quorum, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_member: Option<i32>,
    /// What the cluster must have free before the group is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_resources: Option<ResourceList>,
    /// How long members wait for the others, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<i32>,
}

/// Where the group is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// Pending, PreScheduling, Scheduling, Scheduled, Running, Unknown, Finished or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The workloads that the members belong to, as namespace/name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupied_by: Option<String>,
    /// How many members have a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<i32>,
    /// How many members run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<i32>,
    /// How many members succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<i32>,
    /// How many members failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
    /// When the first member was scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_start_time: Option<Time>,
}
