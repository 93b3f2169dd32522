//! The account of an attempt: how far a group came and which member stopped it, and the rounds that Koordinator counts.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::gangs::LastTry;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{GangKey, Now, PodId};
use pellucid_recording::Refusal;
use pellucid_recording::gang_verdict::{GangRefusal, attempt_message};

use super::plan::GangAttempt;
use super::trial::{Fate, Trial};
use crate::scheduler::Scheduler;

impl Scheduler {
    pub(super) fn account(
        &self,
        attempt: &GangAttempt,
        trial: &Trial,
        orders: Vec<&'static str>,
    ) -> GangRefusal {
        let shares = attempt.shares(&trial.placed);
        let is_short = |i: usize| {
            let gang = attempt.candidates[i].gang;
            trial.placed[gang] < attempt.needs[gang]
        };
        let failed = trial.failed();
        // What depends on other pods may hold no more once the members behind are placed.
        let is_lasting = |(i, refusal): &&(usize, &Arc<Refusal>)| is_short(*i) && !depends_on_pods(refusal);
        let root = failed.iter().find(is_lasting).or(failed.iter().rfind(|(i, _)| is_short(*i)));
        let root = root.or(failed.first());
        let root = root.map(|(i, refusal)| (attempt.candidates[*i].pod.key.clone(), (*refusal).clone()));
        let is_room = |code| matches!(code, ReasonCode::InsufficientResource | ReasonCode::TooManyPods);
        let code = match &root {
            Some((_, refusal)) if refusal.reasons().any(|(r, _)| is_room(r.code)) => {
                ReasonCode::GangInsufficientCapacity
            }
            _ => ReasonCode::GangMemberUnschedulable,
        };
        let fates = trial.fates.iter().enumerate();
        let not_asked = fates.filter(|(i, fate)| matches!(fate, Fate::NotAsked) && is_short(*i));
        let not_evaluated = not_asked.count() as u32;
        let message = attempt_message(&shares, root.as_ref());
        GangRefusal { code, message, root_cause: root, shares, not_evaluated, orders, is_truncated: false }
    }

    /// Begins the next of Koordinator's rounds if every pending member was tried in the current one.
    pub(super) fn begin_round(&mut self, attempt: &GangAttempt) {
        for (at, key) in attempt.keys.iter().enumerate() {
            self.cluster.gangs_mut().update(key, |gang| {
                let cycle = gang.history.schedule_cycle;
                let mut waiting = attempt.candidates.iter().filter(|c| c.gang == at);
                if waiting.all(|c| gang.members.get(&c.id).is_some_and(|m| m.round == cycle)) {
                    gang.history.schedule_cycle += 1;
                    gang.history.is_cycle_valid = true;
                }
            });
        }
    }

    /// Notes which members were tried in this round, with their results.
    pub(super) fn end_round(&mut self, attempt: &GangAttempt, trial: &Trial, now: Now) {
        let mut of_gang: FxHashMap<usize, Vec<(PodId, LastTry)>> = FxHashMap::default();
        for (i, member) in attempt.candidates.iter().enumerate() {
            let last = match &trial.fates[i] {
                Fate::NotAsked => LastTry::NotEvaluated,
                Fate::Placed(..) => LastTry::Placeable,
                Fate::Failed(_) => LastTry::Failed,
            };
            of_gang.entry(member.gang).or_default().push((member.id, last));
        }
        for (at, key) in attempt.keys.iter().enumerate() {
            let lasts = of_gang.remove(&at).unwrap_or_default();
            self.cluster.gangs_mut().update(key, |gang| {
                let cycle = gang.history.schedule_cycle;
                for (id, last) in lasts {
                    if last == LastTry::Failed && attempt.is_strict {
                        gang.history.is_cycle_valid = false;
                    }
                    if let Some(member) = gang.members.get_mut(&id) {
                        member.round = cycle;
                        member.last = last;
                    }
                }
                if trial.n_placed() > 0 && trial.is_quorum(&attempt.needs) {
                    gang.history.schedule_start.get_or_insert(now);
                }
            });
        }
    }

    pub(super) fn record_satisfied(&mut self, keys: &[GangKey], now: Now) {
        for key in keys {
            self.cluster.gangs_mut().update(key, |gang| {
                gang.history.once_satisfied = true;
                gang.history.is_partial = true;
                gang.history.rejected = None;
                gang.history.schedule_start.get_or_insert(now);
            });
        }
    }
}

/// Whether a refusal may end because more pods are placed: a pod that is required beside it, or a spread over domains.
fn depends_on_pods(refusal: &Refusal) -> bool {
    let depends = |code| matches!(code, ReasonCode::PodAffinityMismatch | ReasonCode::SpreadSkewTooLarge);
    refusal.reasons().any(|(reason, _)| depends(reason.code))
}
