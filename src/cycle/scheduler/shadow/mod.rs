//! Shadow mode: decides for another scheduler's pods, writes nothing, counts how often both agree, and judges where the
//! other one bound them.
//!
//! - [`judged`]: what the judgements came to; `peer`: the state on which they are made

pub mod judged;
pub(super) mod peer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::{ClusterEvent, Input};
use pellucid_model::{Name, Now, Pod, PodId, PodKey};

use self::judged::Judged;
use self::peer::Peer;
use crate::scheduler::Scheduler;
use crate::scheduler::records::last_attempt::LastAttempt;

/// Number of disagreements that are kept as examples.
const EXAMPLES: usize = 50;

/// A pod that the other scheduler bound to another node than ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Namespace and name of the pod.
    pub pod: PodKey,
    /// Our node; `None` if we refused the pod.
    pub ours: Option<Name>,
    /// The node to which the other scheduler bound it.
    pub theirs: Name,
}

/// How often our decisions agreed with the shadowed scheduler's.
#[derive(Clone, Debug, Default)]
pub struct ShadowTally {
    /// Name of the shadowed scheduler.
    pub of: Name,
    /// Both chose the same node.
    pub agreed: u64,
    /// Both placed the pod, on different nodes.
    pub disagreed: u64,
    /// The other scheduler placed the pod; ours found no node.
    pub refused_by_us: u64,
    /// The other scheduler placed the pod before our first attempt.
    pub not_compared: u64,
    /// We placed the pod; the other scheduler did not within 30 s.
    pub expired: u64,
    /// The newest disagreements, at most 50.
    pub examples: VecDeque<Disagreement>,
    /// What its Bindings were, each judged on the state right before it.
    pub judged: Arc<Judged>,
}

/// What shadow mode keeps: the counts that are published, and the state on which Bindings are judged.
pub(crate) struct Shadow {
    pub(crate) tally: ShadowTally,
    /// `None` on a copy of a published state, which sees no Bindings.
    pub(crate) peer: Option<Peer>,
}

impl ShadowTally {
    /// Counts a pod that the other scheduler has bound. `ours` is our decision, if there was one.
    pub fn count(&mut self, pod: &PodKey, ours: Option<Option<Name>>, theirs: &Name) {
        match ours {
            None => return self.not_compared += 1,
            Some(Some(node)) if node == *theirs => return self.agreed += 1,
            Some(Some(_)) => self.disagreed += 1,
            Some(None) => self.refused_by_us += 1,
        }
        let example = Disagreement { pod: pod.clone(), ours: ours.flatten(), theirs: theirs.clone() };
        self.examples.push_back(example);
        if self.examples.len() > EXAMPLES {
            self.examples.pop_front();
        }
    }
}

/// How long shadow mode holds a place for a pod that the other scheduler does not bind.
const SHADOW_HOLD: Duration = Duration::from_secs(30);

impl Scheduler {
    /// Holds a place until the other scheduler binds the pod.
    pub(crate) fn hold_in_shadow(&mut self, id: PodId, now: Now) {
        self.in_flight.shadow_holds.insert((now.monotonic + SHADOW_HOLD, id));
        if let (Some(Shadow { tally, peer: Some(peer) }), Some(record)) =
            (&mut self.shadow, self.cluster.pod(id))
        {
            peer.placed_by_us(&record.pod.key, Arc::make_mut(&mut tally.judged), now);
        }
    }

    /// Judges what an input says of the shadowed scheduler, if there is one.
    pub(super) fn judge_shadowed(&mut self, input: &Input, now: Now) {
        if let Some(Shadow { tally, peer: Some(peer) }) = &mut self.shadow {
            peer.observe(input, Arc::make_mut(&mut tally.judged), now);
        }
    }

    /// Counts a pod that the shadowed scheduler has bound. It is called while the pod still has a unit, so that each
    /// pod is counted once.
    pub(super) fn compare_with_shadowed(&mut self, id: PodId, known: &Pod) {
        if self.shadow.is_none() || self.queue.unit_of(id).is_none() {
            return;
        }
        let Some(pod) = self.cluster.pod(id).map(|r| r.pod.clone()) else { return };
        if pod.uid != known.uid {
            return;
        }
        let Some(theirs) = &pod.node_name else { return };
        let ours = match self.last_attempt(id) {
            LastAttempt::Nothing => None,
            last => Some(last.node().map(|node| self.cluster.node_name(node).clone())),
        };
        if let Some(Shadow { tally, .. }) = &mut self.shadow {
            tally.count(&pod.key, ours, theirs);
        }
    }

    /// Gives up places that the other scheduler did not confirm in time. Returns whether there were any.
    pub(crate) fn expire_held(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some((at, id)) =
            self.in_flight.shadow_holds.first().copied().filter(|(at, _)| *at <= now.monotonic)
        {
            self.in_flight.shadow_holds.remove(&(at, id));
            if let Some(Shadow { tally, .. }) = &mut self.shadow {
                tally.expired += 1;
            }
            let record = self.cluster.pod(id).map(|r| (r.pod.clone(), r.node));
            self.give_up(id, now);
            if let Some((pod, Some(node))) = record {
                self.wake(&ClusterEvent::PodReleased { pod, node }, now);
            }
            any = true;
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_counted_once() {
        let mut tally = ShadowTally::default();
        let (pod, a, b) = (PodKey::new("d", "p"), Name::new("a"), Name::new("b"));
        tally.count(&pod, None, &a);
        tally.count(&pod, Some(Some(a.clone())), &a);
        tally.count(&pod, Some(Some(b)), &a);
        tally.count(&pod, Some(None), &a);
        assert_eq!((tally.not_compared, tally.agreed, tally.disagreed, tally.refused_by_us), (1, 1, 1, 1));
        assert_eq!(tally.examples.len(), 2);
    }
}
