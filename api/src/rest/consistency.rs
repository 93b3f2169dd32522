//! `/apis/v1/consistency`: what the scheduler knows, compared with the API server's lists.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// A field in which an object differs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldDrift {
    /// Path of the field, such as `spec.nodeName`; empty when one side has no such object.
    pub field: String,
    /// What the scheduler knows, as JSON or `absent`, at most 200 characters.
    pub ours: String,
    /// What the API server says, as JSON or `absent`, at most 200 characters.
    pub theirs: String,
}

/// An object that differed from the API server's for longer than a watch event may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// Kind of the object.
    pub kind: String,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// The fields that differed.
    pub fields: Vec<FieldDrift>,
    /// When it was found, RFC 3339.
    #[schema(format = DateTime)]
    pub found_at: String,
    /// When it was seen to be gone, RFC 3339; absent while the object still differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub repaired_at: Option<String>,
}

/// The last comparison of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindConsistency {
    /// The kind.
    pub kind: String,
    /// When it was last compared, RFC 3339; absent when it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub compared_at: Option<String>,
    /// Objects in the API server's list.
    pub objects: usize,
    /// Seconds that listing and comparing took, without the wait for late events.
    pub seconds: f64,
    /// Drifts found since the process started.
    pub drifts: u64,
    /// Why the last comparison was given up, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `/apis/v1/consistency`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Consistency {
    /// About the answer.
    pub meta: Meta,
    /// Seconds between the end of a sweep and the next one; 0 when there are none (`--consistency-interval 0`).
    pub interval_seconds: f64,
    /// Seconds for which an object must differ, unchanged on the API server, to count as a drift.
    pub grace_seconds: f64,
    /// Complete sweeps over all kinds so far.
    pub sweeps: u64,
    /// Drifts that were found and are not repaired.
    pub open: usize,
    /// The kinds that are compared.
    pub kinds: Vec<KindConsistency>,
    /// The newest drifts, the newest first, at most 1,000. A reader with limits sees those of its namespaces.
    pub drifts: Vec<Drift>,
}
