//! `/apis/v1/queue`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::OwnerOf;

/// The gang group of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuedGroup {
    /// Its gangs, by name.
    pub gangs: Vec<String>,
    /// Members in this unit.
    pub members: usize,
    /// Members of all gangs that are there for their quorums: in this unit, or placed already. Of each gang no more than
    /// its quorum needs.
    pub have: u32,
    /// Members that the quorums need, added up.
    pub need: u32,
}

/// A unit that waits to be placed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueuedUnit {
    /// Key of the unit: `namespace/name` of its pod, or of the first gang of its group.
    pub key: String,
    /// The gang group, when the unit is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<QueuedGroup>,
    /// The controller of its first pod; absent for a pod without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerOf>,
    /// When its first pod was created, RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// The pods of the unit.
    pub pods: Vec<String>,
    /// Stage: active, backoff, unschedulable or gated.
    pub stage: String,
    /// Place within the stage, from 0.
    pub position: usize,
    /// Priority.
    pub priority: i32,
    /// Scheduler name of its profile.
    pub profile: String,
    /// Attempts so far.
    pub attempts: u32,
    /// When it last entered the queue, RFC 3339: at first, after its gates, or after an attempt.
    pub queued_at: String,
    /// In stage backoff: its last attempt failed with an error, so it is not taken before its backoff ends.
    pub error: bool,
    /// When its backoff ends, RFC 3339; present in stage backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_until: Option<String>,
    /// The plugins that refused it last.
    pub refused_by: Vec<String>,
    /// The events that can wake it, `Resource/Action` each; empty in stages active and backoff.
    pub wakes_on: Vec<String>,
    /// Why it was refused last, in kube-scheduler's grammar; empty before the first attempt.
    pub message: String,
}

/// How many units there are per stage.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct QueueCounts {
    /// Ready to be tried.
    pub active: usize,
    /// Waiting for their backoff to end.
    pub backoff: usize,
    /// Those in backoff whose last attempt failed with an error.
    #[serde(rename = "errorBackoff")]
    pub error_backoff: usize,
    /// Waiting for an event.
    pub unschedulable: usize,
    /// Held before the queue.
    pub gated: usize,
    /// Placed, not yet confirmed by the API server: in no stage.
    #[serde(rename = "inFlight")]
    pub in_flight: usize,
}

/// A unit that is taken before another one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitAhead {
    /// Key of the unit.
    pub key: String,
    /// The gang group, when the unit is one: the key of its first gang.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Stage: active or backoff.
    pub stage: String,
    /// Priority.
    pub priority: i32,
    /// Scheduler name of its profile.
    pub profile: String,
    /// Number of its pods.
    pub size: usize,
    /// What its pods request together, in base units: thousandths of a core, bytes.
    pub request: AheadRequest,
    /// Attempts so far.
    pub attempts: u32,
}

/// What the pods of a unit request together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AheadRequest {
    /// Thousandths of a core.
    pub cpu: i64,
    /// Bytes.
    pub memory: i64,
}

/// `GET /apis/v1/queue`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// What state this was read from.
    pub meta: Meta,
    /// Key of the unit that `?position=` asked about; for a member of a gang that of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Its stage: active, backoff, unschedulable or gated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Number of units ahead of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// What the position means for a unit in its stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position_meaning: Option<String>,
    /// The units that are taken before it if nothing else happens, in their order. Units that wait for an event
    /// or for their gates are ahead of nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Vec<UnitAhead>>,
    /// Counts.
    pub counts: QueueCounts,
    /// Number of units that the filters admit, on all pages.
    #[serde(default)]
    pub count: usize,
    /// Pending units, by stage and then in the order in which they will be taken, unless the request sorts otherwise.
    pub units: Vec<QueuedUnit>,
}
