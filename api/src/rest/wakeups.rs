//! `/apis/v1/explain/pods/:namespace/:name/wakeups`: which events a pod waits for, and which its plugins were asked
//! about.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::standing::NotPending;

/// What one plugin waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitsFor {
    /// A plugin that refused the pod.
    pub plugin: String,
    /// The events it listens to, `Resource/Action` each.
    pub events: Vec<String>,
}

/// What one plugin said about an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HintVerdict {
    /// Plugin.
    pub plugin: String,
    /// `Queue`: the pod may fit now; `Skip`: the event does not help it.
    pub verdict: String,
}

/// An event that the pod's plugins were asked about, or another reason to try the pod again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WakeEvent {
    /// When, RFC 3339.
    pub at: String,
    /// `Resource/Action`; `UnschedulableTimeout` when the pod had waited for as long as a pod may,
    /// `ForceActivate` when a plugin asked for it, `WhilePlanned` when it came while a gang was being planned.
    pub event: String,
    /// What it is about: the name of a node, `namespace/name` of a pod, `Kind name` of something else; empty
    /// for events about nothing in particular.
    pub object: String,
    /// What each plugin said that was asked.
    pub verdicts: Vec<HintVerdict>,
    /// Whether the pod was woken.
    pub woke: bool,
}

/// How many events of a kind came while no pod at all waited for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SkippedEvents {
    /// `Resource/Action`.
    pub event: String,
    /// How many since the start.
    pub count: u64,
}

/// `GET /apis/v1/explain/pods/:namespace/:name/wakeups`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodWakeups {
    /// What state and decision this is about.
    pub meta: Meta,
    /// The pod, `namespace/name`.
    pub pod: String,
    /// Where it is: active, backoff, unschedulable or gated in the queue; reserved, waiting, permitted,
    /// pre-binding, binding or bound on a node; quarantined when it cannot be read.
    pub stage: String,
    /// What that means for the pod, in a sentence.
    pub summary: String,
    /// The plugins that refused it last, or that hold it back.
    pub refused_by: Vec<String>,
    /// What those plugins wait for. Empty when nothing has to happen any more.
    pub waits_for: Vec<WaitsFor>,
    /// Until when it is not tried again because of its last attempt, RFC 3339; present while that lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_until: Option<String>,
    /// When it is tried again even if nothing happens, RFC 3339; present in stage unschedulable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// What led to its last or next attempt, when something woke it. Of a pod on a node: to the one that placed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken_by: Option<WakeEvent>,
    /// The newest events that its plugins were asked about since it was refused, the newest first; at most 16.
    pub events: Vec<WakeEvent>,
    /// Events that nobody was asked about because no pod waited for their kind, since the start.
    pub skipped: Vec<SkippedEvents>,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}
