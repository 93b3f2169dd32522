//! Bodies of the endpoints of LoadAwareScheduling.
//!
//! Amounts are quantities by resource name, as in Kubernetes (`cpu: 1500m`). Names of `node/:nodeName` are Koordinator's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;

/// `LoadAwareScheduling/node/:nodeName`: what the node uses and what is estimated on top.
///
/// Of a node without NodeMetric, the sums count estimates alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadOfNode {
    /// The pods on the node, by the time of their assignment.
    pub pods: Vec<AssignedPod>,
    /// Reported usage of prod pods, with the system's if the arguments say so.
    pub prod_usage: BTreeMap<String, String>,
    /// What estimates add to the reported usage of the node.
    pub node_delta: BTreeMap<String, String>,
    /// What estimates add to `prodUsage`.
    pub prod_delta: BTreeMap<String, String>,
    /// Estimates of all pods of the node.
    pub node_estimated: BTreeMap<String, String>,
    /// The pods in `nodeDelta`, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_delta_pods: Vec<String>,
    /// The pods in `prodDelta`, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prod_delta_pods: Vec<String>,
    /// The pods in `nodeEstimated`, sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_estimated_pods: Vec<String>,
    /// How the filter sees the node; absent when no NodeMetric counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<NodeLoad>,
}

/// A pod on a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignedPod {
    /// When the pod was assigned to the node.
    pub timestamp: String,
    /// The pod.
    pub pod: AssignedPodObject,
}

/// What the scheduler keeps of a pod object.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignedPodObject {
    /// Metadata of the pod.
    pub metadata: AssignedPodMeta,
}

/// Name of a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssignedPodMeta {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
}

/// `LoadAwareScheduling/state` and `LoadAwareScheduling/nodes`: the load of nodes, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadAwareState {
    /// What state this was read from, and how the list of nodes goes on.
    #[serde(default)]
    pub meta: Meta,
    /// The nodes that have a NodeMetric, by name.
    pub nodes: Vec<NodeLoad>,
    /// Number of nodes with a NodeMetric that counts.
    pub reported: usize,
    /// Number of nodes with an expired NodeMetric.
    pub expired: usize,
    /// Number of nodes without a NodeMetric.
    pub unreported: usize,
    /// Number of nodes whose usage is above a threshold already.
    pub exceeded: usize,
    /// Whether there are more nodes than listed.
    pub truncated: bool,
}

/// How the filter sees a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeLoad {
    /// Name of the node.
    pub node_name: String,
    /// `status.updateTime` of the NodeMetric; absent when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_time: Option<String>,
    /// Age of the NodeMetric in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<i64>,
    /// Whether the NodeMetric is too old to count.
    pub expired: bool,
    /// Usage by resource, reported and estimated, that thresholds are compared with.
    pub used: BTreeMap<String, String>,
    /// What usage is compared with.
    pub allocatable: BTreeMap<String, String>,
    /// Usage in percent, rounded.
    pub percent: BTreeMap<String, i64>,
    /// Thresholds in percent for pods that are not prod, or for all without thresholds for prod pods.
    pub thresholds: BTreeMap<String, i64>,
    /// Thresholds in percent on the usage of prod pods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prod_thresholds: BTreeMap<String, i64>,
    /// Usage of prod pods in percent, rounded; only with thresholds for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prod_percent: BTreeMap<String, i64>,
    /// Whether thresholds are compared with an aggregated usage.
    pub aggregated: bool,
    /// Number of pods whose estimate counts because the report does not show them fully yet.
    pub estimated_pods: u32,
}
