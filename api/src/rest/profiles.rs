//! `/apis/v1/plugins`, `/apis/v1/reasons`, and the endpoints that every plugin has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// A plugin at an extension point.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnabledPlugin {
    /// Name.
    pub name: String,
    /// Weight of its scores; 0 at points that do not score.
    pub weight: i64,
}

/// A profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileBody {
    /// `spec.schedulerName` of its pods.
    pub scheduler_name: String,
    /// 0: all nodes are scored.
    pub percentage_of_nodes_to_score: u8,
    /// Plugins by extension point, in the order in which they run.
    pub points: BTreeMap<String, Vec<EnabledPlugin>>,
}

/// A plugin this binary knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginBody {
    /// Name.
    pub name: String,
    /// What it decides, in a sentence.
    pub summary: String,
    /// Its endpoints, as path templates.
    pub endpoints: Vec<String>,
    /// The kinds that it brings.
    pub kinds: Vec<PluginKind>,
}

/// A kind that a plugin brings, and what the scheduler must be allowed on it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginKind {
    /// Kind and group, joined by a dot.
    pub name: String,
    /// `apiVersion` of its objects.
    pub api_version: String,
    /// Whether nothing is scheduled before the API server serves the kind.
    pub required: bool,
    /// Verbs for a rule of a ClusterRole, by resource.
    pub rights: BTreeMap<String, Vec<String>>,
}

/// `GET /apis/v1/plugins`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plugins {
    /// What state this was read from.
    pub meta: Meta,
    /// Profiles in force.
    pub profiles: Vec<ProfileBody>,
    /// Plugins, in the default order.
    pub plugins: Vec<PluginBody>,
}

/// `GET /apis/v1/plugins/<Plugin>/config`: arguments in force by profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginConfig {
    /// What state this was read from.
    pub meta: Meta,
    /// Plugin.
    pub plugin: String,
    /// Arguments by scheduler name; profiles that do not enable the plugin are absent.
    #[schema(value_type = BTreeMap<String, Object>)]
    pub profiles: BTreeMap<String, serde_json::Value>,
}

/// What a plugin did in one profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCounters {
    /// Pods it refused as a whole (PreEnqueue, PreFilter).
    pub pods_refused: u64,
    /// Times Filter was called.
    pub filter_calls: u64,
    /// Nodes Filter looked at.
    pub nodes_filtered: u64,
    /// Nodes Filter refused.
    pub nodes_refused: u64,
    /// Times Score was called.
    pub score_calls: u64,
    /// Nodes Score looked at; fewer than decided on, because rows of unchanged nodes are reused.
    pub nodes_scored: u64,
    /// Time in Filter and Score, microseconds.
    pub micros: u64,
}

/// `GET /apis/v1/plugins/<Plugin>/stats`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStats {
    /// What state this was read from.
    pub meta: Meta,
    /// Plugin.
    pub plugin: String,
    /// Counters since the start, by scheduler name.
    pub profiles: BTreeMap<String, PluginCounters>,
}

/// `GET /apis/v1/plugins/<Plugin>/schema`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginSchema {
    /// Plugin.
    pub plugin: String,
    /// What it decides, in a sentence.
    pub summary: String,
    /// Extension points it works at.
    pub points: Vec<String>,
    /// JSON schema of its arguments.
    #[schema(value_type = Object)]
    pub args: serde_json::Value,
}

/// A reason in life.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonExample {
    /// What the message is about; empty when it names nothing.
    pub subject: String,
    /// The message as it is rendered.
    pub message: String,
    /// What was the case, with numbers.
    pub situation: String,
}

/// A reason of the registry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonEntryBody {
    /// Code.
    pub code: String,
    /// Plugin that gives it, or `Scheduler`.
    pub plugin: String,
    /// Message; `{}` stands for the subject.
    pub message: String,
    /// What it means.
    pub meaning: String,
    /// What would mend it.
    pub remedy: String,
    /// Who can usually do that.
    pub resolver: String,
    /// For what it is the last word until something changes: `node`, `pod`, `gang` or `nothing`.
    pub terminal_for: String,
    /// What it looks like in life.
    pub example: ReasonExample,
}

/// A code that says how something stands.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateEntryBody {
    /// Code.
    pub code: String,
    /// In which bodies it stands.
    pub where_seen: String,
    /// What it means.
    pub meaning: String,
    /// HTTP status of a request that is refused with it; null when none is.
    #[serde(default)]
    pub status: Option<u16>,
}

/// `GET /apis/v1/reasons`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reasons {
    /// Every reason there is.
    pub reasons: Vec<ReasonEntryBody>,
    /// Every other code that stands in a body.
    pub states: Vec<StateEntryBody>,
}
