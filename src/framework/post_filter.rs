//! What PostFilter says, and what the PodDisruptionBudgets still allow while it searches.

use std::sync::Arc;

use pellucid_cluster::Cluster;
use pellucid_cluster::preemptions::Plan;
use pellucid_model::object::Budget;
use pellucid_model::{Pod, PodId};

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
