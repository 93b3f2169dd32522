//! PodGroup and Queue `scheduling.incubator.k8s.io/v1alpha1`: kube-batch.
//!
//! kube-batch's definition of this version has no status subresource; this one has. Plugin Proportion shares
//! the cluster out among Queues.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceList;

/// What the group asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "scheduling.incubator.k8s.io",
    version = "v1alpha1",
    kind = "PodGroup",
    namespaced,
    status = "PodGroupStatus",
    derive = "PartialEq",
    doc = "Pods of a batch job that start together.",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase","description":"Where the group is in its life."}"#,
    printcolumn = r#"{"name":"MinMember","type":"integer","jsonPath":".spec.minMember","description":"Members that make a quorum."}"#,
    printcolumn = r#"{"name":"Running","type":"integer","jsonPath":".status.running","description":"Members that run."}"#,
    printcolumn = r#"{"name":"Queue","type":"string","jsonPath":".spec.queue","description":"The queue that it stands in."}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp","description":"Time since creation."}"#
)]
pub struct PodGroupSpec {
    /// How many members make a quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_member: Option<i32>,
    /// The queue that the group stands in, the default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The PriorityClass of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// Where the group is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// Pending, Running or Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What is the matter with the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<PodGroupCondition>>,
    /// How many members run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<i32>,
    /// How many members succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded: Option<i32>,
    /// How many members failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<i32>,
}

/// One thing that is the matter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupCondition {
    /// `Unschedulable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// The round of scheduling that set it.
    #[serde(default, rename = "transitionID", skip_serializing_if = "Option::is_none")]
    pub transition_id: Option<String>,
    /// When the status changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// PodFailed, PodDeleted, NotEnoughResources or NotEnoughTasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the queue may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "scheduling.incubator.k8s.io",
    version = "v1alpha1",
    kind = "Queue",
    status = "QueueStatus",
    derive = "PartialEq",
    doc = "A line in which groups stand.",
    printcolumn = r#"{"name":"Weight","type":"integer","jsonPath":".spec.weight","description":"Share among the queues."}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp","description":"Time since creation."}"#
)]
pub struct QueueSpec {
    /// Part of the cluster, relative to the weights of the other queues; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub weight: Option<i32>,
    /// The most that the pods of the queue may hold, by resource; no limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<ResourceList>,
}

/// How many groups stand in the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// In phase Unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<i32>,
    /// In phase Pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<i32>,
    /// In phase Running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<i32>,
}
