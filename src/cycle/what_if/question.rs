//! Answers questions about single pods on a copy of a published state: what would a cycle decide now?
//!
//! One pod and all nodes is [`Question`], which the attempt brings; here is one node and many pods.

use std::sync::Arc;

use pellucid_cluster::{Cluster, ShapeId};
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, View};
use pellucid_model::collections::FxHashMap;
use pellucid_model::time::NoProbe;
use pellucid_model::{NodeIdx, Pod, PodId};

use crate::attempt::chain::PluginTally;
use crate::attempt::global_plugins::OneNode;
use crate::attempt::node_result_cache::NodeResultCache;
use crate::attempt::nominations::{AttemptContext, AttemptKind, NominationFilter};
use crate::attempt::overrides::of_pod;
pub use crate::attempt::question::{Answer, Question, without_place};
use crate::scheduler::inputs::gated;

/// Returns whether nodes answer for a pod alone and not for all of its shape: a nominated pod does not count against
/// itself, and a pod with overrides sees nodes differently from equal pods.
pub fn is_own(cluster: &Cluster, profile: &Profile, (id, pod): (PodId, &Pod)) -> bool {
    cluster.nominator().of(id).is_some() || !of_pod(profile, View::new(cluster), &pod.spec, pod).is_empty()
}

/// Returns why PreEnqueue holds a pod back, or `None` if it does not. No node takes such a pod.
pub fn held_back(profile: &Profile, pod: &Pod) -> Option<Cause> {
    gated(profile, pod)?.pod_cause
}

/// The results of many pods for one node, on a copy of the state. Pods of one shape are judged once.
pub struct NodeQuestion {
    cluster: Cluster,
    node: NodeIdx,
    /// Answers by profile and shape, and also by pod if the pod is nominated or has overrides.
    known: FxHashMap<(usize, ShapeId, Option<PodId>), Answer>,
}

impl NodeQuestion {
    /// Creates a question about one node.
    pub fn new(state: &Cluster, node: NodeIdx) -> Self {
        Self { cluster: state.fork(), node, known: FxHashMap::default() }
    }

    /// Judges a pending pod. Returns `None` if there is no such pod.
    pub fn ask(&mut self, (number, profile): (usize, &Profile), id: PodId) -> Option<Answer> {
        let record = self.cluster.pod(id)?;
        let (pod, shape) = (record.pod.clone(), record.shape);
        if let Some(refusal) = gated(profile, &pod) {
            return refusal.pod_cause.map(|cause| Answer::Refuses(Arc::new(cause)));
        }
        let is_own = is_own(&self.cluster, profile, (id, &pod));
        let key = (number, shape, is_own.then_some(id));
        if let Some(known) = self.known.get(&key) {
            return Some(known.clone());
        }
        let mut results = NodeResultCache::default();
        let mut tally = vec![PluginTally::default(); profile.plugins.len()];
        let attempt = AttemptContext::new(profile, (id, &pod), AttemptKind::Alone, &self.cluster, &NoProbe);
        let ctx = attempt.on(&self.cluster);
        results.look_at(&ctx, self.node, &mut tally);
        results.run_global_filters(&ctx, &mut tally);
        let mut scratch = OneNode::default();
        let mut filter = NominationFilter::new(attempt, &mut self.cluster, &mut tally, &mut scratch);
        filter.filter_overridden_nodes(&mut results);
        filter.filter_with_nominated_pods(&mut results);
        let answer = Answer::of(&results, self.node);
        self.known.insert(key, answer.clone());
        Some(answer)
    }
}
