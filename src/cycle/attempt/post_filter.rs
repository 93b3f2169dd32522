//! Runs PostFilter: answers a plugin's queries on the state of the attempt, in trials that leave nothing behind.

use std::cell::RefCell;

use pellucid_cluster::preemptions::CandidateResult;
use pellucid_cluster::state::TrialOverlay;
use pellucid_cluster::{Place, PodRecord};
use pellucid_framework::plugin::Evaluator;
use pellucid_framework::post_filter::PostFiltered;
use pellucid_framework::{Cause, Code, View};
use pellucid_model::collections::FxHashMap;
use pellucid_model::{NodeIdx, PodId};

use crate::attempt::node_result_cache::NodeResultCache;
use crate::attempt::nominations::{AttemptKind, NominationFilter};
use crate::attempt::work;

/// The results of a search for victims on single nodes, shared by equal members of a gang that search one after
/// another, each with the plugin that searched (`Enabled::index`). Whoever changes a node removes its result.
pub(crate) type KnownNodes = RefCell<FxHashMap<NodeIdx, (usize, CandidateResult)>>;

/// Answers the queries of PostFilter on the state of the attempt.
struct Questions<'a> {
    filter: NominationFilter<'a>,
    results: &'a NodeResultCache,
    /// The plugin that asks (`Enabled::index`).
    plugin: usize,
    trial: Option<TrialOverlay>,
    /// Pods removed in the trial, with all that they had.
    removed: FxHashMap<PodId, Place>,
    work: u64,
}

impl Questions<'_> {
    /// Returns the shared results of single nodes, unless the pod's result depends on other nodes.
    fn known_nodes(&self) -> Option<&KnownNodes> {
        match self.filter.attempt.kind {
            AttemptKind::Preemptor { known, .. } if !self.results.reads_others => Some(known),
            _ => None,
        }
    }
}

impl Evaluator for Questions<'_> {
    fn view(&self) -> View<'_> {
        View::new(self.filter.cluster)
    }

    fn pod(&self) -> PodId {
        self.filter.attempt.id
    }

    fn refused(&self, node: NodeIdx) -> Option<Code> {
        self.results.refused_as_a_whole().or_else(|| self.results.cause(node)).map(|cause| cause.code)
    }

    fn begin_trial(&mut self) {
        debug_assert!(self.trial.is_none());
        self.trial = Some(self.filter.cluster.begin_trial());
    }

    fn end_trial(&mut self) {
        self.removed.clear();
        if let Some(trial) = self.trial.take() {
            self.filter.cluster.end_trial(trial);
        }
    }

    fn remove(&mut self, pod: PodId) {
        self.work += work::MOVE;
        if let Some(place) = self.filter.cluster.displace(pod) {
            self.removed.insert(pod, place);
        }
    }

    fn restore(&mut self, pod: PodId, node: NodeIdx) {
        self.work += work::MOVE;
        if let Some(place) = self.removed.remove(&pod) {
            debug_assert_eq!(place.node, node);
            self.filter.cluster.put_back(pod, place);
        }
    }

    fn refusal(&mut self, node: NodeIdx) -> Option<Cause> {
        self.work += work::ASK;
        self.filter.refusal(self.results, node)
    }

    fn known(&self, node: NodeIdx) -> Option<CandidateResult> {
        let known = self.known_nodes()?.borrow();
        known.get(&node).filter(|(plugin, _)| *plugin == self.plugin).map(|(_, found)| found.clone())
    }

    fn remember(&mut self, node: NodeIdx, found: &CandidateResult) {
        if let Some(known) = self.known_nodes() {
            known.borrow_mut().insert(node, (self.plugin, found.clone()));
        }
    }

    fn below(&self) -> i32 {
        match self.filter.attempt.kind {
            AttemptKind::Preemptor { below, .. } => below,
            AttemptKind::Alone | AttemptKind::Member(_) => self.filter.attempt.pod.priority,
        }
    }

    fn is_protected(&self, pod: &PodRecord) -> bool {
        let guards = self.filter.attempt.profile.victim_guards.iter();
        let mut guards = guards.filter_map(|enabled| enabled.plugin.victim_guard());
        guards.any(|guard| guard.protects(self.view(), pod))
    }

    fn earlier(&self) -> &[PodId] {
        match self.filter.attempt.kind {
            AttemptKind::Preemptor { earlier, .. } => earlier,
            AttemptKind::Alone | AttemptKind::Member(_) => &[],
        }
    }
}

/// Runs the profile's PostFilter plugins until one nominates. Returns the last result and the work done.
pub(crate) fn post_filter(
    filter: NominationFilter<'_>,
    results: &NodeResultCache,
) -> (Option<PostFiltered>, u64) {
    let plugins = filter.attempt.profile.post_filter.iter();
    let work = filter.cluster.present().len() as u64 / 4;
    let removed = FxHashMap::default();
    let mut questions = Questions { filter, results, plugin: 0, trial: None, removed, work };
    let mut last = None;
    for enabled in plugins {
        let Some(plugin) = enabled.plugin.post_filter() else { continue };
        questions.plugin = enabled.index;
        last = Some(plugin.post_filter(&mut questions));
        questions.end_trial();
        if matches!(last, Some(PostFiltered::Nominate(_))) {
            break;
        }
    }
    (last, questions.work)
}
