//! What PostFilter found: the account of a search for victims, for messages and explanations.

use std::sync::Arc;

use super::cause::Cause;
use crate::cluster::Cluster;
use crate::model::object::Budget;
use crate::model::{Name, NodeIdx, Pod, PodId, PodKey};

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

/// What the PodDisruptionBudgets still allow.
pub struct Budgets(Vec<(Budget, i32)>);

impl Budgets {
    /// Returns the budgets there are, when some pods go already.
    pub fn beside(cluster: &Cluster, earlier: &[PodId]) -> Self {
        let all = cluster.objects().all_budgets().into_iter();
        let mut budgets = Self(all.map(|budget| (budget.clone(), budget.allowed)).collect());
        for record in earlier.iter().filter_map(|id| cluster.pod(*id)) {
            budgets.take(&record.pod);
        }
        budgets
    }

    /// Takes one more pod away. Returns whether that goes beyond what a budget allows. A pod that is disrupted
    /// already is free.
    fn take(&mut self, pod: &Pod) -> bool {
        let mut violates = false;
        for (budget, allowed) in &mut self.0 {
            if budget.protects(pod) && !budget.disrupted.contains(&pod.key.name) {
                *allowed -= 1;
                violates |= *allowed < 0;
            }
        }
        violates
    }

    /// Whether a budget protects one of some pods.
    pub fn concern<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> bool {
        !self.0.is_empty() && pods.into_iter().any(|pod| self.0.iter().any(|(b, _)| b.protects(pod)))
    }

    /// Says of each pod whether its eviction, after those before it, goes beyond what its budgets allow.
    pub fn violated<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> Vec<bool> {
        let mut left = Self(self.0.clone());
        pods.into_iter().map(|pod| left.take(pod)).collect()
    }
}

/// What PostFilter says.
#[derive(Clone, Debug)]
pub enum PostFiltered {
    /// Nothing helps. A nomination from before is cleared.
    Nothing {
        /// What goes into the pod's message.
        message: Arc<str>,
        /// The account.
        plan: Arc<Plan>,
    },
    /// Nothing is tried; a nomination from before stays.
    NotEligible {
        /// What goes into the pod's message.
        message: Arc<str>,
    },
    /// With the victims of the first candidate gone, the pod fits there.
    Nominate(Arc<Plan>),
}
