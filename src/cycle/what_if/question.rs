//! Questions about single pods, answered on a copy of a published state: what a cycle would say now.
//!
//! The same rows, the same two passes for nominations, the same choice as in `scheduler`. Nothing is placed: Reserve, Permit and
//! PostFilter are not asked. A member of a gang is asked about alone.

use std::sync::Arc;

use pellucid_cluster::{Cluster, ShapeId};
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, View};
use pellucid_model::collections::FxHashMap;
use pellucid_model::time::NoProbe;
use pellucid_model::{NodeIdx, Pod, PodId, patience};
use pellucid_recording::{Decision, Placement};

use crate::attempt::chain::PluginTally;
use crate::attempt::node_result_cache::{CycleContext, NodeResultCache};
use crate::attempt::nominations::{AttemptContext, AttemptKind, NominationFilter};
use crate::attempt::search::Scored;
use crate::scheduler::inputs::gated;

/// What a node says to a pod.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It passes all filters.
    Takes,
    /// It does not.
    Refuses(Arc<Cause>),
    /// Nobody looked: PreFilter left the node out.
    LeftOut,
    /// There is no such node any more, only pods that are still on it.
    Gone,
}

impl Answer {
    /// Returns the cause of a refusal.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Refuses(cause) => Some(cause),
            Self::Takes | Self::LeftOut | Self::Gone => None,
        }
    }

    fn of(results: &NodeResultCache, node: NodeIdx) -> Self {
        if results.is_absent(node) {
            return Self::Gone;
        }
        if let Some(cause) = results.refused_as_a_whole().or_else(|| results.cause(node)) {
            return Self::Refuses(Arc::new(cause.clone()));
        }
        if results.is_feasible(node) { Self::Takes } else { Self::LeftOut }
    }
}

/// One pod on a copy of the state, asked about all nodes.
pub struct Question<'a> {
    cluster: Cluster,
    profile: &'a Profile,
    pod: Arc<Pod>,
    results: NodeResultCache,
    tally: Vec<PluginTally>,
    decision: Decision,
}

/// Returns a copy of a state in which a pod has no place: how every pod is asked about that has one.
pub fn without_place(state: &Cluster, id: PodId) -> Cluster {
    let mut cluster = state.fork();
    if cluster.pod(id).is_some_and(|record| record.node.is_some()) {
        // The copy is dropped and not undone. While the trial is open, a slot stays that the pod leaves as the last one.
        let _ = cluster.begin_trial();
        cluster.release(id);
    }
    cluster
}

impl<'a> Question<'a> {
    /// Asks. A pod that has a place is taken off it first. `None`: there is no such pod. With
    /// `percentageOfNodesToScore` the search starts at the first node, because where a cycle's would is not published.
    pub fn ask(state: &Cluster, profile: &'a Profile, id: PodId) -> Option<Self> {
        patience::check();
        let pod = state.pod(id)?.pod.clone();
        let mut cluster = without_place(state, id);
        let mut results = NodeResultCache::default();
        let mut tally = vec![PluginTally::default(); profile.plugins.len()];
        {
            let ctx = CycleContext { profile, view: View::new(&cluster), spec: &pod.spec, probe: &NoProbe };
            results.run_filters(&ctx, false, &mut tally);
            results.run_global_filters(&ctx, &mut tally);
        }
        let attempt = AttemptContext { profile, id, pod: &pod, kind: AttemptKind::Alone, probe: &NoProbe };
        let own =
            NominationFilter::new(attempt, &mut cluster, &mut tally).filter_with_nominated_pods(&mut results);
        if own.is_some() {
            // A cycle stops here; whoever asks about another node wants to know of it too.
            NominationFilter::new(attempt, &mut cluster, &mut tally)
                .filter_with_others_nominated(&mut results);
        }
        let ctx = CycleContext { profile, view: View::new(&cluster), spec: &pod.spec, probe: &NoProbe };
        let decision = match own {
            Some(node) => Decision::Place(Placement::nominated(node, ctx.view.nodes().len())),
            None => results.select_node(&ctx, &mut 0, &mut tally),
        };
        Some(Self { cluster, profile, pod, results, tally, decision })
    }

    /// Returns what a cycle would decide.
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Returns the state that was asked, without the pod.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns what one node says.
    pub fn answer(&self, node: NodeIdx) -> Answer {
        Answer::of(&self.results, node)
    }

    /// Returns the feasible nodes with their scores, the best first.
    pub fn scores(&mut self) -> Vec<Scored> {
        let (profile, spec) = (self.profile, &self.pod.spec);
        let ctx = CycleContext { profile, view: View::new(&self.cluster), spec, probe: &NoProbe };
        if self.results.refused_as_a_whole().is_some() {
            return Vec::new();
        }
        self.results.top(&ctx, usize::MAX, &mut self.tally)
    }
}

/// Many pods on a copy of the state, asked about one node. Pods of one shape are asked once.
pub struct NodeQuestion {
    cluster: Cluster,
    node: NodeIdx,
    /// By profile and shape, and by the pod where that matters.
    known: FxHashMap<(usize, ShapeId, Option<PodId>), Answer>,
}

impl NodeQuestion {
    /// Begins.
    pub fn new(state: &Cluster, node: NodeIdx) -> Self {
        Self { cluster: state.fork(), node, known: FxHashMap::default() }
    }

    /// Asks about a pod that has no place. `None`: there is no such pod.
    pub fn ask(&mut self, (number, profile): (usize, &Profile), id: PodId) -> Option<Answer> {
        let record = self.cluster.pod(id)?;
        let (pod, shape) = (record.pod.clone(), record.shape);
        if let Some(refusal) = gated(profile, &pod) {
            return refusal.pod_cause.map(|cause| Answer::Refuses(Arc::new(cause)));
        }
        // A pod does not make room for itself.
        let is_nominee = self.cluster.nominator().of(id).is_some();
        let key = (number, shape, is_nominee.then_some(id));
        if let Some(known) = self.known.get(&key) {
            return Some(known.clone());
        }
        let mut results = NodeResultCache::default();
        let mut tally = vec![PluginTally::default(); profile.plugins.len()];
        {
            let ctx =
                CycleContext { profile, view: View::new(&self.cluster), spec: &pod.spec, probe: &NoProbe };
            results.look_at(&ctx, self.node, &mut tally);
            results.run_global_filters(&ctx, &mut tally);
        }
        let attempt = AttemptContext { profile, id, pod: &pod, kind: AttemptKind::Alone, probe: &NoProbe };
        NominationFilter::new(attempt, &mut self.cluster, &mut tally)
            .filter_with_nominated_pods(&mut results);
        let answer = Answer::of(&results, self.node);
        self.known.insert(key, answer.clone());
        Some(answer)
    }
}
