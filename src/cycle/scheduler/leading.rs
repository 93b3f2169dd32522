//! Leading and standing by: of several instances one makes attempts and writes, the others keep their state current and
//! answer questions.
//!
//! A standby applies every input, so that its state, queue and derived states are those of a scheduler that has just
//! started. It takes no unit from the queue and orders nothing. When it begins to lead, it orders what it would have
//! ordered before about pods that no attempt will be made at: gated pods, members of gangs that are held back, and pods
//! that cannot be read. What the former leader has written already is not ordered again.
//!
//! An instance that loses the lead ends; its reservations and orders end with it. So there is no way back from leading
//! to a clean standby, only one that stops.

use std::sync::Arc;

use pellucid_cluster::input::Quarantined;
use pellucid_model::{GangKey, Now, Pod, PodId};
use pellucid_queue::QueueStage;
use pellucid_recording::Outcome;

use crate::scheduler::Scheduler;

impl Scheduler {
    /// Returns whether attempts are made and effects ordered.
    pub fn is_leading(&self) -> bool {
        self.is_leading
    }

    /// Begins or ceases to lead.
    pub(crate) fn set_leading(&mut self, is_leading: bool, now: Now) {
        let begins = is_leading && !self.is_leading;
        self.is_leading = is_leading;
        if begins {
            self.report_held_back(now);
        }
    }

    /// Reports on the pods that no attempt will be made at.
    fn report_held_back(&mut self, now: Now) {
        let gated = self.queue.units().map(|(_, unit)| unit).filter(|unit| unit.stage == QueueStage::Gated);
        let (gangs, pods): (Vec<_>, Vec<_>) = gated.partition(|unit| unit.gang.is_some());
        let gangs: Vec<GangKey> = gangs.iter().filter_map(|unit| unit.gang.clone()).collect();
        let pods: Vec<PodId> = pods.iter().flat_map(|unit| unit.pods.iter().copied()).collect();
        for id in pods {
            self.report_gated_again(id);
        }
        for rep in gangs {
            self.report_blocked_again(&rep, now);
        }
        let unreadable: Vec<Quarantined> = self.cluster.quarantined().cloned().collect();
        self.report_quarantined(&unreadable);
    }

    fn report_gated_again(&mut self, id: PodId) {
        let pod: Option<Arc<Pod>> = self.cluster.pod(id).map(|record| record.pod.clone());
        let Some(pod) = pod else { return };
        if let Some(Outcome::Gated(refusal)) = self.last_attempt(id).outcome() {
            let message = refusal.message();
            self.report_if_changed(&pod, "SchedulingGated", message);
        }
    }
}
