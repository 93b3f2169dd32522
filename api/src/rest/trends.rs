//! `/apis/v1/trends`: the last hour in numbers, one sample every ten seconds.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// How many pending pods a reason keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrendReason {
    /// Code of the registry (`/apis/v1/reasons`).
    pub code: String,
    /// Pending pods that count under it.
    pub pods: usize,
}

/// What was read at one moment. Rates are those of the time since the sample before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrendSample {
    /// When it was taken, RFC 3339.
    #[schema(format = DateTime)]
    pub at: String,
    /// Seconds since the sample before; absent in the first one, which has no rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Pending pods.
    pub pending: usize,
    /// Pending pods by reason, the most common first, at most 12 reasons; absent when counting them would have cost too
    /// much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<TrendReason>>,
    /// Pending pods whose reasons are not listed, when there are more than 12.
    pub other_reasons: usize,
    /// Some pods count under a reason of their recorded attempt, because there were too many shapes to ask all nodes.
    pub truncated: bool,
    /// Bindings that the API server confirmed, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binds_per_second: Option<f64>,
    /// Attempts at pods and gangs, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_per_second: Option<f64>,
    /// 99 of 100 pods that were placed had waited no longer, in seconds; absent when none was placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_p99_seconds: Option<f64>,
}

/// What the numbers of the samples are, each in a sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrendMeanings {
    /// What `pending` and `reasons` count, and what they cost.
    pub reasons: String,
    /// Where `bindsPerSecond` comes from.
    pub binds_per_second: String,
    /// Where `attemptsPerSecond` comes from.
    pub attempts_per_second: String,
    /// Where `waitP99Seconds` comes from, and how exact it is.
    pub wait_p99_seconds: String,
}

/// `/apis/v1/trends`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trends {
    /// What state the newest sample may be older than, by less than `everySeconds`.
    pub meta: Meta,
    /// Seconds between two samples.
    pub every_seconds: u64,
    /// Most samples that are kept; older ones are gone, as are all when the process ends.
    pub most_samples: usize,
    /// What the numbers are.
    pub meanings: TrendMeanings,
    /// The samples, the oldest first.
    pub samples: Vec<TrendSample>,
}
