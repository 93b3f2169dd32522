//! Holds back groups that cannot be planned yet, and reports why on their pods.
//!
//! Members arrive one by one. What is missing is reported when it has lasted a moment, and again when it changes, not
//! for every pod that joins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::gangs::{Gang, Gangs, Undefined};
use pellucid_framework::Cause;
use pellucid_model::{GangKey, Now, Pod, PodId, cancellation};
use pellucid_queue::QueueStage;
use pellucid_recording::Outcome;
use pellucid_recording::gang_verdict::{member_cause, member_refusal};

use crate::scheduler::Scheduler;

/// How long a gang is short of pods before this is reported.
const REPORT_AFTER: Duration = Duration::from_secs(1);

/// How often that time doubles while the report changes: for a gang of thousands that grows for minutes there are a few
/// reports, not one every second.
const MAX_DOUBLINGS: u32 = 6;

/// The obstacle that keeps a group from being planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The gang that is not ready.
    pub gang: GangKey,
    /// Reason code of the obstacle.
    pub code: ReasonCode,
    /// The subject in the code's message.
    pub subject: String,
}

impl Block {
    fn new(gang: &Gang, code: ReasonCode, subject: impl Into<String>) -> Self {
        Self { gang: gang.key.clone(), code, subject: subject.into() }
    }

    /// Returns the complete message.
    pub fn message(&self) -> String {
        self.code.message(&self.subject)
    }

    /// Returns the cause with which members are refused.
    pub fn cause(&self) -> Cause {
        member_cause(self.code, &self.subject)
    }

    /// Converts the block to what the pods of another gang of the group see.
    fn seen_by(self, gang: &GangKey) -> Self {
        if self.gang == *gang {
            return self;
        }
        let subject = self.message();
        Self { code: ReasonCode::GangPartnerShort, subject, ..self }
    }
}

/// Returns what keeps the group of a gang from being planned, as that gang sees it: what it lacks itself comes first.
/// `ready` returns how many members of a gang wait to be placed.
pub fn block(gangs: &Gangs, key: &GangKey, ready: impl Fn(&GangKey) -> u32) -> Option<Block> {
    let own = block_of_one(gangs, key, ready(key)).map(|block| block.seen_by(key));
    own.or_else(|| {
        let keys = gangs.group_of(key);
        let known = || keys.iter().filter_map(|k| gangs.get(k));
        let members = known().map(|gang| gang.members.len() as u64).sum();
        let is_short = known().any(|gang| gang.definition.undefined.is_some() || !gang.is_satisfied());
        let too_large = block_of_size(gangs, key, members).filter(|_| is_short);
        too_large.or_else(|| {
            let others = keys.iter().filter(|k| *k != key);
            others.map(|k| block_of_one(gangs, k, ready(k))).find_map(|b| b).map(|b| b.seen_by(key))
        })
    })
}

/// Whether a gang itself keeps its group from being planned, that is, whether [`block_of_one`] returns a block.
pub(super) fn is_blocked(gangs: &Gangs, gang: &Gang, ready: u32) -> bool {
    let is_short = || gang.missing(ready) > 0;
    let is_large = || gangs.too_many(&gang.key).is_some();
    gang.definition.undefined.is_some()
        || !gang.is_satisfied() && (!gang.has_partners() || is_short() || is_large())
}

/// Returns a block if a group has more pods than may be planned together.
fn block_of_size(gangs: &Gangs, key: &GangKey, members: u64) -> Option<Block> {
    let (gang, max) = (gangs.get(key)?, gangs.limits().members);
    let numbers =
        || format!("{members} pods in the group of {key}, {max} may be planned together (maxGroupMembers)");
    (members > u64::from(max)).then(|| Block::new(gang, ReasonCode::GangGroupTooLarge, numbers()))
}

fn block_of_one(gangs: &Gangs, key: &GangKey, ready: u32) -> Option<Block> {
    cancellation::check();
    let gang = gangs.get(key)?;
    if let Some(undefined) = &gang.definition.undefined {
        return Some(block_of_undefined(gang, undefined));
    }
    if gang.is_satisfied() {
        return None;
    }
    if let Some(n) = gangs.too_many(key) {
        let max = gangs.limits().gangs;
        let numbers =
            format!("{n} gangs name each other around {key}, {max} may form a group (maxGroupGangs)");
        return Some(Block::new(gang, ReasonCode::GangGroupTooLarge, numbers));
    }
    let missing = gangs.one_sided(key);
    if !missing.is_empty() {
        // A gang that names too many partners has none, so it names nobody back.
        let too_large = missing.iter().filter_map(|k| gangs.get(k)).find_map(|partner| {
            let undefined = partner.definition.undefined.as_ref();
            let undefined = undefined.filter(|why| matches!(why, Undefined::NamesTooMany { .. }))?;
            Some(block_of_undefined(partner, undefined))
        });
        let named = || missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return too_large.or_else(|| Some(Block::new(gang, ReasonCode::GangPartnerMissing, named())));
    }
    if gang.missing(ready) == 0 {
        return None;
    }
    let (have, min) = (gang.have(ready), gang.definition.min);
    let is_overdue = gang.history.is_overdue;
    let code = if is_overdue { ReasonCode::GangQuorumOverdue } else { ReasonCode::GangQuorumMissing };
    Some(Block::new(gang, code, format!("{key}: {have} of {min} are there")))
}

fn block_of_undefined(gang: &Gang, undefined: &Undefined) -> Block {
    let key = gang.key.to_string();
    match undefined {
        Undefined::GroupMissing => Block::new(gang, ReasonCode::GangGroupMissing, key),
        Undefined::GroupGone => Block::new(gang, ReasonCode::GangGroupGone, key),
        Undefined::Invalid(problem) => Block::new(gang, ReasonCode::GangInvalid, problem.to_string()),
        Undefined::Mixed(a, b) => {
            let both = format!("{key} in {} and {}", a.as_str(), b.as_str());
            Block::new(gang, ReasonCode::GangDialectsMixed, both)
        }
        Undefined::QueueMissing(queue) => Block::new(gang, ReasonCode::GangQueueMissing, &**queue),
        Undefined::NamesTooMany { named, max } => {
            let numbers = format!("{key} names {named} gangs, {max} may form a group (maxGroupGangs)");
            Block::new(gang, ReasonCode::GangGroupTooLarge, numbers)
        }
        Undefined::NeverComplete { owner, replicas } => {
            let min = gang.definition.min;
            let numbers = format!("{key} wants {min} pods, {owner} makes {replicas}");
            Block::new(gang, ReasonCode::GangNeverComplete, numbers)
        }
    }
}

impl Scheduler {
    /// Does the same as [`block`], from what the group has noted.
    pub(super) fn block(&self, rep: &GangKey, key: &GangKey) -> Option<Block> {
        let (gangs, group) = (self.cluster.gangs(), self.gangs.groups.get(rep)?);
        let of = |at: usize| block_of_one(gangs, &group.keys[at], group.ready[at]).map(|b| b.seen_by(key));
        let own = of(group.at(key)?);
        let too_large = || block_of_size(gangs, key, group.members).filter(|_| !group.has_quorum());
        own.or_else(too_large).or_else(|| of(group.first_blocked()?))
    }

    /// Holds a group back or releases it, according to its present readiness.
    pub(super) fn gate_group(&mut self, rep: &GangKey, changed: &[GangKey], now: Now) {
        let max_members = u64::from(self.cluster.gangs().limits().members);
        let Some(group) = self.gangs.groups.get_mut(rep) else { return };
        let is_large = group.members > max_members && !group.has_quorum();
        let is_held_back = group.unit.is_some() && (group.first_blocked().is_some() || is_large);
        let is_news = group.is_held_back.replace(is_held_back) != Some(is_held_back);
        // A new decision is recorded for all gangs of the group, a repeated one only for those that changed.
        let keys = if is_news { group.keys.clone() } else { changed.to_vec() };
        let (unit, reports) = (group.unit, group.reports.min(MAX_DOUBLINGS));
        let Some(unit) = unit else { return self.schedule_wait_check(rep, is_news) };
        let stage = self.queue.unit(unit).map(|u| u.stage);
        if is_held_back {
            group.attempt_progress = None;
            if stage != Some(QueueStage::Gated) {
                self.queue.gate(unit);
            }
            if is_news {
                self.end_promises(unit, now);
            }
            self.record_short(&keys, now);
            self.gangs.schedule_check(rep, now.monotonic + REPORT_AFTER * (1 << reports));
            return;
        }
        for key in &keys {
            if self.cluster.gangs().get(key).is_some_and(|g| g.history.short_since.is_some()) {
                self.cluster.gangs_mut().update(key, |gang| {
                    gang.history.short_since = None;
                    gang.history.is_overdue = false;
                });
            }
        }
        if stage == Some(QueueStage::Gated) {
            self.queue.ungate(unit, now.monotonic);
            self.hold_rejected(rep, now);
            if let Some(group) = self.gangs.groups.get_mut(rep) {
                group.reported.clear();
                group.reports = 0;
            }
        }
        self.schedule_wait_check(rep, is_news);
    }

    /// Schedules the next check of a group that has nothing to report and for which only waits can run out. A check
    /// that is scheduled stays, unless the decision is new; members that wait longer are checked again then.
    fn schedule_wait_check(&mut self, rep: &GangKey, is_news: bool) {
        let Some(group) = self.gangs.groups.get(rep) else { return };
        if group.check_at.is_some() && !is_news {
            return;
        }
        let keys = group.keys.clone();
        self.gangs.cancel_check(rep);
        let gangs = keys.iter().filter_map(|k| self.cluster.gangs().get(k)).filter(|g| g.counts.waiting > 0);
        if let Some(at) = gangs.flat_map(|g| g.members.values().filter_map(|m| m.deadline)).min() {
            self.gangs.schedule_check(rep, at);
        }
    }

    fn record_short(&mut self, keys: &[GangKey], now: Now) {
        for key in keys {
            let gang = self.cluster.gangs().get(key).filter(|g| g.history.short_since.is_none());
            if gang.is_some_and(|g| g.created() > 0 && !g.is_satisfied()) {
                self.cluster.gangs_mut().update(key, |gang| gang.history.short_since = Some(now));
            }
        }
    }

    /// Keeps a rejected group back until its next attempt is due, even if its pods were recreated.
    fn hold_rejected(&mut self, rep: &GangKey, now: Now) {
        let Some(group) = self.gangs.groups.get(rep) else { return };
        let Some(unit) = group.unit else { return };
        let rejected = group.keys.iter().filter_map(|k| self.cluster.gangs().get(k)?.history.rejected);
        let Some((refusals, until)) = rejected.max_by_key(|(_, until)| *until) else { return };
        if until > now.monotonic {
            self.queue.hold_back(unit, refusals, until, now.monotonic);
        }
    }

    /// Stores the current verdict on a pod of a group that is held back. The pod has just joined, or its decision is
    /// repeated.
    pub(crate) fn judge_gated(&mut self, rep: &GangKey, id: PodId, now: Now) {
        let key = self.cluster.pod(id).and_then(|r| r.pod.member_of());
        if let Some(block) = key.and_then(|key| self.block(rep, key)) {
            let refusal = member_refusal(block.code, &block.subject, self.cluster.present().len());
            self.store_verdict(id, Outcome::Gated(Arc::new(refusal)), now);
        }
    }

    /// Updates the verdicts on the pods that joined since the last review: what their group lacks may have changed.
    pub(super) fn judge_joined(&mut self, rep: &GangKey, now: Now) {
        let Some(group) = self.gangs.groups.get_mut(rep) else { return };
        for id in std::mem::take(&mut group.joined) {
            if self.queue.unit_of(id).is_none() {
                continue;
            }
            let Some(Outcome::Gated(said)) = self.last_attempt(id).outcome() else { continue };
            let key = self.cluster.pod(id).and_then(|r| r.pod.member_of());
            let cause = key.and_then(|key| self.block(rep, key)).map(|block| block.cause());
            if cause.is_some() && cause != said.pod_cause {
                self.judge_gated(rep, id, now);
            }
        }
    }

    /// Reports to the pods of a group that is held back what it lacks, unless their last report said the same.
    pub(super) fn report_blocked(&mut self, rep: &GangKey, now: Now) {
        let Some(group) = self.gangs.groups.get(rep) else { return };
        let (Some(unit), keys) = (group.unit, group.keys.clone()) else { return };
        let mut of_gang: BTreeMap<GangKey, Vec<(PodId, Arc<Pod>)>> = BTreeMap::new();
        for id in self.queue.unit(unit).into_iter().flat_map(|u| &u.pods) {
            let Some(pod) = self.cluster.pod(*id).map(|r| r.pod.clone()) else { continue };
            if let Some(key) = pod.member_of() {
                of_gang.entry(key.clone()).or_default().push((*id, pod));
            }
        }
        for (key, pods) in of_gang {
            let Some(block) = self.block(rep, &key) else { continue };
            let refusal = Arc::new(member_refusal(block.code, &block.subject, self.cluster.present().len()));
            let reason = match block.code {
                ReasonCode::GangQuorumMissing | ReasonCode::GangPartnerShort => "SchedulingGated",
                _ => "Unschedulable",
            };
            for (id, pod) in pods {
                let message = refusal.message();
                let last =
                    self.gangs.groups.get_mut(rep).and_then(|g| g.reported.insert(id, message.clone()));
                if last.as_ref() != Some(&message) {
                    self.report_if_changed(&pod, reason, message);
                    self.store_verdict(id, Outcome::Gated(refusal.clone()), now);
                }
            }
        }
        if let Some(group) = self.gangs.groups.get_mut(rep) {
            group.reports += 1;
        }
        self.record_overdue(rep, &keys, now);
    }

    /// Reports as [`report_blocked`](Self::report_blocked) to all pods of the group, whatever was reported before.
    pub(crate) fn report_blocked_again(&mut self, rep: &GangKey, now: Now) {
        if let Some(group) = self.gangs.groups.get_mut(rep) {
            group.reported.clear();
        }
        self.report_blocked(rep, now);
    }

    /// Records which gangs are overdue: short of pods for longer than their members would wait for each other.
    fn record_overdue(&mut self, rep: &GangKey, keys: &[GangKey], now: Now) {
        let Some(rules) = self.gangs.common_rules() else { return };
        for key in keys {
            let Some(gang) = self.cluster.gangs().get(key) else { continue };
            let (Some(since), false) = (gang.history.short_since, gang.history.is_overdue) else { continue };
            if gang.definition.undefined.is_some() {
                continue;
            }
            let due = since.monotonic + gang.wait(rules.permit_wait);
            if due > now.monotonic {
                self.gangs.schedule_check(rep, due);
                continue;
            }
            self.records.counters.gang_timeouts += 1;
            if let Some(group) = self.gangs.groups.get_mut(rep) {
                group.reports = 0;
            }
            self.cluster.gangs_mut().update(key, |gang| {
                gang.history.is_overdue = true;
                gang.history.timeouts += 1;
            });
        }
    }
}
