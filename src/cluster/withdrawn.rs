//! Pods of a copy that are taken as gone, for questions about a cluster from which they have left.
//!
//! A withdrawn pod has no place and asks for nothing, but keeps its record, its number and its gang. So a copy without all
//! pods is cheap, and a pod can be asked about on it. What is counted for a pod that is merely there, such as the request of
//! a quota, is no longer. Not undone by overlays.

use pellucid_model::{PodId, cancellation};

use crate::state::Cluster;

impl Cluster {
    /// Takes pods as gone.
    pub fn withdraw(&mut self, pods: &[PodId]) {
        for id in pods {
            cancellation::check();
            self.release(*id);
            let Some(pod) = self.pod(*id).map(|record| record.pod.clone()) else { continue };
            if self.withdrawn.insert(*id) {
                self.derived.iter_mut().for_each(|state| state.pod_withdrawn(*id, &pod));
            }
        }
        self.settle_withdrawn();
    }

    /// Has a pod ask again for what it requests, without a place.
    pub fn bring_back(&mut self, id: PodId) {
        if self.returned(id) {
            self.settle_withdrawn();
        }
    }

    /// Counts a pod again that is to be changed or removed. Returns whether it was withdrawn.
    pub(super) fn returned(&mut self, id: PodId) -> bool {
        let was_withdrawn = !self.withdrawn.is_empty() && self.withdrawn.remove(&id);
        if let Some(pod) = self.pod(id).filter(|_| was_withdrawn).map(|record| record.pod.clone()) {
            self.derived.iter_mut().for_each(|state| state.pod_returned(id, &pod));
        }
        was_withdrawn
    }

    /// Brings the plugins' states up to date, as the next attempt would.
    fn settle_withdrawn(&mut self) {
        self.expire_plugin_state(self.now, &mut Vec::new());
    }
}
