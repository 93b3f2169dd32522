//! `/apis/v1/shadow`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::ReasonBody;

/// A pod that went elsewhere than this scheduler would have sent it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisagreementBody {
    /// `namespace/name`.
    pub pod: String,
    /// Our node; null when we would have refused it.
    pub ours: Option<String>,
    /// Where the other scheduler put it.
    pub theirs: String,
}

/// The weighted scores of a plugin for our node and for theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShadowShare {
    /// The plugin.
    pub plugin: String,
    /// Its weighted score for our node; null where it was skipped.
    pub ours: Option<i64>,
    /// The same for theirs.
    pub theirs: Option<i64>,
}

/// A decision of the other scheduler that is not ours, judged on the state right before it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowDisagreement {
    /// `namespace/name`.
    pub pod: String,
    /// Priority of the pod.
    pub priority: i32,
    /// When its Binding or refusal arrived, RFC 3339.
    #[schema(format = DateTime)]
    pub at: String,
    /// `LowerScore`, `Infeasible` or `RefusedByThem`; nodes of equal score are no disagreement.
    pub judgement: String,
    /// Where it put the pod; null when it called it unschedulable.
    pub theirs: Option<String>,
    /// Where we would have put it; null when we refuse it.
    pub ours: Option<String>,
    /// Total score of its node; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub their_total: Option<i64>,
    /// Best total score; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_total: Option<i64>,
    /// Feasible nodes with a better total; absent where nothing was scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<usize>,
    /// Feasible nodes; absent where nothing was scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feasible: Option<usize>,
    /// Whether kube-scheduler's default sampling of nodes alone may explain it; absent where nothing was scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_sampling: Option<bool>,
    /// Why we refuse its node; empty where PreFilter does not consider the node.
    pub reasons: Vec<ReasonBody>,
    /// The plugins whose weighted scores differ between the two nodes.
    pub shares: Vec<ShadowShare>,
}

/// How far below the best total score their nodes were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowDistance {
    /// Greatest distance that counts here; null for all beyond the others.
    pub up_to: Option<i64>,
    /// Pods at this distance, and beyond the one before.
    pub pods: u64,
}

/// Why we refuse their nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShadowCause {
    /// Code of the first reason (`/apis/v1/reasons`), or `LeftOut` for a node that PreFilter does not consider.
    pub code: String,
    /// Pods.
    pub pods: u64,
}

/// How long decisions took, of the newest 1,000 pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ShadowTimes {
    /// Number of pods.
    pub pods: usize,
    /// Median, in seconds.
    pub p50: f64,
    /// 0.99 quantile, in seconds.
    pub p99: f64,
}

/// Their decisions, each judged on the state right before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowJudged {
    /// Bindings that were judged: the sum of `sameNode`, `equalScore`, `lowerScore` and `infeasible`.
    pub bindings: u64,
    /// Bindings to the node that we would have chosen.
    pub same_node: u64,
    /// Bindings to another node with the best total score: only the tie is broken otherwise.
    pub equal_score: u64,
    /// Bindings to a feasible node while others had a better total score.
    pub lower_score: u64,
    /// Of `lowerScore`, those that kube-scheduler's default sampling of nodes alone may explain.
    pub within_sampling: u64,
    /// Bindings to a node that we refuse.
    pub infeasible: u64,
    /// Of `infeasible`, pods that we refuse on every node.
    pub infeasible_everywhere: u64,
    /// Pods that it called unschedulable while we found a feasible node.
    pub refused_by_them: u64,
    /// Bindings that were not judged: several in one list, more than 200 in a second, or to a node that is gone.
    pub not_judged: u64,
    /// Share of Bindings whose node we find feasible, in percent; null before the first.
    pub feasible_percent: Option<f64>,
    /// Share of Bindings whose node has the best total score, in percent; null before the first.
    pub best_score_percent: Option<f64>,
    /// Lower scores by distance from the best.
    pub distances: Vec<ShadowDistance>,
    /// Infeasible Bindings by reason, the most common first.
    pub causes: Vec<ShadowCause>,
    /// From first seeing a pod to our placement; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours_took: Option<ShadowTimes>,
    /// From first seeing a pod to the arrival of its Binding; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theirs_took: Option<ShadowTimes>,
}

/// `GET /apis/v1/shadow`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// What state this was read from, and how the list of disagreements goes on.
    pub meta: Meta,
    /// The scheduler that is shadowed.
    pub of: String,
    /// Their decisions, each judged on the state right before it: what to look at before switching.
    pub judged: ShadowJudged,
    /// Number of disagreements that are remembered and that the filters admit.
    pub count: usize,
    /// Their decisions that are not ours, the newest first. The newest 1,000 are remembered.
    pub disagreements: Vec<ShadowDisagreement>,
    /// Pods that went where our own plan had put them. The plan runs ahead and counts on itself, so ties and bursts make
    /// it differ; `judged` does not.
    pub agreed: u64,
    /// Pods that went to another node.
    pub disagreed: u64,
    /// Pods they placed and we refused.
    pub refused_by_us: u64,
    /// Pods they placed before we looked.
    pub not_compared: u64,
    /// Pods we placed and they did not within the time a place is held.
    pub expired: u64,
    /// Agreed of all compared, in percent.
    pub agreement_percent: f64,
    /// The newest differences from our plan, at most 50.
    pub examples: Vec<DisagreementBody>,
}
