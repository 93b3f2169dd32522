//! The steps of the search: which nodes are tried, and who has to go from one node.
//!
//! Follows kube-scheduler's steps, but walks the nodes by name from an offset derived from the pod's name,
//! instead of a random one.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::preemptions::{Candidate, CandidateResult, Plan, Rejected, VictimChoice};
use pellucid_model::cause::{Cause, Code, Reason};
use pellucid_model::{GangKey, Name, NodeIdx, Pod, PodId, cancellation, natural_order, stable_hash};

use super::{VictimRules, gangs, pick};
use crate::post_filter::{Budgets, Evaluator, Preemptor};
use crate::view::View;

/// Maximum number of candidates stored for explanations.
const REMEMBERED: usize = 10;
/// Maximum number of example nodes per cause.
const EXAMPLES: usize = 3;

/// Returns the plan. Its first candidate, if any, is the one to use.
pub(super) fn search<R: VictimRules>(
    rules: &R,
    evaluator: &mut dyn Evaluator,
    preemptor: Preemptor<'_>,
) -> Plan {
    let (plugin, mut rejected) = (rules.name(), Groups::default());
    let potential = potential(plugin, evaluator, &mut rejected);
    let view = evaluator.view();
    let mut plan =
        Plan { plugin, total_nodes: view.nodes().len(), potential: potential.len(), ..Plan::default() };
    let is_hopeless = rules.has_no_victims(view, &preemptor);
    let search = Search { rules, preemptor, budgets: Budgets::beside(view.cluster(), evaluator.earlier()) };
    let wanted = rules.wanted(potential.len());
    let mut candidates: Vec<Candidate> = Vec::new();
    let (before, after) = potential.split_at(start_of(preemptor.pod, potential.len()));
    for node in after.iter().chain(before) {
        let no_violation = candidates.iter().any(|c| c.cost.budget_violations == 0);
        if no_violation && candidates.len() >= wanted {
            break;
        }
        cancellation::check();
        plan.tried += 1;
        let tried = match evaluator.known(*node) {
            _ if is_hopeless => Err(no_victims(plugin)),
            Some(known) => known,
            None => search.try_node(evaluator, *node),
        };
        match tried {
            Ok(candidate) => candidates.push(candidate),
            Err(cause) => rejected.add(cause, evaluator.view().name(*node)),
        }
    }
    plan.found = candidates.len();
    let cluster = evaluator.view().cluster();
    candidates.sort_by(|a, b| pick::compare(cluster, a, b));
    if let [best, second, ..] = &candidates[..] {
        plan.decided_by = Some(pick::decided_by(&best.cost, &second.cost));
    }
    candidates.truncate(REMEMBERED);
    plan.candidates = candidates;
    plan.rejected = rejected.0;
    plan
}

/// Returns the nodes where removing pods might help, in name order. Adds the others to `rejected`.
fn potential(plugin: &'static str, evaluator: &dyn Evaluator, rejected: &mut Groups) -> Vec<NodeIdx> {
    let (view, mut potential) = (evaluator.view(), Vec::new());
    let mut others = (0, Vec::new());
    for node in view.cluster().by_name() {
        if evaluator.refused(*node) == Some(Code::Unschedulable) {
            potential.push(*node);
            continue;
        }
        others.0 += 1;
        if others.1.len() < EXAMPLES {
            others.1.push(view.name(*node).clone());
        }
    }
    if others.0 > 0 {
        let cause = unresolvable(plugin, ReasonCode::PreemptionNotHelpful);
        rejected.0.push(Rejected { cause, count: others.0, examples: others.1 });
    }
    potential
}

fn unresolvable(plugin: &'static str, reason: ReasonCode) -> Cause {
    Cause::new(plugin, Code::UnschedulableAndUnresolvable, Reason::of(reason))
}

fn no_victims(plugin: &'static str) -> Cause {
    unresolvable(plugin, ReasonCode::NoPreemptionVictims)
}

/// Returns the index where the walk over the nodes starts. The hash of the pod's name spreads it, so that pods do not
/// all try the same nodes.
fn start_of(pod: &Pod, n: usize) -> usize {
    if n == 0 { 0 } else { (stable_hash::seeded(0, &pod.key.to_string()) % n as u64) as usize }
}

#[derive(Default)]
struct Groups(Vec<Rejected>);

impl Groups {
    fn add(&mut self, cause: Cause, name: &Name) {
        let at = self.0.iter().position(|r| r.cause == cause).unwrap_or_else(|| {
            self.0.push(Rejected { cause, count: 0, examples: Vec::new() });
            self.0.len() - 1
        });
        let group = &mut self.0[at];
        group.count += 1;
        if group.examples.len() < EXAMPLES {
            group.examples.push(name.clone());
        }
    }
}

/// What stays the same from node to node.
struct Search<'a, R> {
    rules: &'a R,
    preemptor: Preemptor<'a>,
    budgets: Budgets,
}

impl<R: VictimRules> Search<'_, R> {
    /// Evaluates one node: removes all pods that may be victims, then restores them one by one, the most important
    /// first.
    fn try_node(&self, evaluator: &mut dyn Evaluator, node: NodeIdx) -> CandidateResult {
        let (view, budgets) = (evaluator.view(), &self.budgets);
        let cluster = view.cluster();
        let on_node = cluster.slot(node).pods.iter().filter_map(|id| Some((*id, cluster.pod(*id)?)));
        let mut pool: Vec<Target> = on_node
            .filter(|(_, record)| self.rules.may_be_victim(view, &self.preemptor, record))
            .filter(|(_, record)| !evaluator.is_protected(record))
            .map(|(id, record)| Target::new(id, record.pod.clone()))
            .collect();
        if pool.is_empty() {
            return Err(no_victims(self.rules.name()));
        }
        gangs::keep_together(cluster, &mut pool);
        pool.sort_by(importance);
        let violated = budgets.violated(pool.iter().map(|t| &*t.pod));
        pool.iter_mut().zip(violated).for_each(|(target, violates)| target.violates_budget = violates);
        // Disruption budgets and gangs depend on pods on other nodes, so such a result is not cached per node.
        let is_local = self.rules.is_local()
            && pool.iter().all(|t| t.gang.is_none())
            && !budgets.concern(pool.iter().map(|t| &*t.pod));
        evaluator.begin_trial();
        for target in &pool {
            evaluator.remove(target.id);
        }
        let victims = match self.refusal(evaluator, node) {
            Some(cause) => Err(cause),
            None => Ok(self.reprieve(evaluator, pool, node)),
        };
        evaluator.end_trial();
        let found = victims.map(|victims| candidate(evaluator.view(), node, &victims));
        if is_local {
            evaluator.remember(node, &found);
        }
        found
    }

    /// Returns why the preemptor cannot have the node in the state of the trial.
    fn refusal(&self, evaluator: &mut dyn Evaluator, node: NodeIdx) -> Option<Cause> {
        let refusal = evaluator.refusal(node);
        refusal.or_else(|| self.rules.condition(evaluator.view(), &self.preemptor, node).err())
    }

    /// Restores every pod that can stay, pods with a violated budget first. Returns the others, which are the victims.
    fn reprieve(&self, evaluator: &mut dyn Evaluator, pool: Vec<Target>, node: NodeIdx) -> Vec<Target> {
        let (violating, others): (Vec<_>, Vec<_>) = pool.into_iter().partition(|t| t.violates_budget);
        let mut victims = Vec::new();
        for target in violating.into_iter().chain(others) {
            cancellation::check();
            evaluator.restore(target.id, node);
            if self.refusal(evaluator, node).is_some() {
                evaluator.remove(target.id);
                victims.push(target);
            }
        }
        victims.sort_by(importance);
        victims
    }
}

fn candidate(view: View<'_>, node: NodeIdx, victims: &[Target]) -> Candidate {
    let cost = pick::cost(view.cluster(), victims);
    let choice = |t: &Target| VictimChoice {
        pod: t.id,
        key: t.pod.key.clone(),
        stands_for: t.pod.stands_for.clone(),
        violates_budget: t.violates_budget,
    };
    Candidate { node, name: view.name(node).clone(), victims: victims.iter().map(choice).collect(), cost }
}

/// A pod that might be evicted.
pub(super) struct Target {
    id: PodId,
    pub(super) pod: Arc<Pod>,
    pub(super) violates_budget: bool,
    /// Gang of the pod, if the gang could lose its quorum; see `gangs`.
    pub(super) gang: Option<GangKey>,
    /// Whether the gang already lacks its quorum.
    pub(super) is_broken: bool,
    /// Start time of the pod, or of the first pod of its gang on this node.
    pub(super) since: i64,
}

impl Target {
    #[inline]
    pub(super) fn new(id: PodId, pod: Arc<Pod>) -> Self {
        let since = started(&pod);
        Self { id, pod, violates_budget: false, gang: None, is_broken: false, since }
    }
}

/// Returns the start time. A pod that has not started counts as starting last.
#[inline]
fn started(pod: &Pod) -> i64 {
    pod.started.unwrap_or(i64::MAX)
}

/// Orders the most important pod first: higher priority, then earlier start. A pod that has not started is the least
/// important. Ties are broken by name, the last first with numbers by their value, so that the choice is deterministic. Of pods
/// that were numbered as they came the latest, such as `web-10` of ten, is then the most important, as in kube-scheduler. At equal
/// priority, all pods of a gang rank like the earliest of them, because they go together, and pods of a gang that lacks its quorum rank below all
/// others.
#[inline]
pub(super) fn importance(a: &Target, b: &Target) -> std::cmp::Ordering {
    let by_name = |a: &Target, b: &Target| {
        let (a, b) = (&a.pod.key, &b.pod.key);
        natural_order(&a.name, &b.name).then_with(|| a.namespace.cmp(&b.namespace))
    };
    let by_priority = b.pod.priority.cmp(&a.pod.priority);
    by_priority
        .then(a.is_broken.cmp(&b.is_broken))
        .then_with(|| (a.since, &a.gang).cmp(&(b.since, &b.gang)))
        .then_with(|| started(&a.pod).cmp(&started(&b.pod)))
        .then_with(|| by_name(b, a))
}
