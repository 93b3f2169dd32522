//! Shadow mode: decides for the pods of another scheduler, writes nothing, and counts how often it agrees.

use std::collections::VecDeque;
use std::time::Duration;

use pellucid_cluster::ClusterEvent;
use pellucid_model::{Name, Now, Pod, PodId, PodKey};

use super::Scheduler;
use super::last_attempt::LastAttempt;

/// Disagreements kept as examples.
const EXAMPLES: usize = 50;

/// One pod that went elsewhere than we would have sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Pod.
    pub pod: PodKey,
    /// Our node; `None` when we would have refused it.
    pub ours: Option<Name>,
    /// Where the other scheduler put it.
    pub theirs: Name,
}

/// How often we agreed.
#[derive(Clone, Debug, Default)]
pub struct ShadowTally {
    /// The scheduler that is shadowed.
    pub of: Name,
    /// The same node.
    pub agreed: u64,
    /// Another node.
    pub disagreed: u64,
    /// They placed it, we refused it.
    pub refused_by_us: u64,
    /// They placed it before we looked.
    pub not_compared: u64,
    /// We placed it, and they did not within the time we hold a place.
    pub expired: u64,
    /// The newest disagreements.
    pub examples: VecDeque<Disagreement>,
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
    }

    /// Counts a pod that the shadowed scheduler has bound. Called while its unit is still known, so each
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
            kept => Some(kept.node().map(|node| self.cluster.slot(node).name.clone())),
        };
        if let Some(tally) = &mut self.shadow {
            tally.count(&pod.key, ours, theirs);
        }
    }

    /// Shadow mode gives up places the other scheduler did not confirm.
    pub(crate) fn expire_held(&mut self, now: Now) -> bool {
        let mut any = false;
        while let Some((at, id)) =
            self.in_flight.shadow_holds.first().copied().filter(|(at, _)| *at <= now.monotonic)
        {
            self.in_flight.shadow_holds.remove(&(at, id));
            if let Some(tally) = &mut self.shadow {
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
