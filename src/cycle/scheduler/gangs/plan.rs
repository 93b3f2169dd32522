//! The transaction: members of a group are placed on one overlay, and a quorum is committed or undone as a whole.
//!
//! All placements that are committed are made in one slice, so no other unit comes between them. Strict: if no order
//! of the members gives every gang its quorum, everything is undone, and the verdict describes the order that came
//! furthest. NonStrict: what fits is committed and waits (`waiting`).

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::ShapeId;
use pellucid_framework::View;
use pellucid_model::collections::FxHashSet;
use pellucid_model::gang::GangMode;
use pellucid_model::{GangKey, Now, Pod, PodId};
use pellucid_queue::{RefusedBy, UnitId, WakeGroup};
use pellucid_recording::gang_verdict::{GangOutcome, GangRefusal, GangShare, GangVerdict, member_refusal};
use pellucid_recording::{Outcome, Verdict};

use super::trial::{Fate, Trial};
use crate::attempt::refusal::plugins_that_filter;
use crate::attempt::work;
use crate::scheduler::records::draft::Recorded;
use crate::scheduler::{Scheduler, Step};

/// A member to be placed.
pub(super) struct Candidate {
    pub(super) id: PodId,
    pub(super) pod: Arc<Pod>,
    pub(super) shape: ShapeId,
    pub(super) profile: usize,
    /// Index of its gang in the group.
    pub(super) gang: usize,
}

impl Candidate {
    /// Returns its profile and shape. Members that agree in both are interchangeable.
    pub(super) fn kind(&self) -> (usize, ShapeId) {
        (self.profile, self.shape)
    }
}

/// The pending members of a group, and how many of each gang are needed.
pub(super) struct GangAttempt {
    pub(super) unit: UnitId,
    pub(super) rep: GangKey,
    pub(super) keys: Vec<GangKey>,
    /// Members needed per gang.
    pub(super) needs: Vec<u32>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) is_strict: bool,
}

impl GangAttempt {
    /// Returns for each gang how many members are needed, and how many were placed.
    pub(super) fn shares(&self, placed: &[u32]) -> Vec<GangShare> {
        let gangs = self.keys.iter().cloned().zip(&self.needs).zip(placed);
        gangs.map(|((gang, wanted), n)| GangShare { gang, wanted: *wanted, placeable: *n }).collect()
    }
}

impl Scheduler {
    /// Whether the group still has this unit. The ids of ended units are reused.
    pub(super) fn is_still(&self, unit: UnitId, rep: &GangKey) -> bool {
        self.gangs.groups.get(rep).is_some_and(|group| group.unit == Some(unit))
    }

    /// Returns the members to place, nominated ones first, then by priority and age, and how many are needed.
    pub(super) fn ask(&mut self, unit: UnitId, rep: &GangKey) -> Option<GangAttempt> {
        let keys = self.gangs.groups.get(rep)?.keys.clone();
        let mut candidates = Vec::new();
        for id in &self.queue.unit(unit)?.pods {
            let Some(record) = self.cluster.pod(*id) else { continue };
            let key = record.pod.member_of();
            let Some(gang) = key.and_then(|key| keys.binary_search(key).ok()) else { continue };
            let (pod, shape) = (record.pod.clone(), record.shape);
            candidates.push(Candidate { id: *id, profile: self.profile_index(&pod), pod, shape, gang });
        }
        // Room that was made for nominated members is theirs.
        let is_free = |c: &Candidate| self.cluster.nominator().of(c.id).is_none();
        candidates.sort_by(|a, b| {
            let order = is_free(a).cmp(&is_free(b)).then(b.pod.priority.cmp(&a.pod.priority));
            order.then(a.pod.created.cmp(&b.pod.created)).then_with(|| a.pod.key.cmp(&b.pod.key))
        });
        let gangs: Vec<_> = keys.iter().filter_map(|k| self.cluster.gangs().get(k)).collect();
        let needs = gangs.iter().map(|g| g.need()).collect();
        let is_strict = gangs.iter().any(|g| g.definition.mode == GangMode::Strict);
        Some(GangAttempt { unit, rep: rep.clone(), keys, needs, candidates, is_strict })
    }

    /// Settles a committed quorum, and starts the binding of its members together.
    pub(super) fn keep_quorum(&mut self, attempt: &GangAttempt, trial: &Trial, now: Now) -> Vec<Step> {
        let placed: Vec<usize> =
            trial.sequence.iter().copied().filter(|i| matches!(trial.fates[*i], Fate::Placed(..))).collect();
        let outcome = GangOutcome::Placed { members: placed.len() as u32, order: trial.order };
        self.store_gang_verdict(attempt, outcome, now);
        self.end_round(attempt, trial, now);
        let steps = placed.iter().map(|i| self.settle_member(attempt, *i, trial, now)).collect();
        let had = |key: &GangKey| self.cluster.gangs().get(key).is_some_and(|g| g.history.once_satisfied);
        let gangs = attempt.keys.iter().map(|key| (key.clone(), had(key))).collect();
        self.record_satisfied(&attempt.keys, now);
        let ids: Vec<PodId> = placed.iter().map(|i| attempt.candidates[*i].id).collect();
        self.start_quorum(gangs, &ids, now);
        steps
    }

    /// Moves a placed member to an in-flight unit of its own, and stores its verdict.
    pub(super) fn settle_member(&mut self, attempt: &GangAttempt, i: usize, trial: &Trial, now: Now) -> Step {
        let member = &attempt.candidates[i];
        let tries = self.tries(attempt);
        self.fly(member.id, &member.pod, now);
        let Fate::Placed(placement) = &trial.fates[i] else {
            unreachable!("only placed members are settled")
        };
        self.consume_nomination(member.id, &member.pod, Some(placement.node), now);
        self.records.counters.placed += 1;
        let recorded = self.record(trial.drafts[i].as_ref(), now);
        let verdict = self.store_verdict(member.id, Outcome::Placed(*placement), now);
        step_of(member, tries, verdict, recorded)
    }

    /// Returns the number of attempts at the unit, and when it first entered the queue.
    fn tries(&self, attempt: &GangAttempt) -> (u32, Duration) {
        self.queue.unit(attempt.unit).map_or((0, Duration::ZERO), |u| (u.attempts, u.first_queued_at))
    }

    /// Refuses a group of which nothing was placed: stores the verdict, reports it on the pods and parks the unit.
    pub(super) fn refuse_group(
        &mut self,
        attempt: &GangAttempt,
        refusal: GangRefusal,
        trial: Option<&Trial>,
        work: u64,
        now: Now,
    ) -> Vec<Step> {
        let refusal = Arc::new(refusal);
        self.records.counters.refused += 1;
        self.store_gang_verdict(attempt, GangOutcome::Refused(refusal.clone()), now);
        if let Some(trial) = trial {
            self.end_round(attempt, trial, now);
        }
        let steps = self.refuse_members(attempt, &refusal, trial, now);
        self.park(attempt, trial, work, now);
        steps
    }

    /// Stores and reports the verdict of each member that was not placed.
    pub(super) fn refuse_members(
        &mut self,
        attempt: &GangAttempt,
        refusal: &GangRefusal,
        trial: Option<&Trial>,
        now: Now,
    ) -> Vec<Step> {
        let total = self.cluster.present().len();
        let code = if trial.is_some() { ReasonCode::GangSiblingUnschedulable } else { refusal.code };
        let of_siblings = Arc::new(member_refusal(code, &refusal.message, total));
        self.turns.work += attempt.candidates.len() as u64 * work::ASK;
        let mut steps = Vec::new();
        for (i, member) in attempt.candidates.iter().enumerate() {
            if self.cluster.pod(member.id).is_none_or(|r| r.node.is_some()) {
                continue;
            }
            // A member that was placed and then rolled back has nothing to record.
            let (own, recorded) = match trial.map(|t| (&t.fates[i], &t.drafts[i])) {
                Some((Fate::Failed(own), draft)) => (own.clone(), self.record(draft.as_ref(), now)),
                _ => (of_siblings.clone(), (None, None)),
            };
            let tries = self.tries(attempt);
            self.report_if_changed(&member.pod, "Unschedulable", own.message());
            let verdict = self.store_verdict(member.id, Outcome::Refused(own), now);
            steps.push(step_of(member, tries, verdict, recorded));
        }
        steps
    }

    /// Parks the unit until an event could help one of the members without a place. The backoff grows with the work of
    /// the attempt.
    pub(super) fn park(&mut self, attempt: &GangAttempt, trial: Option<&Trial>, work: u64, now: Now) {
        let of_rules = self.gangs.common_rules().map(|r| r.backoff).unwrap_or_default();
        let at_least = of_rules.max(work::backoff(work));
        let way = |c: &Candidate, by: RefusedBy| (WakeGroup::new(c.shape, c.profile, by), c.id);
        let failed = trial.map(Trial::failed).unwrap_or_default();
        let mut ways: Vec<(WakeGroup, PodId)> =
            failed.iter().map(|(i, refusal)| way(&attempt.candidates[*i], refusal.refused_by)).collect();
        if ways.is_empty() {
            ways.extend(attempt.candidates.first().map(|c| way(c, RefusedBy::default())));
        } else {
            let failed = failed.iter().map(|(i, _)| attempt.candidates[*i].kind()).collect();
            self.add_given_up(attempt, failed, &mut ways);
        }
        self.queue.refuse_gang(attempt.unit, ways, at_least, now.monotonic);
        let gangs = attempt.keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let needs = gangs.map(|gang| gang.need()).collect();
        if let Some(group) = self.gangs.groups.get_mut(&attempt.rep) {
            group.refused_with = needs;
        }
    }

    /// Adds a way for each kind of member that is not placed though none of that kind was refused: their places were given
    /// up because `failed` kinds had none. With a place elsewhere they would leave theirs to those.
    fn add_given_up(
        &mut self,
        attempt: &GangAttempt,
        failed: FxHashSet<(usize, ShapeId)>,
        ways: &mut Vec<(WakeGroup, PodId)>,
    ) {
        let mut known = failed;
        for member in &attempt.candidates {
            let is_placed = self.cluster.pod(member.id).is_none_or(|r| r.node.is_some());
            if is_placed || !known.insert(member.kind()) {
                continue;
            }
            self.turns.work += work::ASK;
            let profile = &self.profiles.all[member.profile];
            let view = View::new(&self.cluster).for_pod(&member.pod);
            let filters = plugins_that_filter(profile, view, &member.pod.spec);
            if !filters.is_empty() {
                ways.push((WakeGroup::with_place(member.shape, member.profile, filters), member.id));
            }
        }
    }

    pub(super) fn store_gang_verdict(&mut self, attempt: &GangAttempt, outcome: GangOutcome, now: Now) {
        let attempts = self.queue.unit(attempt.unit).map_or(0, |u| u.attempts);
        self.keep_gang_verdict(&attempt.keys, attempts, outcome, now);
        for key in &attempt.keys {
            self.cluster.gangs_mut().update(key, |gang| gang.history.attempts += 1);
        }
    }

    /// Stores the verdict of a group for each of its gangs.
    pub(super) fn keep_gang_verdict(
        &mut self,
        keys: &[GangKey],
        attempts: u32,
        outcome: GangOutcome,
        now: Now,
    ) {
        let changes = self.cluster.changes().count();
        let verdict =
            GangVerdict { cycle: self.cycle, attempts, at: now, changes, group: keys.into(), outcome };
        let verdict = Arc::new(verdict);
        self.record_gang(&verdict, now);
        for key in keys {
            self.gangs.verdicts.insert(key.clone(), verdict.clone());
        }
    }
}

fn step_of(
    member: &Candidate,
    (attempts, first_queued_at): (u32, Duration),
    verdict: Verdict,
    (table, failure): Recorded,
) -> Step {
    let (pod, profile) = (member.pod.clone(), member.profile);
    let (gang, others) = (None, Vec::new());
    Step { pod, profile, attempts, first_queued_at, verdict, table, failure, gang, others }
}
