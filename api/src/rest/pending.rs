//! `/apis/v1/summary/pending`: the number of pending pods, by what keeps them from being placed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// The pods that are alike in every dimension that was asked for. Dimensions that were not are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingRow {
    /// Code of the reason that keeps them, each pod's first: what concerns the pod, else what refuses most nodes. One of
    /// the registry (`/apis/v1/reasons`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The plugin that gave the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The resource that the reason is about; empty when it is about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Who can usually resolve the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolver: Option<String>,
    /// Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `spec.schedulerName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Where they stand: active, backoff, unschedulable, gated, in-flight (placed, not confirmed) or quarantined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Gang, `namespace/name`; empty for pods of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Controller, `Kind/name`; empty for pods without one. Its namespace is a dimension too when this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Pods with equal specs: the requests of the shape as quantities, by resource name and with commas. Two shapes may
    /// request the same. By `ownerOrShape` it is absent for pods with a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// Their groups that plugins know, of those that were asked for, by what they are called: `quota`, `queue`; empty
    /// for pods of none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// Number of pods.
    pub pods: usize,
    /// Number of units of the queue that they are in: a gang that is planned as one is one. A unit whose pods are in
    /// several rows counts in each.
    pub units: usize,
    /// The most nodes that refuse one of the pods for the reason.
    pub nodes: usize,
    /// Pods times nodes: the sum over the pods of how many nodes refuse each for the reason.
    pub occurrences: usize,
    /// When the oldest of the pods was created, RFC 3339; empty where none of them can be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub oldest: String,
    /// The least priority among the pods.
    #[serde(default)]
    pub min_priority: i32,
    /// The greatest priority among the pods.
    #[serde(default)]
    pub max_priority: i32,
    /// What each of the pods requests, as quantities; absent when they request different amounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<BTreeMap<String, String>>,
    /// The first of the pods by name, `namespace/name`: its explanation is that of an example.
    #[serde(default)]
    pub example: String,
    /// Code of the reason that keeps most of the pods.
    #[serde(default)]
    pub key_reason: String,
    /// Code of the outlook of most of the pods; empty where it was not worked out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outlook: String,
}

/// `GET /apis/v1/summary/pending`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingSummary {
    /// What state this was read from.
    pub meta: Meta,
    /// The dimensions of the rows.
    pub by: Vec<String>,
    /// Number of rows on all pages.
    #[serde(default)]
    pub count: usize,
    /// Number of pods: the sum of the rows' on all pages. With filters, those that they admit. They are the pods of our profiles that the API server shows as Pending and
    /// without a node, but for those that are being deleted.
    pub total_pending: usize,
    /// Rows, those with most pods first unless the request sorts otherwise: by their oldest pod, their greatest priority,
    /// their first pod by name.
    pub rows: Vec<PendingRow>,
}
