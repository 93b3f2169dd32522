//! PodGroup and Queue `scheduling.sigs.dev/v1alpha2`: kube-batch.
//!
//! Has a status subresource, as kube-batch's definition of this version. Plugin Proportion shares the
//! cluster out among Queues.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceList;
use super::kube_batch_incubator::{PodGroupStatus, QueueStatus};

/// What the group asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "scheduling.sigs.dev",
    version = "v1alpha2",
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

/// What the queue may have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "scheduling.sigs.dev",
    version = "v1alpha2",
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
