//! The search for victims that plugins share: finds nodes that would take a pod if some of their pods were evicted, and
//! the cheapest of them.
//!
//! A plugin says by [`VictimRules`] who may be evicted, and calls [`post_filter`] at its own PostFilter. What must hold
//! beside the filters is [`PostFilter::condition`]. The search follows kube-scheduler's steps (`search`), knows
//! PodDisruptionBudgets and gangs (`gangs`), and ranks the candidates by kube-scheduler's criteria (`pick`). It only
//! plans: the cycle evicts, nominates and waits.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::PodRecord;
use pellucid_cluster::preemptions::Plan;
use pellucid_model::PodId;
use pellucid_model::cause::{Code, nodes_message};

use super::plugin::Plugin;
use super::post_filter::{Evaluator, PostFilter, PostFiltered, Preemptor};
use super::view::View;

mod gangs;
mod pick;
mod search;

pub use pick::decided_by;

#[cfg(test)]
mod tests;

/// What a plugin decides about a search for victims.
pub trait VictimRules: Plugin + PostFilter {
    /// Returns whether a placed pod may be evicted for the preemptor. Asked once per pod on a node, before any of them
    /// is removed. Pods that another plugin protects ([`VictimGuard`](super::post_filter::VictimGuard)) are no victims
    /// in any case.
    fn may_be_victim(&self, view: View<'_>, preemptor: &Preemptor<'_>, victim: &PodRecord) -> bool;

    /// Returns whether it is known without looking at the nodes that no pod may be evicted.
    #[inline]
    fn has_no_victims(&self, _view: View<'_>, _preemptor: &Preemptor<'_>) -> bool {
        false
    }

    /// Returns the number of candidates that is enough, given the number of nodes where removing pods might help.
    #[inline]
    fn wanted(&self, potential: usize) -> usize {
        potential
    }

    /// Returns whether victims and condition depend on nothing but the pods on the node, the preemptor's spec and
    /// [`Preemptor::below`]. Results of single nodes are then shared by equal members of a gang.
    #[inline]
    fn is_local(&self) -> bool {
        false
    }
}

/// Searches for a node and the pods to evict from it, by the rules of a plugin.
pub fn post_filter<R: VictimRules>(rules: &R, evaluator: &mut dyn Evaluator) -> PostFiltered {
    let (id, below) = (evaluator.pod(), evaluator.below());
    let Some(pod) = evaluator.view().cluster().pod(id).map(|r| r.pod.clone()) else {
        return PostFiltered::NotEligible { message: "".into() };
    };
    let preemptor = Preemptor { id, pod: &pod, below };
    if let Some(code) = ineligible(rules, evaluator, preemptor) {
        return PostFiltered::NotEligible { message: code.message("").into() };
    }
    let plan = search::search(rules, evaluator, preemptor);
    if plan.candidates.is_empty() {
        return PostFiltered::Nothing { message: message(&plan).into(), plan: Arc::new(plan) };
    }
    PostFiltered::Nominate(Arc::new(plan))
}

/// Returns why the pod may not preempt at all, or `None` if it may.
fn ineligible<R: VictimRules>(
    rules: &R,
    evaluator: &dyn Evaluator,
    preemptor: Preemptor<'_>,
) -> Option<ReasonCode> {
    let Preemptor { id, pod, .. } = preemptor;
    if pod.never_preempts {
        return Some(ReasonCode::PreemptionPolicyNever);
    }
    let view = evaluator.view();
    let cluster = view.cluster();
    let node = cluster.find_node(&cluster.nominator().of(id)?.node)?;
    if evaluator.refused(node) == Some(Code::UnschedulableAndUnresolvable) {
        return None;
    }
    // Victims of an earlier preemption of the pod alone count as well.
    let alone = Preemptor { below: pod.priority, ..preemptor };
    // Those that it awaits itself count whatever the rules say by now, and whichever plugin chose them.
    let own = cluster.preemptions().of(id);
    let is_own = |victim: PodId| {
        own.is_some_and(|p| p.victims.iter().any(|v| v.pod == victim && v.state.is_awaited()))
    };
    let is_going = |victim: &PodId| {
        cluster.pod(*victim).is_some_and(|r| {
            let ordered = cluster.preemptions().victim(*victim).is_some();
            (ordered || (r.pod.deleting && r.pod.is_preempted))
                && (is_own(*victim) || rules.may_be_victim(view, &alone, r))
        })
    };
    cluster.slot(node).pods.iter().any(is_going).then_some(ReasonCode::PreemptionUnderWay)
}

/// Returns why no candidate was found, in kube-scheduler's message format.
fn message(plan: &Plan) -> String {
    let reasons =
        plan.rejected.iter().flat_map(|r| r.cause.reasons.iter().map(|why| (why.message(), r.count)));
    nodes_message(plan.total_nodes, reasons)
}
