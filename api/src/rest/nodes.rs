//! `/apis/v1/nodes` and `/apis/v1/nodes/:nodeName`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// Amounts by resource name in base units: `cpu` in thousandths of a core, `memory` and
/// `ephemeral-storage` in bytes, everything else in units.
pub type Amounts = BTreeMap<String, i64>;

/// One line of the list of nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSummary {
    /// Name.
    pub name: String,
    /// Whether the node's condition Ready is True.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Number of pods that take room on it, in every stage.
    pub pods: usize,
    /// Allocatable amounts.
    pub allocatable: Amounts,
    /// Amounts requested by all pods on it, reserved ones included.
    pub requested: Amounts,
    /// The part of `requested` that is ours and not yet confirmed by the API server.
    pub reserved: Amounts,
    /// What nominated pods would take; counts against pods of equal or lower priority.
    pub nominated: Amounts,
    /// Allocatable minus requested; negative when others overcommitted the node.
    pub free: Amounts,
    /// Resources that the node offers and that are not counted, because nodes offer more different ones than are kept
    /// (reason `ResourceLeftOut`). Left out when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// `GET /apis/v1/nodes`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeList {
    /// What state this was read from.
    pub meta: Meta,
    /// Number of nodes that the filters admit, on all pages.
    pub count: usize,
    /// By name, unless the request sorts otherwise.
    pub nodes: Vec<NodeSummary>,
}

/// A taint.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaintBody {
    /// Key.
    pub key: String,
    /// Value, empty when absent.
    pub value: String,
    /// Effect.
    pub effect: String,
}

/// A pod on a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
    /// Stage: reserved, waiting, permitted, pre-binding, binding or bound.
    pub stage: String,
    /// Priority.
    pub priority: i32,
    /// `spec.schedulerName`.
    pub scheduler_name: String,
    /// What it requests.
    pub requests: Amounts,
}

/// `GET /apis/v1/nodes/:nodeName`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDetail {
    /// What state this was read from.
    pub meta: Meta,
    /// The line of the list.
    #[serde(flatten)]
    pub summary: NodeSummary,
    /// Whether there is a node object; false for a node that went while pods are still on it.
    pub present: bool,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints.
    pub taints: Vec<TaintBody>,
    /// CPU as scoring counts it: a container without a request as 100m; thousandths of a core.
    pub non_zero_milli_cpu: i64,
    /// Memory as scoring counts it: a container without a request as 200 MiB; bytes.
    pub non_zero_memory: i64,
    /// Pods on it, by namespace and name.
    pub pods_on_node: Vec<NodePod>,
}

/// An object the API server accepted but the scheduler cannot read.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuarantinedBody {
    /// `Pod` or `Node`.
    pub kind: String,
    /// Namespace; empty for nodes.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Path of the field.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
}

/// `GET /apis/v1/quarantine`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quarantine {
    /// What state this was read from.
    pub meta: Meta,
    /// Number of objects that the filters admit, on all pages.
    pub count: usize,
    /// By kind, namespace and name.
    pub objects: Vec<QuarantinedBody>,
}
