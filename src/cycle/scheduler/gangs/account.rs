//! The account of an attempt: how far a group came and which member stopped it, and the rounds that Koordinator counts.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::gangs::LastTry;
use pellucid_model::collections::FxHashMap;
use pellucid_model::{GangKey, Now, PodId, PodKey};
use pellucid_recording::Refusal;
use pellucid_recording::gang_verdict::{GangRefusal, GangShare};

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
        let root = failed.iter().find(|(i, _)| is_short(*i)).or(failed.first());
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
        let message = words(&shares, root.as_ref());
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

/// Maximum number of gangs named in a message, which goes to every member.
const MAX_GANGS_REPORTED: usize = 8;

/// Returns a message on how far a group came.
fn words(shares: &[GangShare], root: Option<&(PodKey, Arc<Refusal>)>) -> Arc<str> {
    let of_gang = |s: &GangShare| {
        format!("{}: {} of {} members that its quorum needs can be placed", s.gang, s.placeable, s.wanted)
    };
    // For a large group, the message names only gangs that are short.
    let is_reported = |s: &&GangShare| shares.len() <= MAX_GANGS_REPORTED || s.placeable < s.wanted;
    let reported: Vec<&GangShare> = shares.iter().filter(is_reported).collect();
    let mut gangs: Vec<String> = reported.iter().take(MAX_GANGS_REPORTED).map(|s| of_gang(s)).collect();
    if reported.len() > MAX_GANGS_REPORTED {
        gangs.push(format!("{} more gangs are short too", reported.len() - MAX_GANGS_REPORTED));
    }
    if gangs.is_empty() {
        gangs.push(format!("{} gangs have the members that their quorums need", shares.len()));
    }
    let gangs = gangs.join("; ");
    match root {
        Some((pod, refusal)) => format!("{gangs}; {pod} cannot: {}", refusal.message()).into(),
        None => gangs.into(),
    }
}
