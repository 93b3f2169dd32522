//! Which state an explanation comes from, and how old it is; not what was explained.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The part of a body that says when, from what, and by whom the rest was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Version of the API that the body is of.
    #[serde(default)]
    #[schema(example = "pellucid.dev/v1")]
    pub api_version: String,
    /// Name of the body's type in the OpenAPI document.
    #[serde(default)]
    pub kind: String,
    /// Of a list that goes on: what `continue=` takes to get the page after this one. It reads the same state, which is
    /// kept for a minute after the last page; after that the answer is 410.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#continue: Option<String>,
    /// Of a list that goes on: number of items on the pages after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<usize>,
    /// When this body was made, RFC 3339.
    #[schema(format = DateTime, example = "2026-01-02T03:04:05Z")]
    pub generated_at: String,
    /// When the decision it tells of was taken, RFC 3339; absent when it tells of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub decided_at: Option<String>,
    /// The cycle that took the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_id: Option<u64>,
    /// The generation of the published state that was read. `?minGeneration=` asks for at least this one.
    pub snapshot_generation: u64,
    /// Whether the instance that answered is the one that schedules.
    pub leader: bool,
    /// The state has moved on since the decision in a way that may change it: a node, or the pods on one. Other objects, such
    /// as volumes, are not looked at for this. `refresh=true` asks anew.
    #[serde(default)]
    pub stale: bool,
    /// The answer was computed anew for this request instead of being taken from the record.
    #[serde(default)]
    pub refreshed: bool,
    /// The pod whose verdict this one shares, as `namespace/name`: it is alike, was tried before, and nothing had changed
    /// in between, so the account of the nodes was taken over. Of several the first that still waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inherited_from: Option<String>,
    /// Part of the record had been pushed out by newer ones.
    #[serde(default)]
    pub truncated: bool,
    /// What it cost to make this body, in microseconds, on a thread of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

impl Meta {
    /// The version of this API.
    pub const API_VERSION: &str = "pellucid.dev/v1";
}
