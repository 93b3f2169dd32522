//! Bodies of the plugins' own endpoints: `/apis/v1/plugins/<Plugin>/state` and the like.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `NodeUnschedulable/state`: the cordoned nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeUnschedulableState {
    /// Names of the cordoned nodes, sorted.
    pub unschedulable_nodes: Vec<String>,
    /// Number of all nodes.
    pub total_nodes: usize,
}
