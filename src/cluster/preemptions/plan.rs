//! The account of a search for victims, for messages and explanations. What searches is DefaultPreemption's.

use pellucid_model::cause::Cause;
use pellucid_model::{Name, NodeIdx, PodId, PodKey};

/// A victim that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VictimChoice {
    /// The pod.
    pub pod: PodId,
    /// Its namespace and name.
    pub key: PodKey,
    /// Whether evicting it goes beyond what a PodDisruptionBudget allows.
    pub violates_budget: bool,
}

/// A node on which the pod would fit with some pods gone, and what that would cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Node.
    pub node: NodeIdx,
    /// Its name.
    pub name: Name,
    /// Who would have to go, the most important first.
    pub victims: Vec<VictimChoice>,
    /// What decides between nodes.
    pub cost: Cost,
}

/// What decides between candidates: each field in turn, the smaller wins, but for the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Victims beyond what budgets allow.
    pub budget_violations: usize,
    /// Priority of the most important victim.
    pub highest_priority: i32,
    /// Sum over the victims of priority + 2^31.
    pub priority_sum: i64,
    /// Number of victims.
    pub victims: usize,
    /// Gangs that have their quorum and would lose it.
    pub broken_gangs: usize,
    /// When the first of the victims with the highest priority started, seconds since 1970; the later wins.
    /// `None`: not started, which is latest.
    pub earliest_start: Option<i64>,
}

/// Nodes that would not do, by why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Why.
    pub cause: Cause,
    /// Number of nodes.
    pub count: usize,
    /// The first of them by name, three at most.
    pub examples: Vec<Name>,
}

/// What a search came to on one node: a candidate, or why it is none.
pub type Found = Result<Candidate, Cause>;

/// The account of one search.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Nodes there are.
    pub total_nodes: usize,
    /// Nodes on which removing pods might help.
    pub potential: usize,
    /// Nodes that were tried.
    pub tried: usize,
    /// Candidates found.
    pub found: usize,
    /// The best of them, best first.
    pub candidates: Vec<Candidate>,
    /// The first criterion by which the best differs from the second.
    pub decided_by: Option<&'static str>,
    /// The nodes that would not do.
    pub rejected: Vec<Rejected>,
}
