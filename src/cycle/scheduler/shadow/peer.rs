//! The cluster as the shadowed scheduler may see it, without the places that we hold, on which its Bindings are judged.
//!
//! Our own plan runs ahead of it: a burst of pods has places here within milliseconds, while it binds them one by one. So
//! its Bindings are not compared with our plan but judged anew, each on the state right before it, with the code that
//! decides. What it had assumed and not yet bound at that moment nobody outside can know; where its Bindings arrive out of
//! order, a judgement may differ for that alone. Nothing is placed or ordered here.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::{Cluster, Input};
use pellucid_framework::profile::Profile;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{Name, NodeIdx, Now, Pod, PodId, PodKey};
use pellucid_recording::Decision;

use super::judged::{Judged, JudgedDecision, Judgement, Shares};
use crate::attempt::question::{Answer, Question};

/// Most judgements in a second of the monotonic clock. One costs about as much as an attempt at a pod of a new shape.
const A_SECOND: u32 = 200;

/// When a pending pod was first seen, and whether it was called unschedulable since.
struct Seen {
    at: Duration,
    is_placed_by_us: bool,
    is_refused_by_them: bool,
}

/// The state of the shadowed scheduler, as far as the API server shows it.
pub(crate) struct Peer {
    of: Name,
    profile: Arc<Profile>,
    cluster: Cluster,
    seen: FxHashMap<PodKey, Seen>,
    /// The second in which judgements are counted, and their number.
    judged_in: (u64, u32),
}

impl Peer {
    pub(crate) fn new(of: Name, profile: Arc<Profile>, cluster: Cluster) -> Self {
        Self { of, profile, cluster, seen: FxHashMap::default(), judged_in: (0, 0) }
    }

    /// Takes note of our own placement of a pod.
    pub(super) fn placed_by_us(&mut self, key: &PodKey, judged: &mut Judged, now: Now) {
        if let Some(seen) = self.seen.get_mut(key).filter(|seen| !seen.is_placed_by_us) {
            seen.is_placed_by_us = true;
            judged.ours_took.add(now.monotonic.saturating_sub(seen.at));
        }
    }

    /// Judges what an input says of the shadowed scheduler's decisions, and applies the input.
    pub(super) fn observe(&mut self, input: &Input, judged: &mut Judged, now: Now) {
        self.cluster.set_now(now);
        match input {
            Input::PodApplied(pod) if pod.scheduler_name == self.of => self.judge(pod, judged, now),
            Input::PodDeleted(key) => _ = self.seen.remove(key),
            Input::PodsReset { pods, .. } => self.reset(pods, judged, now),
            _ => {}
        }
        let mut events = Vec::new();
        self.cluster.apply(input.clone(), &mut events);
        if self.cluster.next_plugin_deadline(now).is_some_and(|at| at <= now.monotonic) {
            self.cluster.expire_plugin_state(now, &mut events);
        }
    }

    /// Of several Bindings in one list the order is not known, so none is judged.
    fn reset(&mut self, pods: &[Arc<Pod>], judged: &mut Judged, now: Now) {
        let mut before = std::mem::take(&mut self.seen);
        for pod in pods.iter().filter(|pod| pod.scheduler_name == self.of) {
            let seen = before.remove(&pod.key);
            if pod.node_name.is_none() {
                let new = Seen { at: now.monotonic, is_placed_by_us: false, is_refused_by_them: false };
                self.seen.insert(pod.key.clone(), seen.unwrap_or(new));
            } else if seen.is_some() {
                judged.not_judged += 1;
            }
        }
    }

    fn judge(&mut self, pod: &Arc<Pod>, judged: &mut Judged, now: Now) {
        let known = self.cluster.find_pod(&pod.key).filter(|id| self.is_pending(*id, pod));
        let Some(id) = known else {
            if pod.node_name.is_none() {
                let new = Seen { at: now.monotonic, is_placed_by_us: false, is_refused_by_them: false };
                self.seen.insert(pod.key.clone(), new);
            }
            return;
        };
        let is_refused =
            pod.scheduled.as_ref().is_some_and(|said| !said.is_true && &*said.reason == "Unschedulable");
        match &pod.node_name {
            Some(theirs) => {
                if let Some(seen) = self.seen.remove(&pod.key) {
                    judged.theirs_took.add(now.monotonic.saturating_sub(seen.at));
                }
                match self.may_judge(now) {
                    true => self.judge_binding((id, pod), theirs, judged, now),
                    false => judged.not_judged += 1,
                }
            }
            None if is_refused => self.judge_refusal((id, pod), judged, now),
            None => {}
        }
    }

    fn is_pending(&self, id: PodId, pod: &Pod) -> bool {
        self.cluster.pod(id).is_some_and(|record| record.node.is_none() && record.pod.uid == pod.uid)
    }

    fn may_judge(&mut self, now: Now) -> bool {
        let second = now.monotonic.as_secs();
        if self.judged_in.0 != second {
            self.judged_in = (second, 0);
        }
        self.judged_in.1 += 1;
        self.judged_in.1 <= A_SECOND
    }

    fn judge_binding(&self, (id, pod): (PodId, &Pod), theirs: &Name, judged: &mut Judged, now: Now) {
        let node = self.cluster.find_node(theirs).filter(|node| self.cluster.node(*node).is_some());
        let (Some(node), Some(mut question)) = (node, Question::ask(&self.cluster, &self.profile, id)) else {
            return judged.not_judged += 1;
        };
        let ours = chosen(&question);
        let judgement = judgement(&mut question, node, ours, self.cluster.present().len());
        let shares = match judgement {
            Judgement::LowerScore { .. } => shares(&mut question, &self.profile, ours, node),
            _ => Vec::new(),
        };
        judged.count(JudgedDecision {
            pod: pod.key.clone(),
            priority: pod.priority,
            at: now.wall,
            theirs: Some(theirs.clone()),
            ours: ours.map(|node| self.cluster.node_name(node).clone()),
            judgement,
            shares,
        });
    }

    /// Judges, once per pod, that it was called unschedulable.
    fn judge_refusal(&mut self, (id, pod): (PodId, &Pod), judged: &mut Judged, now: Now) {
        if self.seen.get(&pod.key).is_none_or(|seen| seen.is_refused_by_them) || !self.may_judge(now) {
            return;
        }
        if let Some(seen) = self.seen.get_mut(&pod.key) {
            seen.is_refused_by_them = true;
        }
        let ours = Question::ask(&self.cluster, &self.profile, id).and_then(|question| chosen(&question));
        let Some(ours) = ours else { return };
        judged.count(JudgedDecision {
            pod: pod.key.clone(),
            priority: pod.priority,
            at: now.wall,
            theirs: None,
            ours: Some(self.cluster.node_name(ours).clone()),
            judgement: Judgement::RefusedByThem,
            shares: Vec::new(),
        });
    }
}

/// Returns the node that a cycle would choose.
fn chosen(question: &Question<'_>) -> Option<NodeIdx> {
    match question.decision() {
        Decision::Place(placement) => Some(placement.node),
        Decision::Refuse(_) => None,
    }
}

fn judgement(question: &mut Question<'_>, node: NodeIdx, ours: Option<NodeIdx>, nodes: usize) -> Judgement {
    if ours == Some(node) {
        return Judgement::SameNode;
    }
    match question.answer(node) {
        Answer::Takes => {}
        Answer::Refuses(cause) => {
            return Judgement::Infeasible { cause: Some(cause), is_everywhere: ours.is_none() };
        }
        Answer::LeftOut | Answer::Gone => {
            return Judgement::Infeasible { cause: None, is_everywhere: ours.is_none() };
        }
    }
    let totals = question.totals();
    let theirs = totals.iter().find(|(of, _)| *of == node).map_or(0, |(_, total)| *total);
    let best = totals.iter().map(|(_, total)| *total).max().unwrap_or(theirs);
    if theirs == best {
        return Judgement::EqualScore;
    }
    let better = totals.iter().filter(|(_, total)| *total > theirs).count();
    let (feasible, sample) = (totals.len(), default_sample(nodes));
    let is_within_sampling = feasible > sample && feasible - better >= sample;
    Judgement::LowerScore { totals: (theirs, best), better, feasible, is_within_sampling }
}

/// Returns how many feasible nodes kube-scheduler looks for by default (`percentageOfNodesToScore` 0): 50 % less one for
/// every 125 nodes, at least 5 % and 100 nodes.
fn default_sample(nodes: usize) -> usize {
    let percentage = 50_usize.saturating_sub(nodes / 125).max(5);
    (nodes * percentage / 100).max(100).min(nodes)
}

/// Returns the plugins whose weighted scores differ between our node and theirs.
fn shares(
    question: &mut Question<'_>,
    profile: &Profile,
    ours: Option<NodeIdx>,
    theirs: NodeIdx,
) -> Vec<Shares> {
    let rows = question.scores();
    let of = |node: NodeIdx| rows.iter().find(|row| row.node == node);
    let (Some(ours), Some(theirs)) = (ours.and_then(of), of(theirs)) else { return Vec::new() };
    let weighted = |share: &Option<(i64, i64, i64)>| share.map(|(_, _, weighted)| weighted);
    let pairs = ours.shares.iter().zip(&theirs.shares).zip(profile.score.iter());
    let all = pairs.map(|((a, b), entry)| (entry.plugin.name(), weighted(a), weighted(b)));
    all.filter(|(_, a, b)| a != b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_kube_schedulers() {
        let all = [(10, 10), (100, 100), (200, 100), (1_000, 420), (5_000, 500), (6_000, 300)];
        for (nodes, want) in all {
            assert_eq!(default_sample(nodes), want, "{nodes}");
        }
    }
}
