//! The account of a search for victims, for messages and explanations. `framework::victim_search` searches.

use std::sync::Arc;

use pellucid_model::cause::Cause;
use pellucid_model::pod::StandsFor;
use pellucid_model::{Name, NodeIdx, PodId, PodKey};

/// A chosen victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimChoice {
    /// Id of the pod.
    pub pod: PodId,
    /// Namespace and name of the pod.
    pub key: PodKey,
    /// The object that the pod stands for, if it stands for one.
    pub stands_for: Option<Arc<StandsFor>>,
    /// Whether evicting it goes beyond what a PodDisruptionBudget allows.
    pub violates_budget: bool,
}

/// A node on which the preemptor would fit without some pods, and the cost of their eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Slot of the node.
    pub node: NodeIdx,
    /// Name of the node.
    pub name: Name,
    /// The pods to evict, most important first.
    pub victims: Vec<VictimChoice>,
    /// What decides between candidates.
    pub cost: Cost,
}

/// The cost of a candidate. Fields are compared in order; the smaller value wins, except for `earliest_start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of victims beyond what PodDisruptionBudgets allow.
    pub budget_violations: usize,
    /// Priority of the most important victim.
    pub highest_priority: i32,
    /// Sum of priority + 2^31 over the victims.
    pub priority_sum: i64,
    /// Number of victims.
    pub victims: usize,
    /// Number of gangs that have their quorum and would lose it.
    pub broken_gangs: usize,
    /// When the first of the victims with the highest priority started, in seconds since 1970; the later wins.
    /// `None` means not started, which counts as latest.
    pub earliest_start: Option<i64>,
}

/// Nodes that are no candidates, grouped by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Why the nodes are no candidates.
    pub cause: Cause,
    /// Number of nodes.
    pub count: usize,
    /// The first of them by name, at most three.
    pub examples: Vec<Name>,
}

/// Result of the search on one node: a candidate, or why it is none.
pub type CandidateResult = Result<Candidate, Cause>;

/// What a node lacked for a pod when the pod was refused there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Why the node refused the pod.
    pub cause: Cause,
    /// The numbers behind the cause, where something countable was lacking.
    pub amounts: Vec<LackedAmount>,
}

/// The amount of a resource that a node lacked, in the resource's base unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LackedAmount {
    /// Name of the resource, or what else is counted.
    pub resource: Name,
    /// The amount that the pod requests.
    pub requested: i64,
    /// The amount that the node had left.
    pub available: i64,
}

/// The account of one search for victims.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Name of the plugin that searched.
    pub plugin: &'static str,
    /// Number of nodes in the cluster.
    pub total_nodes: usize,
    /// Number of nodes on which removing pods might help.
    pub potential: usize,
    /// Number of nodes that were tried.
    pub tried: usize,
    /// Number of candidates found.
    pub found: usize,
    /// The best candidates, best first.
    pub candidates: Vec<Candidate>,
    /// The first criterion by which the best candidate differs from the second.
    pub decided_by: Option<&'static str>,
    /// The nodes that are no candidates, grouped by cause.
    pub rejected: Vec<Rejected>,
    /// What the best candidate's node lacked for the pod, with its victims still there.
    pub lack: Option<Arc<Lack>>,
}
