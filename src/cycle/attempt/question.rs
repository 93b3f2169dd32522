//! Judges one pod on a copy of a state: what a cycle would decide of it there, and what each node says.
//!
//! It uses the same node results, the same two-pass filter and the same selection as the scheduler. Nothing is placed:
//! Reserve, Permit and PostFilter do not run. A gang's member is judged on its own. Questions of readers are in `what_if`.

use std::sync::Arc;

use pellucid_cluster::Cluster;
use pellucid_framework::profile::{Aside, Profile};
use pellucid_framework::{Cause, View};
use pellucid_model::time::NoProbe;
use pellucid_model::{NodeIdx, Pod, PodId, cancellation};
use pellucid_recording::{Decision, Placement};

use crate::attempt::chain::PluginTally;
use crate::attempt::global_plugins::OneNode;
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::nominations::{AttemptContext, AttemptKind, NominationFilter};
use crate::attempt::search::Scored;

/// The result of one node for a pod.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The node passes all filters.
    Takes,
    /// A filter refuses the node, or PreFilter refuses the pod as a whole.
    Refuses(Arc<Cause>),
    /// PreFilter left the node out, so no filter ran on it.
    LeftOut,
    /// The node no longer exists, but has pods left.
    Gone,
}

impl Answer {
    pub(crate) fn of(results: &NodeResultCache, node: NodeIdx) -> Self {
        if results.is_absent(node) {
            return Self::Gone;
        }
        if let Some(cause) = results.refused_as_a_whole().or_else(|| results.cause(node)) {
            return Self::Refuses(Arc::new(cause.clone()));
        }
        if results.is_feasible(node) { Self::Takes } else { Self::LeftOut }
    }
}

/// The results of one pod for all nodes, on a copy of the state.
pub struct Question<'a> {
    cluster: Cluster,
    profile: &'a Profile,
    pod: Arc<Pod>,
    results: NodeResultCache,
    tally: Vec<PluginTally>,
    aside: Aside,
    decision: Decision,
}

/// Returns a copy of a state in which a pod is not placed. Placed pods are judged on such a copy.
pub fn without_place(state: &Cluster, id: PodId) -> Cluster {
    let mut cluster = state.fork();
    if cluster.pod(id).is_some_and(|record| record.node.is_some()) {
        // The copy is dropped, not rolled back. While the trial is open, a slot stays even when its last pod leaves.
        let _ = cluster.begin_trial();
        cluster.release(id);
    }
    cluster
}

impl<'a> Question<'a> {
    /// Judges a pod, after releasing its place if it has one. Returns `None` if there is no such pod. With
    /// `percentageOfNodesToScore` the search starts at the first node, because `state` does not hold the scheduler's
    /// start.
    pub fn ask(state: &Cluster, profile: &'a Profile, id: PodId) -> Option<Self> {
        cancellation::check();
        let pod = state.pod(id)?.pod.clone();
        let mut cluster = without_place(state, id);
        let mut results = NodeResultCache::default();
        let mut tally = vec![PluginTally::default(); profile.plugins.len()];
        let attempt = AttemptContext::new(profile, (id, &pod), AttemptKind::Alone, &cluster, &NoProbe);
        let ctx = attempt.on(&cluster);
        results.run_filters(&ctx, false, &mut tally);
        results.run_global_filters(&ctx, &mut tally);
        let mut scratch = OneNode::default();
        let mut filter = NominationFilter::new(attempt, &mut cluster, &mut tally, &mut scratch);
        filter.filter_overridden_nodes(&mut results);
        let own = filter.filter_with_nominated_pods(&mut results);
        if own.is_some() {
            // A cycle stops here, but questions about other nodes need their results too.
            filter.filter_with_others_nominated(&mut results);
        }
        filter.score_overridden_nodes(&mut results, 0);
        let ctx = attempt.on(&cluster);
        let decision = match own {
            Some(node) => Decision::Place(Placement::nominated(node, ctx.view.nodes().len())),
            None => results.select_node(&ctx, &mut 0, &mut tally),
        };
        let aside = attempt.aside;
        Some(Self { cluster, profile, pod, results, tally, aside, decision })
    }

    /// Returns the state in which the pod was judged.
    pub fn view(&self) -> View<'_> {
        View::new(&self.cluster)
    }

    /// Returns what a cycle would decide.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the result of one node.
    pub fn answer(&self, node: NodeIdx) -> Answer {
        Answer::of(&self.results, node)
    }

    /// Returns the feasible nodes with their totals, in no particular order.
    pub fn totals(&mut self) -> Vec<(NodeIdx, i64)> {
        let (profile, spec) = (self.profile, &self.pod.spec);
        let view = View::new(&self.cluster).for_pod(&self.pod);
        let ctx = CycleContext { aside: self.aside, ..CycleContext::new(profile, view, spec) };
        if self.results.refused_as_a_whole().is_some() {
            return Vec::new();
        }
        self.results.totals(&ctx, &mut self.tally)
    }

    /// Returns the feasible nodes with their scores, the best first.
    pub fn scores(&mut self) -> Vec<Scored> {
        let (profile, spec) = (self.profile, &self.pod.spec);
        let view = View::new(&self.cluster).for_pod(&self.pod);
        let ctx = CycleContext { aside: self.aside, ..CycleContext::new(profile, view, spec) };
        if self.results.refused_as_a_whole().is_some() {
            return Vec::new();
        }
        self.results.top(&ctx, usize::MAX, &mut self.tally)
    }
}
