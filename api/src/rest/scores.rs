//! `/apis/v1/scores` and `/apis/v1/filter-failures`: what the flags `s` and `f` record.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// One plugin's share in a node's score.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginScore {
    /// Plugin.
    pub plugin: String,
    /// What the plugin gave; 0 when it skipped.
    pub raw: i64,
    /// 0 to 100.
    pub normalized: i64,
    /// Weight in the profile.
    pub weight: i64,
    /// Weight times normalised.
    pub weighted: i64,
    /// Whether the plugin had nothing to say about the pod.
    pub skipped: bool,
}

/// A node's line in a score table.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreRow {
    /// Place, from 0.
    pub rank: usize,
    /// Node.
    pub node: String,
    /// Sum of the weighted scores.
    pub total: i64,
    /// By plugin name.
    pub plugins: Vec<PluginScore>,
}

/// The recorded score table of one attempt.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreTable {
    /// What decision this is about.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The node that was chosen.
    pub chosen: String,
    /// The same; `rows[0].node`.
    pub winner: String,
    /// `best score`, `only feasible node` or `nominated node`. The latter two have a table of one row.
    pub choice: String,
    /// Number of feasible nodes; `rows` holds the best of them.
    pub feasible_nodes: usize,
    /// How ties are broken.
    pub tie_rule: String,
    /// The best N nodes, N being what flag `s` or a recording asked for at the decision.
    pub rows: Vec<ScoreRow>,
}

/// `GET /apis/v1/scores`: what is recorded, the newest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScoreTables {
    /// What state this was read from.
    pub meta: Meta,
    /// The flag `s` for all pods now; 0 records none.
    pub top_n: usize,
    /// Whether tables are recorded now, of all pods or of some; `GET /apis/v1/debug` says of which.
    pub active: bool,
    /// Tables pushed out of the ring since the start.
    pub dropped: u64,
    /// Why there are no tables: the flag is off, or on since when, and no matching pod was placed since. Null with tables.
    #[serde(default)]
    pub note: Option<String>,
    /// Recorded tables.
    pub tables: Vec<ScoreTable>,
}

/// The refused nodes of one recorded attempt.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterFailure {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// The attempt.
    pub cycle_id: u64,
    /// When, RFC 3339.
    pub decided_at: String,
    /// Node.
    pub node: String,
    /// Plugin that refused first.
    pub plugin: String,
    /// Unschedulable or UnschedulableAndUnresolvable.
    pub code: String,
    /// Message.
    pub message: String,
}

/// `GET /apis/v1/filter-failures`: what flag `f` recorded, the newest attempt first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterFailures {
    /// What state this was read from.
    pub meta: Meta,
    /// The flag `f` for all pods now.
    pub recording: bool,
    /// Whether refused nodes are recorded now, of all pods or of some.
    pub active: bool,
    /// Lines pushed out of the ring, or beyond the bound per attempt, since the start.
    pub dropped: u64,
    /// Why there are no lines: the flag is off, or on since when, and nothing came since. Null with lines.
    #[serde(default)]
    pub note: Option<String>,
    /// One line per refused node.
    pub failures: Vec<FilterFailure>,
}
