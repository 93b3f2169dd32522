//! `/apis/v1/explain/pods/:namespace/:name`: why a pod is on its node, or on none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::contrast::Contrast;
use super::gang_explain::PodGang;
use super::requirements::RequirementDetail;
use super::standing::NotPending;
use super::suggestions::Exhaustive;

/// One reason of a cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasonBody {
    /// Code of the registry (`/apis/v1/reasons`).
    pub code: String,
    /// What it is about, such as a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Message in kube-scheduler's words.
    pub message: String,
    /// What would mend it.
    pub remedy: String,
    /// Who can usually do that.
    pub resolver: String,
}

/// What a node group lacks of a resource, or what it has too much of.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shortfall {
    /// Resource; or, in words, what there is too much of: `skew of topology.kubernetes.io/zone`.
    pub resource: String,
    /// What the pod requests, in base units (thousandths of a core, bytes, units); or how much was found.
    pub requested: i64,
    /// The most that a node of the group had left at the decision, below 0 where more is taken than is offered, and 0 of
    /// a resource that no node offers; or how much is allowed.
    pub available: i64,
    /// Requested minus available.
    pub shortfall: i64,
    /// The node that had it.
    pub best_node: String,
    /// The same for people: `requested 4, available 1500m`.
    pub text: String,
}

/// What a plugin says of one node that refuses the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeNote {
    /// Node.
    pub node: String,
    /// The node's own numbers, for people.
    pub text: String,
}

/// What a plugin says of a pod, as the state is now, with the numbers that decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodNote {
    /// The plugin.
    pub plugin: String,
    /// How the pod stands with it, in one sentence.
    pub text: String,
    /// Path of a read with all the numbers, where the plugin has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
}

/// The nodes that share one cause. The groups' counts and `notEvaluated` add up to all nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeGroup {
    /// The plugin that refused first.
    pub plugin: String,
    /// Unschedulable, or UnschedulableAndUnresolvable when removing pods could not help.
    pub code: String,
    /// Number of nodes.
    pub count: usize,
    /// Its reasons.
    pub reasons: Vec<ReasonBody>,
    /// Numbers, where something countable is lacking.
    pub shortfalls: Vec<Shortfall>,
    /// Up to three of the nodes, the first by name.
    pub example_nodes: Vec<String>,
    /// What plugins say of these nodes, in a group that was worked out for this answer: not of a recorded decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<NodeNote>,
}

/// Where a placed pod went, and among how many.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementBody {
    /// Node.
    pub node: String,
    /// Stage of the pod now; `pending` for a pod that would be placed there.
    pub stage: String,
    /// Total score; absent when only one node was feasible or others placed the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    /// Number of feasible nodes.
    pub feasible_nodes: usize,
    /// How ties are broken.
    pub tie_rule: String,
}

/// Whether a pending pod fits now, could fit later, or never fits the nodes as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outlook {
    /// `FitsNow`, `FitsAfterPreemption`, `NotNow` (it fits once pods have left), `NeverFits` (not even when every pod
    /// has left that can), `HeldBack` (the pod itself is refused, so no node was asked), or `NotKnown`.
    pub code: String,
    /// The same for people.
    pub message: String,
    /// With `NotNow`, and while an eviction for the pod is under way, a node that takes it once `wouldLeave` have left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The pods that leave, each as `namespace/name`; an object for which a pod stands as kind and name, such as
    /// `Reservation r1`. Empty when more have to leave than are listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_leave: Vec<String>,
}

/// The controller to change for a change of its pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerOf {
    /// Kind, such as `Deployment`. A ReplicaSet that a Deployment controls is not named itself.
    pub kind: String,
    /// Name, in the pod's namespace.
    pub name: String,
}

/// `GET /apis/v1/explain/pods/:namespace/:name`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    /// What state and decision this is about.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
    /// Scheduler name.
    pub profile: String,
    /// The controller from whose template the pod is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerOf>,
    /// `placed`, `refused`, `gated`, `waiting` (not yet tried), `quarantined`, `foreign` (others placed it, or it waits for
    /// another scheduler), `deleting` or `ended`; with `refresh` also `fits` (a cycle would place it now).
    pub verdict: String,
    /// The verdict in a sentence.
    pub summary: String,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
    /// Message in kube-scheduler's grammar, as in the pod's condition.
    pub message: String,
    /// Of a pending pod: whether it fits now, could fit later, or never, as the state is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    /// Of a pending pod, the reason under which `summary/pending` and the metrics count it: its own, else the first of
    /// the nearest nodes; with `NeverFits` the first that stands when all pods have left that can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_reason: Option<ReasonBody>,
    /// What would help a pending pod; empty for others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Who can usually do that.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resolver: String,
    /// Queue stage of a pending pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_stage: Option<String>,
    /// Attempts so far.
    pub attempts: u32,
    /// When it will be tried again at the latest, RFC 3339, when that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_retry: Option<String>,
    /// The events that can wake it.
    pub wakes_on: Vec<String>,
    /// Number of nodes at the decision.
    pub total_nodes: usize,
    /// Nodes nobody looked at, because enough feasible ones were found or PreFilter left them out.
    pub not_evaluated: usize,
    /// The refused nodes by cause, the largest group first.
    pub node_groups: Vec<NodeGroup>,
    /// The nodes nearest to taking the pod, as the state is now: those that `/nearest` lists first, as many as are
    /// equally far for the same things, with all that they fail. What to look at first. Absent when the pod was
    /// refused as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NodeGroup>,
    /// What a refused pod requires and nodes do not have, term by term, as the state is now; those of the nearest nodes
    /// first, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementDetail>,
    /// All that every node fails, with `?mode=exhaustive`. Absent for a pod that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exhaustive: Option<Exhaustive>,
    /// Reasons that concern the pod rather than nodes (gates, PreFilter, an unreadable field).
    pub pod_reasons: Vec<ReasonBody>,
    /// What plugins say of a pending pod that was refused, such as how it stands with its quota and who has what it
    /// lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<PodNote>,
    /// Where it is, when it is placed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementBody>,
    /// A comparison of its node, or of the one it would go to, with another one (`versus=`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<Contrast>,
    /// The gang it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<PodGang>,
    /// What the pod declares and this scheduler does not heed, such as a gang whose profile schedules no gangs.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One pending pod in a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingPod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The controller that makes it; absent for a pod without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerOf>,
    /// The gang it belongs to, `namespace/name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Priority.
    #[serde(default)]
    pub priority: i32,
    /// When the object was created, RFC 3339; empty for a pod that cannot be read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub created_at: String,
    /// What it requests, as quantities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, String>,
    /// Its groups that plugins know, by what they are called: `quota`, `queue`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
    /// Where its unit stands: active, backoff, unschedulable or gated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// Attempts so far.
    #[serde(default)]
    pub attempts: u32,
    /// Verdict.
    pub verdict: String,
    /// Code of the reason under which `summary/pending` counts it; empty for a pod that was not refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key_reason: String,
    /// Code of its outlook, as in its explanation; empty where that was not worked out for the list.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outlook: String,
    /// Why it has no place, and what would help, in a sentence or two: that of its explanation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Codes of its reasons, the most frequent first.
    pub reasons: Vec<String>,
    /// Message.
    pub message: String,
}

/// `GET /apis/v1/explain/pods`: every pending pod with its verdict.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingPods {
    /// What state this was read from.
    pub meta: Meta,
    /// Number of pending pods that the filters admit, on all pages.
    pub count: usize,
    /// By namespace and name, unless the request sorts otherwise.
    pub pods: Vec<PendingPod>,
}
