//! What pods give up of what they take: a pod in whose room others stand takes only what these leave.
//!
//! The state of a plugin says it ([`DerivedState::given_up`](crate::DerivedState::given_up)), as its holds begin and end. It is
//! part of the undo log, and stays with the pod while it is off its node for a trial.

use std::borrow::Cow;
use std::sync::Arc;

use pellucid_model::PodId;
use pellucid_model::requests::PodRequests;

use crate::changes::Changed;
use crate::state::{Cluster, PodRecord};
use crate::undo::Undo;

impl PodRecord {
    /// Returns what the pod takes on its node of all that it requests.
    pub fn taken(&self) -> Cow<'_, PodRequests> {
        let own = &self.pod.spec.requests;
        self.given.as_ref().map_or(Cow::Borrowed(own), |given| Cow::Owned(own.less(given)))
    }
}

impl Cluster {
    /// Sets what a pod gives up of its requests, placed or not.
    pub(super) fn give(&mut self, id: PodId, given: Option<Arc<PodRequests>>) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        if record.given == given {
            return;
        }
        if let Some(node) = record.node {
            self.columns.take(node, &record.taken(), -1);
        }
        let given = std::mem::replace(&mut record.given, given);
        if let Some(node) = record.node {
            self.columns.take(node, &record.taken(), 1);
            self.changes.push(node, Changed::Usage);
        }
        self.undo.push(Undo::Give { id, given });
    }

    /// Has pods take less or more on their nodes, as the states of plugins say since they were asked last.
    pub(crate) fn settle_given(&mut self) {
        for at in 0..self.derived.len() {
            for (pod, given) in self.derived[at].given_up() {
                self.give(pod, given);
            }
        }
    }
}
