//! Restores from a dump what the inputs do not carry (placements, nominations, gang history), and repeats a decision.
//!
//! For offline use only: no order is carried out and nothing is reported. A running scheduler is never restored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::{Nomination, Stage};
use pellucid_model::effect::BindingMarks;
use pellucid_model::time::NoProbe;
use pellucid_model::{GangKey, Name, Now, PodId, PodKey};
use pellucid_queue::QueueStage;
use pellucid_recording::Verdict;

use crate::attempt::overrides::affinity;
use crate::attempt::reserve::reserve_unmarked;
use crate::scheduler::Scheduler;

impl Scheduler {
    /// Begins the restoration, before any input: plugins see what follows as at this time.
    pub fn restore_begin(&mut self, plugin_time: Now) {
        self.cluster.expire_plugin_state(plugin_time, &mut Vec::new());
    }

    /// Places a pod on its node as at the wall time `since`. What its plugins held is read back from the marks of its
    /// Binding; what leaves no marks is reserved again, as far as the state allows.
    pub fn restore_place(
        &mut self,
        key: &PodKey,
        node: &Name,
        (stage, since): (Stage, Duration),
        marks: Option<&Arc<BindingMarks>>,
    ) {
        let Some(id) = self.cluster.find_pod(key) else { return };
        let Some(record) = self.cluster.pod(id) else { return };
        let (pod, is_placed) = (record.pod.clone(), record.node.is_some());
        if is_placed {
            return self.cluster.set_since(id, since);
        }
        if !stage.is_placed() {
            return;
        }
        if let Some(unit) = self.queue.unit_of(id) {
            self.end_unit(id, unit);
        }
        let profile = self.profiles.by_name.get(&pod.scheduler_name).map(|at| self.profiles.all[*at].clone());
        let profile = profile.filter(|_| stage != Stage::Bound);
        let aligned = profile
            .as_ref()
            .zip(self.cluster.find_node(node))
            .and_then(|(profile, node)| affinity(&mut self.cluster, profile, &pod, node).ok().flatten());
        self.cluster.place_by_name(id, node, stage);
        self.cluster.set_since(id, since);
        if let Some(marks) = marks {
            self.cluster.read_marks(id, marks);
        }
        let place = self.cluster.pod(id).and_then(|r| r.node);
        let (Some(node), Some(profile)) = (place, profile) else { return };
        drop(reserve_unmarked(&mut self.cluster, &profile, (id, &pod), node, aligned));
    }

    /// Replaces all nominations.
    pub fn restore_nominations(&mut self, nominations: BTreeMap<PodKey, Nomination>) {
        let known: Vec<PodId> = self.cluster.pods().map(|(id, _)| id).collect();
        for id in known {
            self.cluster.nominator_mut().end(id);
        }
        for (key, nomination) in nominations {
            if let Some(id) = self.cluster.find_pod(&key) {
                self.cluster.nominator_mut().nominate(id, nomination);
            }
        }
    }

    /// Restores the history of a gang.
    pub fn restore_gang(&mut self, key: &GangKey, once: bool, partial: bool, overdue: bool, had_group: bool) {
        self.cluster.restore_gang(key, had_group, |history| {
            history.once_satisfied = once;
            history.is_partial = partial;
            history.is_overdue = overdue;
        });
    }

    /// Ends the restoration: updates units and gates, and discards all orders.
    pub fn restore_end(&mut self, starts: Vec<usize>, now: Now) {
        self.settle_plugin_state(now);
        if starts.len() == self.profiles.starts.len() {
            self.profiles.starts = starts;
        }
        self.review_gangs(now);
        self.take_effects();
    }

    /// Decides on a pending pod as [`step`](Self::step) would on its turn. Fails if the pod is missing, is not to be
    /// placed, or gets no decision.
    pub fn decide_again(&mut self, key: &PodKey, now: Now) -> Result<Verdict, String> {
        self.cluster.set_now(now);
        let id = self.cluster.find_pod(key).ok_or_else(|| format!("there is no pod {key}"))?;
        let unit = self.queue.unit_of(id).ok_or_else(|| format!("pod {key} is not to be placed"))?;
        let held = self.queue.unit(unit).filter(|u| u.stage == QueueStage::Gated);
        if let Some(gang) = held.map(|u| u.gang.clone()) {
            // Members were judged one by one as they joined, possibly in another order.
            if let Some(gang) = gang {
                self.judge_gated(&gang, id, now);
            }
        } else {
            while self.queue.pop().is_some_and(|next| next != unit) {}
            while self.schedule_one(unit, now, &NoProbe).is_none()
                && self.queue.unit(unit).is_some_and(|u| u.is_paused)
            {
                self.queue.pop_paused();
            }
        }
        self.verdict(id).ok_or_else(|| format!("nothing was decided about pod {key}"))
    }
}
