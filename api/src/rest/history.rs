//! `/apis/v1/history` and `/apis/v1/events`: the contents of the flight recorder.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::standing::NotPending;

/// What happened to a pod, once or several times in a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Its number in the feed. Repeats of one reason share an entry, which gets a new number with each.
    pub id: u64,
    /// Added, Gated, Refused, Placed, Bound, Released, Evicted (its deletion was ordered for another pod), TakenBack (its
    /// placement was given up for another pod), PreemptionEnded, Deleting, Deleted, Ended or Unreadable. Of a Reservation
    /// also OwnerCame, OwnerLeft, Expired, Preempted, NotPlaceable and Deleted.
    pub kind: String,
    /// When it happened first, RFC 3339.
    #[schema(format = DateTime)]
    pub first: String,
    /// When it happened last.
    #[schema(format = DateTime)]
    pub last: String,
    /// How often.
    pub count: u32,
    /// The last attempt among them, or the one before it happened.
    pub cycle_id: u64,
    /// The node it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Who caused it, as `namespace/name`: the preemptor of an evicted pod, or the owner that came to a Reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Codes of the reasons, each once. Of an eviction: those for which the node refused the preemptor.
    pub codes: Vec<String>,
    /// The pods that had to go for it, as `namespace/name`, of a preemption that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
    /// In words, of the last time.
    pub message: String,
    /// Hash of the decision: pod and node, or pod and reasons with their numbers. Equal decisions have equal ones, in
    /// every process. Absent when nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_hash: Option<String>,
}

/// `GET /apis/v1/history/pods/:namespace/:name`: what is recorded of a pod, the oldest first. Pods of one name in
/// turn share a history. `GET /apis/v1/history/objects/:kind/:name` has the same of an object that is scheduled as a pod is,
/// such as a Reservation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodHistory {
    /// What state this was read from; `truncated` when the pod's beginning was pushed out.
    pub meta: Meta,
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Entries.
    pub entries: Vec<HistoryEntry>,
    /// Entries of all pods that were pushed out since the start.
    pub dropped: u64,
    /// The oldest id in the recorder.
    pub lowest_id: u64,
    /// The newest one.
    pub highest_id: u64,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}

/// A line of `GET /apis/v1/events`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedLine {
    /// Its number, rising: what to ask for next is `since` this one. Absent from marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// When it happened, the last time, RFC 3339. Absent from marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// As in a history; of gangs GangPlaced, GangWaiting, GangRefused or GangReleased; NotRecorded while the recorder
    /// was off. Marks: Gap (entries `from` to `to` were pushed out before they were read; replaced ones are among them)
    /// and Restarted (the cursor is of another process; how much is missing is unknown, and the feed begins anew).
    pub kind: String,
    /// The pod it is about, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The gang it is about, the first of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// The object it is about, which is scheduled as a pod is, as `kind/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The node it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Who caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Codes of the reasons, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
    /// In words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How often it happened in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// When it happened first, if more than once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub first: Option<String>,
    /// The id of the entry whose place this one takes: the same, one time less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u64>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_id: Option<u64>,
    /// Hash of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_hash: Option<String>,
    /// The first id of a mark: what came behind the cursor. Absent when the cursor is beyond the newest id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The last one of it: after a restart the one before the first of this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}
