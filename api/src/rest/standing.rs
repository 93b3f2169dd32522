//! What every answer about a pod that is not pending says of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::wakeups::WakeEvent;

/// Why a pod is not pending: where it is, how it ended, or whose it is. The same in every answer about the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotPending {
    /// `PodPlaced` (by this scheduler), `PodPlacedByOthers`, `PodEnded`, `PodDeleting`, `PodDeleted`, `NotOurPod` (it
    /// waits for another scheduler), `PodUnreadable` or `PodNotFound`.
    pub code: String,
    /// The same for people.
    pub message: String,
    /// The node it is on, or was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When it took its place, ended, or was deleted, RFC 3339, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// `Succeeded` or `Failed` of a pod that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What led to the attempt that placed it, when something woke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken_by: Option<WakeEvent>,
    /// `spec.schedulerName`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// The name of a scheduler of ours that is so like `schedulerName` that it may be meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub did_you_mean: Option<String>,
    /// Path of its history, when something is recorded of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<String>,
}
