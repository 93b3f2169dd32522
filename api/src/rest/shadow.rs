//! `/apis/v1/shadow`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

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

/// `GET /apis/v1/shadow`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shadow {
    /// What state this was read from.
    pub meta: Meta,
    /// The scheduler that is shadowed.
    pub of: String,
    /// Pods both put on the same node.
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
    /// The newest disagreements.
    pub examples: Vec<DisagreementBody>,
}
