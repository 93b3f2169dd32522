//! The pod that PostFilter runs for, its result, and the disruptions that PodDisruptionBudgets still allow during its
//! search.

use std::sync::Arc;

use pellucid_cluster::Cluster;
use pellucid_cluster::preemptions::Plan;
use pellucid_model::object::Budget;
use pellucid_model::{Pod, PodId};

/// The PodDisruptionBudgets with the number of disruptions that each still allows.
pub struct Budgets(Vec<(Budget, i32)>);

impl Budgets {
    /// Returns the budgets of a state in which the `earlier` pods are being evicted already.
    pub fn beside(cluster: &Cluster, earlier: &[PodId]) -> Self {
        let all = cluster.objects().all_budgets().into_iter();
        let mut budgets = Self(all.map(|budget| (budget.clone(), budget.allowed)).collect());
        for record in earlier.iter().filter_map(|id| cluster.pod(*id)) {
            budgets.take(&record.pod);
        }
        budgets
    }

    /// Counts the eviction of a pod. Returns whether it goes beyond what a budget allows. A pod that a budget counts as
    /// disrupted already costs nothing.
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

    /// Returns whether a budget protects one of the pods.
    pub fn concern<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> bool {
        !self.0.is_empty() && pods.into_iter().any(|pod| self.0.iter().any(|(b, _)| b.protects(pod)))
    }

    /// Returns for each pod whether its eviction, after those before it, goes beyond what its budgets allow.
    pub fn violated<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> Vec<bool> {
        let mut left = Self(self.0.clone());
        pods.into_iter().map(|pod| left.take(pod)).collect()
    }
}

/// A pod that others may have to leave for.
#[derive(Clone, Copy)]
pub struct Preemptor<'a> {
    /// Id of the pod.
    pub id: PodId,
    /// The pod.
    pub pod: &'a Pod,
    /// Victims of lower priority have one below this: the pod's own or, when its gang preempts as one, that of the
    /// gang's lowest member.
    pub below: i32,
}

/// The result of PostFilter.
#[derive(Clone, Debug)]
pub enum PostFiltered {
    /// No eviction helps. An existing nomination is cleared.
    Nothing {
        /// What is appended to the pod's message.
        message: Arc<str>,
        /// How the search went.
        plan: Arc<Plan>,
    },
    /// The pod may not preempt now. An existing nomination stays.
    NotEligible {
        /// What is appended to the pod's message.
        message: Arc<str>,
    },
    /// The pod fits on the first candidate's node once its victims are gone.
    Nominate(Arc<Plan>),
}
