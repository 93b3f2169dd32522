//! How an amount is shared out by weight, for quotas and queues alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One round in which an amount is shared out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharingRound {
    /// What is shared out.
    pub amount: String,
    /// Sum of the weights of those that take part.
    pub weights: String,
    /// What each gets.
    pub shares: BTreeMap<String, String>,
    /// What was taken back from those whose request is met.
    pub excess: String,
}
