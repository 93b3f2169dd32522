//! Pods that the API server has and the state leaves out: those that have ended, those that wait for another scheduler,
//! and those that are deleted before they were on a node.
//!
//! Readers ask for them by name, to say whose a pod is or how it ended. No decision reads them, they take no room, and a
//! dump leaves them out. At most [`MOST`] are kept; the one that was noted first is pushed out.

use std::collections::VecDeque;

use pellucid_model::pod::PodPhase;
use pellucid_model::{CowMap, Name, Pod, PodKey};

/// Maximum number of pods that are kept.
const MOST: usize = 4096;

/// What is kept of a pod that the state leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsidePod {
    /// `spec.schedulerName`.
    pub scheduler_name: Name,
    /// `spec.nodeName`.
    pub node: Option<Name>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// Whether the pod is being deleted.
    pub deleting: bool,
}

/// The pods that the state leaves out, by name. Cheap to copy for readers.
#[derive(Debug, Default)]
pub struct OutsidePods {
    pods: CowMap<PodKey, OutsidePod>,
    /// The names in the order in which they were noted, some of them no longer in `pods`. Not copied for readers.
    order: VecDeque<PodKey>,
    count: usize,
    pushed_out: u64,
}

impl OutsidePods {
    /// Returns a copy for readers.
    pub(crate) fn fork(&self) -> Self {
        Self { pods: self.pods.clone(), order: VecDeque::new(), ..*self }
    }

    /// Finds a pod by namespace and name.
    pub fn get(&self, key: &PodKey) -> Option<&OutsidePod> {
        self.pods.get(key)
    }

    /// Returns how many pods were pushed out since the start.
    pub fn pushed_out(&self) -> u64 {
        self.pushed_out
    }

    /// Notes a pod that the state leaves out.
    pub(crate) fn note(&mut self, pod: &Pod) {
        let outside = OutsidePod {
            scheduler_name: pod.scheduler_name.clone(),
            node: pod.node_name.clone(),
            phase: pod.phase,
            deleting: pod.deleting,
        };
        if let Some(known) = self.pods.get(&pod.key) {
            if *known != outside {
                self.pods.insert(pod.key.clone(), outside);
            }
            return;
        }
        self.pods.insert(pod.key.clone(), outside);
        self.order.push_back(pod.key.clone());
        self.count += 1;
        while self.count > MOST
            && let Some(first) = self.order.pop_front()
        {
            let was_kept = self.pods.remove(&first).is_some();
            self.count -= usize::from(was_kept);
            self.pushed_out += u64::from(was_kept);
        }
        // Names of forgotten pods are at most as many as the others, so clearing them out costs a constant per pod.
        if self.order.len() > 2 * self.count + 64 {
            let pods = &self.pods;
            self.order.retain(|key| pods.get(key).is_some());
        }
    }

    /// Forgets a pod that is gone, or that is in the state now.
    pub(crate) fn forget(&mut self, key: &PodKey) {
        if self.count > 0 && self.pods.remove(key).is_some() {
            self.count -= 1;
        }
    }

    /// Returns the names of the pods that are kept, in no particular order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &PodKey> {
        self.pods.iter().map(|(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(number: usize) -> Pod {
        Pod { key: PodKey::new("d", &format!("p{number}")), scheduler_name: "other".into(), ..Pod::default() }
    }

    #[test]
    fn the_first_is_pushed_out_and_what_was_forgotten_leaves_nothing_behind() {
        let mut outside = OutsidePods::default();
        (0..MOST + 2).for_each(|number| outside.note(&pod(number)));
        assert_eq!((outside.count, outside.pushed_out(), outside.keys().count()), (MOST, 2, MOST));
        assert_eq!((outside.get(&pod(1).key), outside.get(&pod(2).key).is_some()), (None, true));
        for round in 0..3 {
            (0..MOST + 2).for_each(|number| outside.forget(&pod(number).key));
            assert_eq!((outside.count, outside.keys().count()), (0, 0));
            (0..MOST).for_each(|number| outside.note(&pod(number)));
            assert!(outside.order.len() <= 2 * outside.count + 64, "round {round}: {}", outside.order.len());
        }
        assert_eq!(outside.keys().count(), outside.count);
    }

    #[test]
    fn a_reader_keeps_what_it_saw() {
        let mut outside = OutsidePods::default();
        outside.note(&pod(1));
        let seen = outside.fork();
        outside.note(&Pod { phase: PodPhase::Failed, ..pod(1) });
        assert_eq!(seen.get(&pod(1).key).map(|pod| pod.phase), Some(PodPhase::Pending));
        assert_eq!(outside.get(&pod(1).key).map(|pod| pod.phase), Some(PodPhase::Failed));
        assert_eq!(outside.count, 1);
    }
}
