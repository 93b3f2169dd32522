//! PostFilter: the trait, what it can ask and try, its result, and the disruptions that PodDisruptionBudgets still
//! allow during its search.

use std::sync::Arc;

use pellucid_cluster::preemptions::{CandidateResult, Plan};
use pellucid_cluster::{Cluster, PodRecord};
use pellucid_model::cause::{Cause, Code};
use pellucid_model::object::Budget;
use pellucid_model::selector::Labels;
use pellucid_model::{NodeIdx, Pod, PodId, PodKey};

use super::view::View;

/// The PodDisruptionBudgets with the number of disruptions that each still allows.
pub struct Budgets(Vec<(Budget, i32)>);

impl Budgets {
    /// Returns the budgets of a state in which the `earlier` pods are being evicted already.
    pub fn beside(cluster: &Cluster, earlier: &[PodId]) -> Self {
        let mut budgets = Self::of(cluster.objects().all_budgets());
        for record in earlier.iter().filter_map(|id| cluster.pod(*id)) {
            budgets.take(&record.pod.key, &record.pod.labels);
        }
        budgets
    }

    /// Takes over budgets as they stand.
    pub fn of<'b>(budgets: impl IntoIterator<Item = &'b Budget>) -> Self {
        Self(budgets.into_iter().map(|budget| (budget.clone(), budget.allowed)).collect())
    }

    /// Counts the eviction of a pod. Returns whether it goes beyond what a budget allows. A pod that a budget counts as
    /// disrupted already costs nothing.
    pub fn take(&mut self, pod: &PodKey, labels: &Labels) -> bool {
        let mut violates = false;
        for (budget, allowed) in &mut self.0 {
            if budget.protects(pod, labels) && !budget.disrupted.contains(&pod.name) {
                *allowed -= 1;
                violates |= *allowed < 0;
            }
        }
        violates
    }

    /// Returns the budget that one more eviction would exceed, if there is one.
    pub fn exceeded_by(&self, pod: &PodKey, labels: &Labels) -> Option<&Budget> {
        let is_full = |(budget, allowed): &&(Budget, i32)| {
            *allowed <= 0 && budget.protects(pod, labels) && !budget.disrupted.contains(&pod.name)
        };
        self.0.iter().find(is_full).map(|(budget, _)| budget)
    }

    /// Returns whether a budget protects one of the pods.
    pub fn concern<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> bool {
        !self.0.is_empty()
            && pods.into_iter().any(|pod| self.0.iter().any(|(b, _)| b.protects(&pod.key, &pod.labels)))
    }

    /// Returns for each pod whether its eviction, after those before it, goes beyond what its budgets allow.
    pub fn violated<'p>(&self, pods: impl IntoIterator<Item = &'p Pod>) -> Vec<bool> {
        let mut left = Self(self.0.clone());
        pods.into_iter().map(|pod| left.take(&pod.key, &pod.labels)).collect()
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

/// What PostFilter can ask and try. The state is that of the attempt.
pub trait Evaluator {
    /// Returns the state, without the pods removed so far.
    fn view(&self) -> View<'_>;
    /// Returns the id of the pod.
    fn pod(&self) -> PodId;
    /// Returns the code with which a node of [`View::nodes`] was refused, or `None` when the node was not evaluated or
    /// not refused.
    fn refused(&self, node: NodeIdx) -> Option<Code>;
    /// Begins a trial, which ends with [`end_trial`](Self::end_trial).
    fn begin_trial(&mut self);
    /// Ends a trial and undoes what was removed in it.
    fn end_trial(&mut self);
    /// Removes a placed pod from its node.
    fn remove(&mut self, pod: PodId);
    /// Puts a removed pod back on its node.
    fn restore(&mut self, pod: PodId, node: NodeIdx);
    /// Returns why the pod does not pass all filters on a node in the current state, with and without the pods
    /// nominated to it, or `None` when it passes.
    fn refusal(&mut self, node: NodeIdx) -> Option<Cause>;
    /// Returns the priority that victims of lower priority are below ([`Preemptor::below`]).
    fn below(&self) -> i32;
    /// Returns what the plugin stored with [`remember`](Self::remember) for an equal pod on a node, or `None` once
    /// something that it depends on has changed.
    #[inline]
    fn known(&self, _node: NodeIdx) -> Option<CandidateResult> {
        None
    }
    /// Stores the result of the search on a node, for equal pods and while the pods on the node are the same. Must not
    /// be called for a result that depends on anything else, such as a budget or another node.
    #[inline]
    fn remember(&mut self, _node: NodeIdx, _found: &CandidateResult) {}
    /// Returns whether a plugin of the profile protects a placed pod ([`VictimGuard`]).
    #[inline]
    fn is_protected(&self, _pod: &PodRecord) -> bool {
        false
    }
    /// Returns the pods that are evicted already for other members of the pod's gang. They are off their nodes.
    fn earlier(&self) -> &[PodId];
}

/// Protects pods from eviction in favour of others, whichever plugin looks for victims. Of a profile all plugins that
/// return one are asked, at whichever points they are enabled.
pub trait VictimGuard: Send + Sync {
    /// Returns whether a placed pod is never evicted for another one. Must depend on the pod's spec alone.
    fn protects(&self, view: View<'_>, pod: &PodRecord) -> bool;
}

/// PostFilter: looks for a way to place a pod that no node can take.
pub trait PostFilter: Send + Sync {
    /// Searches for a node and the pods to evict from it ([`victim_search`](super::victim_search)).
    fn post_filter(&self, evaluator: &mut dyn Evaluator) -> PostFiltered;
    /// Returns why the pod cannot have a node that passes all filters once victims of this plugin are gone. Asked on
    /// the state of a trial, in which the victims are gone and neither the pod nor nominated pods are placed.
    #[inline]
    fn condition(&self, _view: View<'_>, _preemptor: &Preemptor<'_>, _node: NodeIdx) -> Result<(), Cause> {
        Ok(())
    }
    /// Returns whether all victims have a priority below [`Evaluator::below`]. A gang without any such pod in its way
    /// is then refused without a search.
    #[inline]
    fn evicts_lower_only(&self) -> bool {
        false
    }
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
