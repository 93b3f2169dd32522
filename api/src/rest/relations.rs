//! Bodies of the endpoints of PodTopologySpread and InterPodAffinity: how pods are distributed over domains, and which
//! of their terms keep other pods away.
//!
//! A domain is the set of nodes with one value of a label. Selectors are in kubectl's notation: `<none>` selects
//! nothing, `<all>` everything.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `PodTopologySpread/state`: the constraints that pods have, and how their pods are spread.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTopologySpreadState {
    /// Every distinct constraint per namespace, by namespace, topology key and selector.
    pub constraints: Vec<SpreadUse>,
    /// Number of all of them.
    pub total_constraints: usize,
    /// Whether there are more than listed.
    pub truncated: bool,
}

/// A constraint and the domains it is about: all nodes with its label. What node affinity and taints leave
/// out depends on the pod: see `pods/:namespace/:podName`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadUse {
    /// Namespace of the pods.
    pub namespace: String,
    /// `topologyKey`.
    pub topology_key: String,
    /// `whenUnsatisfiable`: `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
    /// `maxSkew`.
    pub max_skew: i32,
    /// `minDomains`.
    pub min_domains: i32,
    /// Which pods are counted.
    pub selector: String,
    /// Number of pods with this constraint.
    pub pods: usize,
    /// Number of those that wait to be placed.
    pub pending_pods: usize,
    /// Number of pods that are counted, on nodes with the label.
    pub matching_pods: u64,
    /// Number of domains.
    pub domains: usize,
    /// The fewest counted pods in a domain.
    pub fewest: u32,
    /// The most counted pods in a domain.
    pub most: u32,
    /// Up to five domains with the fewest.
    pub emptiest: Vec<DomainCount>,
    /// Up to five domains with the most.
    pub fullest: Vec<DomainCount>,
}

/// A domain and the pods in it that are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DomainCount {
    /// Value of the label.
    pub value: String,
    /// Number of pods.
    pub pods: u32,
}

/// `PodTopologySpread/pods/:namespace/:podName`: the constraints of one pod, and what each domain would mean.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadOfPod {
    /// `namespace/name`.
    pub pod: String,
    /// Whether the pod has no constraints of its own, so that those of `defaultingType: System` are shown.
    pub is_defaulted: bool,
    /// Its constraints, hard ones first.
    pub constraints: Vec<SpreadOfConstraint>,
    /// The domains of each, by constraint and value.
    pub domains: Vec<SpreadDomain>,
    /// Whether there are more domains than listed.
    pub truncated: bool,
}

/// A constraint of a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadOfConstraint {
    /// `topologyKey`.
    pub topology_key: String,
    /// `whenUnsatisfiable`: `DoNotSchedule` or `ScheduleAnyway`.
    pub when_unsatisfiable: String,
    /// `maxSkew`.
    pub max_skew: i32,
    /// `minDomains`.
    pub min_domains: i32,
    /// Which pods are counted.
    pub selector: String,
    /// Whether the pod itself would be counted.
    pub counts_itself: bool,
    /// Number of domains with a node that counts for this pod.
    pub domains: usize,
    /// What the skew is measured against: the fewest counted pods in a domain, 0 when there are fewer domains
    /// than `minDomains`.
    pub global_minimum: i64,
}

/// What it would mean to place a pod in a domain.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadDomain {
    /// Which constraint: its place in `constraints`, from 0.
    pub constraint: usize,
    /// Its `topologyKey`.
    pub topology_key: String,
    /// Value of the label.
    pub value: String,
    /// Counted pods in the domain.
    pub matching_pods: u32,
    /// The skew with the pod in it.
    pub skew: i64,
    /// Whether that is within `maxSkew`.
    pub is_within: bool,
}

/// `InterPodAffinity/state`: the terms that placed pods have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterPodAffinityState {
    /// Every distinct term, by kind, topology key, namespaces and selector.
    pub terms: Vec<TermUse>,
    /// Number of all distinct terms.
    pub total_terms: usize,
    /// Whether there are more than listed.
    pub truncated: bool,
}

/// `InterPodAffinity/nodes/:nodeName`: the terms of placed pods that reach a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterPodAffinityOfNode {
    /// Name of the node.
    pub node_name: String,
    /// The terms of pods in a domain of this node; `pods` and `nodes` count within that domain.
    pub terms: Vec<TermUse>,
    /// Whether there are more than listed.
    pub truncated: bool,
}

/// A term and the placed pods that have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TermUse {
    /// `required affinity`, `required anti-affinity`, `preferred affinity` or `preferred anti-affinity`.
    pub kind: String,
    /// `topologyKey`.
    pub topology_key: String,
    /// Namespaces of the pods it is about, by name.
    pub namespaces: Vec<String>,
    /// Labels of further namespaces, when it selects some.
    pub namespace_selector: Option<String>,
    /// Which pods it is about.
    pub selector: String,
    /// Weight of a preferred term; 0 for a required one.
    pub weight: i32,
    /// Number of placed pods that have it.
    pub pods: usize,
    /// Number of nodes with such pods.
    pub nodes: usize,
    /// Number of domains with such pods.
    pub domains: usize,
}
