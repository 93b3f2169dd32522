//! What of a pod's requirements nodes do not fulfil, term by term: the whole question behind a typo.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that is there, with its number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundValue {
    /// A label value, or a topology domain.
    pub value: String,
    /// Number of nodes that have the value; of pods, where `RequirementDetail::matching_pods` is given.
    pub count: usize,
}

/// A name that nothing has, and one like it that something has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidYouMean {
    /// The name as given.
    pub given: String,
    /// The name that exists.
    pub meant: String,
}

/// A pod in the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodOnNode {
    /// Node.
    pub node: String,
    /// Pod, as `namespace/name`.
    pub pod: String,
}

/// The numbers of a topology spread constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadNumbers {
    /// `maxSkew`.
    pub max_skew: i64,
    /// Number of domains that count.
    pub domains: usize,
    /// `minDomains`.
    pub min_domains: i64,
    /// The fewest matching pods in a domain; 0 with fewer domains than `minDomains`.
    pub minimum: i64,
    /// The least skew that the pod would make on a node that the constraint refuses; absent when it refuses none for
    /// its skew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_skew: Option<i64>,
    /// Number of nodes without the label.
    pub nodes_without_label: usize,
}

/// A requirement of a pod that some of the nodes do not fulfil.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequirementDetail {
    /// The plugin that refuses for it.
    pub plugin: String,
    /// Code of the registry under which nodes are refused for it.
    pub code: String,
    /// The requirement as the pod states it: `nodeSelector disktype=sdd`.
    pub requirement: String,
    /// All of it in a sentence.
    pub text: String,
    /// Number of nodes that fulfil it, whatever else they lack.
    pub nodes: usize,
    /// Number of nodes.
    pub total_nodes: usize,
    /// Key of a label or taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Operator: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`; or the effect of a taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The values that are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// What is there instead, the most frequent first, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<FoundValue>,
    /// Names that nothing has, each with one like it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub did_you_mean: Vec<DidYouMean>,
    /// Pods in the way on the first nodes by name, at most three per node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<PodOnNode>,
    /// Number of placed pods that a pod affinity term is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching_pods: Option<usize>,
    /// The numbers of a topology spread constraint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadNumbers>,
    /// More was found than is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
