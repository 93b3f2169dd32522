//! What was found about overridden nodes, kept for the next pod of the same shape where all overrides last
//! ([`NodeOverrides::lasts`]).
//!
//! It holds while the node did not change, the same pods are absent, and no plugin that reads more than the node concerns the
//! pod, in the actual state and in the trial.
//!
//! [`NodeOverrides::lasts`]: pellucid_framework::NodeOverrides::lasts

use pellucid_framework::Cause;
use pellucid_framework::plugin::Measure;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{NodeIdx, PodId};
use smallvec::SmallVec;

use crate::attempt::node_result_cache::NodeResultCache;
use crate::attempt::overrides::{Overridden, find};

/// The result of one overridden node.
struct Kept {
    absent: SmallVec<[PodId; 2]>,
    cause: Option<Cause>,
    measures: Vec<Measure>,
    /// Raw scores, if the node was scored.
    scores: Option<RawScores>,
}

/// Raw scores as [`Overridden`] has them: of the plugins whose scores are cached, and of the others, which are all 0.
type RawScores = (Vec<i32>, SmallVec<[(usize, i64); 2]>);

/// The results of overridden nodes of one shape.
#[derive(Default)]
pub(crate) struct KeptOverrides(FxHashMap<NodeIdx, Kept>);

impl KeptOverrides {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Forgets the nodes that have changed.
    pub(crate) fn forget(&mut self, is_changed: impl Fn(NodeIdx) -> bool) {
        if !self.0.is_empty() {
            self.0.retain(|node, _| !is_changed(*node));
        }
    }
}

impl NodeResultCache {
    /// Keeps what a trial found of an overridden node.
    pub(crate) fn keep(&mut self, node: NodeIdx, cause: Option<&Cause>) {
        let Some(of) = find(self.overridden(), node) else { return };
        let kept = Kept {
            absent: of.absent.clone(),
            cause: cause.cloned(),
            measures: of.measures.clone(),
            scores: of.is_scored.then(|| (of.cached.clone(), of.global.clone())),
        };
        self.kept.0.insert(node, kept);
    }

    /// Takes over what is kept of an overridden node. Returns the cause for which it is refused, `None` when nothing is kept.
    pub(crate) fn recall(&mut self, node: NodeIdx, is_scored: bool) -> Option<Option<Cause>> {
        let Self { kept, attempt, .. } = self;
        let overridden: &mut [Overridden] = &mut attempt.as_mut()?.overridden;
        let at = overridden.binary_search_by_key(&node, |of| of.node).ok()?;
        let of = &mut overridden[at];
        let known = kept.0.get(&node).filter(|known| known.absent == of.absent)?;
        if is_scored && known.cause.is_none() {
            let (cached, global) = known.scores.clone()?;
            (of.cached, of.global, of.is_scored) = (cached, global, true);
        }
        of.measures.clone_from(&known.measures);
        Some(known.cause.clone())
    }
}
