//! `/apis/v1/evictions` and `/apis/v1/explain/pods/:namespace/:name/evictions`: who was evicted for whom.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::{ReasonBody, Shortfall};
use super::standing::NotPending;

/// What a node lacked for a pod when the pod was refused there.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lacked {
    /// The plugin that refused the pod on the node.
    pub plugin: String,
    /// Its reasons.
    pub reasons: Vec<ReasonBody>,
    /// Numbers, where something countable was lacking.
    pub shortfalls: Vec<Shortfall>,
    /// The same for people.
    pub text: String,
}

/// One pod that had to go for another one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// When it was decided, RFC 3339.
    #[schema(format = DateTime)]
    pub at: String,
    /// `Preemption`, or `GangPreemption` when the preemptor's gang preempts as one.
    #[serde(rename = "type")]
    pub kind: String,
    /// The victim, `namespace/name`, or an object such as `Reservation r1`.
    pub victim: String,
    /// uid of the victim.
    pub victim_uid: String,
    /// Priority of the victim.
    pub victim_priority: i32,
    /// The node that the victim was on.
    pub node: String,
    /// The preemptor, `namespace/name`.
    pub preemptor: String,
    /// uid of the preemptor.
    pub preemptor_uid: String,
    /// Priority of the preemptor.
    pub preemptor_priority: i32,
    /// The gangs, `namespace/name`, whose members preempt as one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gangs: Vec<String>,
    /// The plugin that chose the victim; empty when it went for a member of a gang without a search of its own.
    pub plugin: String,
    /// Scheduling cycle of the decision.
    pub cycle: u64,
    /// What the node lacked for the preemptor, with the victims still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacked: Option<Lacked>,
    /// Whether it went beyond what a PodDisruptionBudget allows.
    pub violates_budget: bool,
    /// How far the eviction is: `ordered`, `terminating`, `gone`, `cancelled` (the victim was not bound yet: its
    /// placement was taken back) or `refused` (the API server did not delete it).
    pub state: String,
    /// When it entered that state, RFC 3339; absent when that happened after the preemption had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub state_since: Option<String>,
    /// Whether the eviction counts as this preemption's. Not when the pod was on its way already.
    pub counted: bool,
    /// What became of the preemption: `bound`, or why the eviction was for nothing. Absent while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// All of that in a sentence.
    pub message: String,
}

/// `GET /apis/v1/evictions`: the evictions of preemptions under way and of the last 256 that ended, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evictions {
    /// What state this was read from; `truncated` when there are more than are listed.
    pub meta: Meta,
    /// Number of evictions that are remembered.
    pub count: usize,
    /// The evictions, at most 1,000.
    pub evictions: Vec<Eviction>,
}

/// `GET /apis/v1/explain/pods/:namespace/:name/evictions`: the evictions of one pod, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodEvictions {
    /// What state this was read from; `truncated` when there are more than are listed.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// In a sentence.
    pub summary: String,
    /// Its evictions, at most 1,000.
    pub events: Vec<Eviction>,
    /// Where the pod is, or how it ended, when it is not pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}
