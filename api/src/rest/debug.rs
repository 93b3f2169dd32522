//! `/apis/v1/debug`: what is being recorded and by whom, and who changed which switch.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// Which pods a recording is about; every field that is there must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordingScope {
    /// Label selector over the labels of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Namespace of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Namespace and name of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Namespace and name of the pod's gang.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// `spec.schedulerName` of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// A switch that was set: for all pods without an end, or for some of them and for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// Number; 0 is the raw value of the flag, which is for all pods.
    pub id: u64,
    /// Flag: `s`, `f`, `v` or `log`.
    pub flag: String,
    /// Its value.
    pub value: String,
    /// Whether it is in force.
    pub active: bool,
    /// Which pods; empty: all.
    pub scope: RecordingScope,
    /// Who wanted it; `global` for a raw value.
    pub owner: String,
    /// Where the request came from: address and user agent.
    pub set_by: String,
    /// When it was set, RFC 3339.
    pub set_at: String,
    /// When it ends by itself, RFC 3339; null: never.
    pub expires_at: Option<String>,
    /// Attempts recorded so far.
    pub records: u64,
    /// Attempts it will still record; null: as many as come.
    pub records_left: Option<u64>,
    /// When what it asks for begins to come.
    pub when: String,
}

/// A change of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwitchChange {
    /// Number of the change, ascending.
    pub number: u64,
    /// When, RFC 3339.
    pub at: String,
    /// Who: address and user agent of the request, or `scheduler`.
    pub by: String,
    /// Owner of the recording.
    pub owner: String,
    /// Flag.
    pub flag: String,
    /// Number of the recording; 0 is the raw value.
    pub id: u64,
    /// Value before.
    pub from: String,
    /// Value afterwards.
    pub to: String,
    /// `set`, `renewed`, `ended`, `expired`, `used up` or `over budget`.
    pub why: String,
    /// Which pods it was about.
    pub scope: RecordingScope,
}

/// What the diagnosis has cost since the start, in seconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosisCost {
    /// Attempts, the diagnosis in them included.
    pub cycle_seconds: f64,
    /// What is always on, estimated from one attempt in 1021.
    pub l0_seconds: f64,
    /// What the flags record, the writing of the log included. A part of `cycleSeconds`.
    pub l1_seconds: f64,
    /// The share of the time of attempts that recording may take within `windowSeconds` before recordings are turned
    /// off, percent; 100: none is. It applies only beyond `freeSeconds`.
    pub budget_percent: u32,
    /// How far back the budget looks, in seconds.
    pub window_seconds: u32,
    /// Time that recording may take within `windowSeconds` whatever its share is.
    pub free_seconds: f64,
    /// Attempts within the last `windowSeconds`, counted while something was recorded.
    pub recent_cycle_seconds: f64,
    /// What recording took of `recentCycleSeconds`.
    pub recent_l1_seconds: f64,
    /// The share that the budget is about: of `recentCycleSeconds`, percent; null when there was no such attempt.
    pub recent_l1_percent: Option<f64>,
    /// The same for people: what took how much, and whether that turns anything off.
    pub note: String,
}

/// `GET /apis/v1/debug`: recordings in force, and the last changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Debug {
    /// What state this was read from.
    pub meta: Meta,
    /// What is in force, in the order of numbers.
    pub active: Vec<Recording>,
    /// The last changes, the newest first.
    pub audit: Vec<SwitchChange>,
    /// Changes that are no longer kept.
    pub audit_dropped: u64,
    /// What the diagnosis has cost.
    pub cost: DiagnosisCost,
}
