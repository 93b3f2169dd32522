//! Bodies of the endpoints of Proportion: kube-batch's Queues.
//!
//! Amounts are quantities by resource name, as in Kubernetes (`cpu: 1500m`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `Proportion/state`: all queues in short, and what is wrong with them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProportionState {
    /// Number of queues that exist, the default one included.
    pub queues: usize,
    /// Whether there is a Queue. Without one the plugin decides nothing.
    pub is_active: bool,
    /// What all nodes offer of the resources that queues request.
    pub total: BTreeMap<String, String>,
    /// One row per queue and resource.
    pub rows: Vec<QueueRow>,
    /// What is wrong with Queues.
    pub problems: Vec<QueueProblem>,
    /// Queues that PodGroups name and that do not exist, with the number of their pods.
    pub unknown_queues: BTreeMap<String, i64>,
    /// Whether rows were left out.
    pub truncated: bool,
}

/// A queue's part of one resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueRow {
    /// Name of the queue.
    pub queue: String,
    /// Name of the resource.
    pub resource: String,
    /// Its weight among the queues.
    pub weight: i64,
    /// What its pods request, pending ones included.
    pub request: String,
    /// Its part of the cluster: by weight, at most what it requests and its capability.
    pub deserved: String,
    /// What its pods with a place hold.
    pub allocated: String,
    /// The most that it may hold; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Whether it holds what it deserves, so that pods which request the resource wait.
    pub is_overused: bool,
}

/// Something wrong with a Queue. Everything else goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueProblem {
    /// Name of the queue.
    pub queue: String,
    /// API group of its object.
    pub api_group: String,
    /// The field.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What is wrong, and what holds instead.
    pub problem: String,
}

/// `Proportion/queues`: the queues, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueSummaries {
    /// The queues that exist.
    pub queues: Vec<QueueSummary>,
    /// Whether queues were left out.
    pub truncated: bool,
}

/// `Proportion/queues/:name`: what a queue deserves, what its pods request and hold, and which of them wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueSummary {
    /// Name of the queue.
    pub name: String,
    /// API groups that have an object of this name. The first one's counts; the default queue needs none.
    pub api_groups: Vec<String>,
    /// Its weight among the queues.
    pub weight: i64,
    /// Its part of the cluster: by weight, at most what it requests and its capability.
    pub deserved: BTreeMap<String, String>,
    /// What its pods with a place hold.
    pub allocated: BTreeMap<String, String>,
    /// What its pods request, pending ones included.
    pub request: BTreeMap<String, String>,
    /// The most that it may hold; resources without a limit are absent.
    pub capability: BTreeMap<String, String>,
    /// What it deserves beyond its part by weight, because others request less of theirs.
    #[serde(default)]
    pub borrowed: BTreeMap<String, String>,
    /// The resources of which it holds what it deserves, while it requests more.
    pub overused: Vec<String>,
    /// Number of its pods that have a place.
    pub placed_pods: i64,
    /// Its pods that wait, by PodGroup; those without one singly.
    pub waiting: Vec<QueueWaiting>,
    /// Whether waiting pods were left out.
    pub truncated: bool,
    /// What is wrong with its objects.
    pub problems: Vec<QueueProblem>,
}

/// Pods of a queue that wait.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueWaiting {
    /// Namespace and name of the PodGroup; absent for a pod without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_group: Option<String>,
    /// Number of pods that wait.
    pub pods: usize,
    /// Some of them, by name.
    pub examples: Vec<String>,
    /// Reason for which the queue would refuse the first of them now; absent when they wait for something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `explain/queues/:name`: how what a queue deserves comes about.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueExplanation {
    /// Name of the queue.
    pub name: String,
    /// API groups that have an object of this name. The first one's counts; the default queue needs none.
    pub api_groups: Vec<String>,
    /// In one sentence per resource, how it stands.
    pub sentences: Vec<String>,
    /// By resource; empty while there is no Queue.
    pub resources: Vec<QueueShare>,
    /// What is wrong with its objects.
    pub problems: Vec<QueueProblem>,
}

/// One resource of a queue.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueShare {
    /// The resource.
    pub resource: String,
    /// Its weight among the queues.
    pub weight: i64,
    /// Sum of the weights of all queues.
    pub weights: i64,
    /// What all nodes offer.
    pub total: String,
    /// Its part of that by weight alone, whatever it requests.
    pub part: String,
    /// What its pods request, pending ones included.
    pub request: String,
    /// The most that it may hold; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// What it deserves: by weight, at most what it requests and its capability, with what others do not request.
    pub deserved: String,
    /// What its pods with a place hold.
    pub allocated: String,
    /// What it deserves beyond its part.
    pub borrowed: String,
    /// What others deserve of its part, because it requests less.
    pub lent: String,
    /// Of whose part it deserves how much.
    pub borrows_from: BTreeMap<String, String>,
    /// Who deserves how much of its part.
    pub lends_to: BTreeMap<String, String>,
    /// What keeps it from more: `capability`; `share`, because what there is is shared with others; `weight`, because it has
    /// none; `total`, because no node offers any. Absent when its request is met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// Whether it holds what it deserves, so that its pods which request the resource wait.
    pub is_overused: bool,
    /// All queues, by name, as they take part.
    pub queues: Vec<QueueClaim>,
    /// The rounds in which what there is is shared out.
    pub rounds: Vec<QueueRound>,
}

/// A queue as it takes part in the distribution.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueClaim {
    /// Name of the queue.
    pub queue: String,
    /// Its weight.
    pub weight: i64,
    /// Its part by weight alone.
    pub part: String,
    /// What its pods request.
    pub request: String,
    /// The most that it may hold; absent without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// What it deserves in the end.
    pub deserved: String,
    /// What its pods with a place hold.
    pub allocated: String,
}

/// One round of the distribution.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueRound {
    /// What is shared out.
    pub amount: String,
    /// Sum of the weights of those that take part.
    pub weights: String,
    /// What each gets.
    pub shares: BTreeMap<String, String>,
    /// What was taken back from those that want no more.
    pub excess: String,
}
