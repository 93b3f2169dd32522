//! Bodies of the endpoints of Proportion: kube-batch's Queues.
//!
//! Amounts are quantities by resource name, as in Kubernetes (`cpu: 1500m`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::sharing::SharingRound;

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
    pub rounds: Vec<SharingRound>,
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

/// `explain/pods/:namespace/:name/queue`: where a pod stands with its Queue of kube-batch, as the state is now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodQueue {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// The pod's queue; absent when it is in none, because it names no PodGroup or one that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Namespace and name of the PodGroup that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_group: Option<String>,
    /// Whether the queue exists. Without its queue a PodGroup waits.
    pub exists: bool,
    /// Code of the reason for which the queue refuses the pod; absent when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How it stands, in one sentence; absent when there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Each resource that the pod requests, and `pods` where the queue's capability limits their number; empty while there is
    /// no Queue.
    pub resources: Vec<PodQueueAmounts>,
}

/// One resource of a queue beside a pod's request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodQueueAmounts {
    /// The resource.
    pub resource: String,
    /// What the pod requests.
    pub requested: String,
    /// What keeps the pod from it: `capability`, or `deserved`; absent when nothing of the queue does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// What pods of the queue hold.
    pub allocated: String,
    /// The part of that held by members of the pod's own gang, which does not count against `deserved` while the gang is short
    /// of its quorum.
    pub own_gang: String,
    /// What the queue deserves: its pods are tried while they hold less. Absent for `pods`, which are not shared out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deserved: Option<String>,
    /// The most that the queue may hold; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// What all pods of the queue request, pending ones included.
    pub request: String,
    /// What other queues deserve beyond their parts by weight, because the rest is not requested.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub borrowers: BTreeMap<String, String>,
    /// What other queues hold beyond what they deserve.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub holders: BTreeMap<String, String>,
    /// Where the queue refuses the pod, the pods of the queue that hold most of the resource, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<QueueConsumer>,
}

/// A pod that holds what another one of its queue lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueConsumer {
    /// The pod, `namespace/name`.
    pub pod: String,
    /// What it holds.
    pub allocated: String,
}
