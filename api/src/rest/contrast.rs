//! `/apis/v1/explain/placements/:namespace/:name?versus=NODE`: why a pod is on one node rather than another.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::ReasonBody;

/// Why one node does not take a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRefusal {
    /// The plugin that refused first.
    pub plugin: String,
    /// Unschedulable, or UnschedulableAndUnresolvable when removing pods could not help.
    pub code: String,
    /// Its reasons.
    pub reasons: Vec<ReasonBody>,
    /// The reasons in kube-scheduler's words.
    pub message: String,
    /// What the plugin says of the node, with its own numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A number of each of the two nodes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ScorePair {
    /// The chosen node's.
    pub chosen: i64,
    /// The other one's.
    pub versus: i64,
}

/// What one plugin gave the two nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginGap {
    /// Plugin.
    pub plugin: String,
    /// Weight in the profile.
    pub weight: i64,
    /// Whether the plugin had nothing to say about the pod.
    pub skipped: bool,
    /// What the plugin gave.
    pub raw: ScorePair,
    /// 0 to 100, among all feasible nodes.
    pub normalized: ScorePair,
    /// Weight times normalised.
    pub weighted: ScorePair,
    /// The chosen node's weighted score minus the other one's.
    pub gap: i64,
    /// Without the plugin the other of the two would win.
    pub decisive: bool,
    /// It speaks for the one that does not win.
    pub opposing: bool,
}

/// The order of the two nodes among equal totals: the greater goes first. Unsigned numbers of 64 bits, as text.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct TieHashes {
    /// hash(seed, name) of the chosen node.
    pub chosen: String,
    /// The same of the other one.
    pub versus: String,
}

/// Why one node rather than another, as the state is now: with the pod taken off its node, when it has one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contrast {
    /// What state this was worked out on; `refreshed` is always true, `decidedAt` tells of the recorded decision.
    pub meta: Meta,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// The pod's node, or where it would be placed now; absent when it fits nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// The node it is compared with.
    pub versus: String,
    /// What `chosen` is: `placed` (the pod is there), `wouldBePlaced` (it waits and would go there now), or
    /// `fitsNowhere`.
    pub basis: String,
    /// `FilteredOut`: the other node does not take the pod. `LowerScore`: it scores less. `TieBreak`: it scores the same and
    /// comes later. `NotSampled`: it would win, but was not looked at (`percentageOfNodesToScore`, or a nomination).
    /// `HigherScore`: it would win now; the state has changed since the decision. `ChosenFilteredOut`: the same,
    /// because the pod's own node does not take it any more.
    pub outcome: String,
    /// Which of the two wins now; absent when neither takes the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// The outcome in a sentence.
    pub summary: String,
    /// Why the other node does not take the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<NodeRefusal>,
    /// Why the chosen node does not take it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_reason: Option<NodeRefusal>,
    /// The score plugins, the greatest gap first; none unless both nodes take the pod.
    pub plugins: Vec<PluginGap>,
    /// Sum of the weighted scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ScorePair>,
    /// Sum of the gaps: the chosen node's total minus the other one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_gap: Option<i64>,
    /// How ties are broken.
    pub tie_rule: String,
    /// What breaks a tie between the two.
    pub tie_hashes: Option<TieHashes>,
    /// The plugins without which (weight 0) the other of the two would win.
    pub decisive: Vec<String>,
    /// The plugins that speak for the one that does not win.
    pub opposing: Vec<String>,
}
