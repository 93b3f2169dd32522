//! `/apis/v1/explain/nodes/:nodeName`: which pending pods a node takes or refuses, and which of its resources nobody
//! can use.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::ReasonBody;
use super::nodes::Amounts;

/// A pending pod that the node takes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedPod {
    /// `namespace/name`.
    pub pod: String,
    /// Its gang. The pod was asked about alone: whether its gang can be placed is another question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
}

/// A pending pod that the node refuses.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedPod {
    /// `namespace/name`.
    pub pod: String,
    /// Its gang. The pod was asked about alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// The plugin that refused first, as in the pod's own explanation.
    pub plugin: String,
    /// Unschedulable, or UnschedulableAndUnresolvable when removing pods could not help.
    pub code: String,
    /// Its reasons.
    pub reasons: Vec<ReasonBody>,
    /// The reasons in kube-scheduler's words.
    pub message: String,
    /// What the plugin says of the node, with its own numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// An amount that is free and that no pending pod can use, although some ask for the resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stranded {
    /// Resource.
    pub resource: String,
    /// The part of the node that has it, such as `gpu 3`; absent when it is the node's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// How much is free, in base units.
    pub amount: i64,
    /// The same for people.
    pub text: String,
    /// What keeps most of the pods that ask for it: a resource that is short, else the code of a reason. The resource itself,
    /// when what is free is too little for each of them.
    pub blocked_by: String,
    /// Number of pods that ask for it.
    pub pods: usize,
}

/// `GET /apis/v1/explain/nodes/:nodeName`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    /// What state this was worked out on.
    pub meta: Meta,
    /// Node.
    pub node: String,
    /// Number of pending pods that were asked about: the sum of `accepts` and `refuses`.
    pub pending_considered: usize,
    /// Number of pending pods that there are, without those that cannot be read.
    pub pending_total: usize,
    /// Whether some were left out (`?limit=`).
    pub truncated: bool,
    /// Those it takes, each on its own: there may not be room for two of them.
    pub accepts: Vec<AcceptedPod>,
    /// Those it refuses.
    pub refuses: Vec<RefusedPod>,
    /// What nobody can use, by resource.
    pub stranded: Vec<Stranded>,
    /// What is free, in base units; negative when others overcommitted the node.
    pub free: Amounts,
}

/// How a node stands towards what is pending, in a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeLine {
    /// Name.
    pub name: String,
    /// Whether the node's condition Ready is True.
    pub ready: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Its taints, `key=value:effect` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
    /// Number of pods on it, in every stage.
    pub pods: usize,
    /// Free amounts as quantities.
    pub free: BTreeMap<String, String>,
    /// Pods nominated to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nominated: Vec<String>,
    /// Number of pending pods that it would take, each alone.
    pub takes: usize,
    /// Number of pending pods that it refuses.
    pub refuses: usize,
    /// Number of pending pods that it refuses by the code of a reason; a pod that it refuses for several counts in each.
    pub refused_for: BTreeMap<String, usize>,
}

/// `GET /apis/v1/explain/nodes`: every node in a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeLines {
    /// What state this was read from. `truncated`: not all pending pods were asked about, see `pendingConsidered`.
    pub meta: Meta,
    /// Number of nodes that the filters admit, on all pages.
    pub count: usize,
    /// Number of pending pods that the nodes were asked about: those of the shapes with most pods.
    pub pending_considered: usize,
    /// Number of pending pods.
    pub pending_total: usize,
    /// By name, unless the request sorts otherwise.
    pub nodes: Vec<NodeLine>,
}
