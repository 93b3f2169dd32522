//! Tracks pending pods that are being deleted and have left the state, until the API server confirms the deletion, so
//! that their history ends when they do.
//!
//! No decision reads this. Pods on nodes are not tracked here: they stay in the state until they are gone.

use std::sync::Arc;

use pellucid_cluster::{ClusterEvent, Input};
use pellucid_model::collections::{HashMap, HashSet};
use pellucid_model::{Now, PodKey};
use pellucid_recording::flight::{Departure, FlightEvent};

use crate::scheduler::Scheduler;
use crate::scheduler::records::events::{Departures, NOBODY};

/// Maximum number of tracked pods; the history of any other pod ends when its deletion begins.
const KEPT: usize = 4096;

/// Pods that are being deleted, with their uids.
#[derive(Debug, Default)]
pub(crate) struct Leaving(HashMap<PodKey, Arc<str>>);

impl Leaving {
    /// Removes and returns the pods that an input shows to be gone, sorted by key.
    fn gone(&mut self, input: &Input) -> Vec<PodKey> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut gone: Vec<PodKey> = match input {
            Input::PodDeleted(key) => vec![key.clone()],
            Input::PodApplied(pod) if self.0.get(&pod.key).is_some_and(|uid| *uid != pod.uid) => {
                vec![pod.key.clone()]
            }
            Input::PodsReset { pods, quarantined } => {
                let unreadable = quarantined.iter().filter(|q| q.kind == "Pod").map(|q| &q.uid);
                let there: HashSet<&Arc<str>> = pods.iter().map(|pod| &pod.uid).chain(unreadable).collect();
                self.0.iter().filter(|(_, uid)| !there.contains(uid)).map(|(key, _)| key.clone()).collect()
            }
            _ => Vec::new(),
        };
        gone.retain(|key| self.0.remove(key).is_some());
        gone.sort();
        gone
    }
}

impl Scheduler {
    /// Records the end of pods that an input shows to be gone. Call it before recording anything new under their names.
    pub(crate) fn record_left(&mut self, input: &Input, now: Now) {
        for key in self.records.leaving.gone(input) {
            self.record_event((NOBODY, &key), "", FlightEvent::Left(Departure::Deleted), now);
        }
    }

    /// Tracks the pods that an input removed from the state although the API server still has them.
    pub(crate) fn track_leaving(&mut self, events: &[ClusterEvent], departures: &Departures) {
        for event in events {
            if let ClusterEvent::PendingRemoved { pod, .. } = event
                && departures.of(pod) == Departure::Deleting
                && self.records.leaving.0.len() < KEPT
            {
                self.records.leaving.0.insert(pod.key.clone(), pod.uid.clone());
            }
        }
    }
}
