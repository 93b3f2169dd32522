//! The transaction: members of a group are placed on one overlay, and all of a quorum stay or none.
//!
//! A group is planned in one go, between two inputs: nothing of another unit comes between its members. Strict:
//! if no order of the members gives every gang its quorum, all is undone and the verdict tells of the order that
//! came furthest. NonStrict: what fits is kept and waits (`waiting`).

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use smallvec::SmallVec;

use super::orders::{self, Ordered};
use super::resources::Shares;
use super::verdict::{GangOutcome, GangRefusal, GangVerdict, member_refusal};
use crate::cluster::{ShapeId, Stage};
use crate::cycle::decision::{Decision, Outcome, Placement, Refusal, Verdict};
use crate::cycle::nominations::How;
use crate::cycle::record::{Draft, Recorded};
use crate::cycle::scheduler::{Decided, Scheduler, Step};
use crate::model::gang::GangMode;
use crate::model::time::Probe;
use crate::model::{GangKey, Name, Now, Pod, PodId};
use crate::queue::{QueueStage, UnitId, WakeGroup};

/// A member that is to be placed.
pub(super) struct Candidate {
    pub(super) id: PodId,
    pub(super) pod: Arc<Pod>,
    pub(super) shape: ShapeId,
    pub(super) profile: usize,
    /// Its gang, by place in the group.
    pub(super) gang: usize,
}

/// What is asked of an attempt.
pub(super) struct Asked {
    pub(super) unit: UnitId,
    pub(super) rep: GangKey,
    pub(super) keys: Vec<GangKey>,
    /// Members wanted of each gang.
    pub(super) needs: Vec<u32>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) is_strict: bool,
}

/// How a member fared.
#[derive(Clone)]
pub(super) enum Fate {
    /// It was not asked: an equal one had been refused, or its gang has its quorum.
    NotAsked,
    /// It has a place.
    Placed(Placement, Name),
    /// No node took it.
    Failed(Arc<Refusal>),
}

/// One order, tried.
pub(super) struct Trial {
    pub(super) order: &'static str,
    pub(super) sequence: Vec<usize>,
    pub(super) fates: Vec<Fate>,
    /// What is to be recorded of each when the order is carried out.
    drafts: Vec<Option<Arc<Draft>>>,
    /// Members placed of each gang.
    pub(super) placed: Vec<u32>,
}

impl Trial {
    pub(super) fn is_quorum(&self, needs: &[u32]) -> bool {
        self.placed.iter().zip(needs).all(|(placed, need)| placed >= need)
    }

    pub(super) fn n_placed(&self) -> u32 {
        self.placed.iter().sum()
    }

    /// Returns the members that were refused, in the order in which they were tried.
    pub(super) fn failed(&self) -> Vec<usize> {
        let failed = |i: &usize| matches!(self.fates[*i], Fate::Failed(_));
        self.sequence.iter().copied().filter(failed).collect()
    }
}

impl Scheduler {
    /// Plans the unit of a gang group.
    pub(in crate::cycle) fn step_gang(
        &mut self,
        unit: UnitId,
        rep: &GangKey,
        now: Now,
        probe: &dyn Probe,
    ) -> Option<Step> {
        let asked = self.ask(unit, rep)?;
        self.cycle += 1;
        self.counters.attempts += 1;
        self.begin_round(&asked);
        let steps = match self.lacks_resources(&asked) {
            Some(refusal) => self.refuse_short(&asked, refusal, now, probe),
            None if asked.is_strict => self.plan_strict(&asked, now, probe),
            None => self.plan_waiting(&asked, now, probe),
        };
        self.review_gangs(now);
        if self.is_still(unit, rep) && self.queue.unit(unit).is_some_and(|u| u.stage == QueueStage::InFlight)
        {
            debug_assert!(false, "{rep} was planned and stands nowhere");
            self.queue.fail(unit, now.monotonic);
        }
        let mut steps = steps.into_iter();
        let first = steps.next()?;
        Some(Step { gang: Some(rep.clone()), others: steps.collect(), ..first })
    }

    /// Whether members of a group are left in its unit. The number of a unit that ended is given to others.
    pub(super) fn is_still(&self, unit: UnitId, rep: &GangKey) -> bool {
        self.gangs.groups.get(rep).is_some_and(|group| group.unit == Some(unit))
    }

    /// Returns the members to place, the most important and oldest first, and how many are wanted.
    fn ask(&mut self, unit: UnitId, rep: &GangKey) -> Option<Asked> {
        let keys = self.gangs.groups.get(rep)?.keys.clone();
        let mut candidates = Vec::new();
        for id in &self.queue.unit(unit)?.pods {
            let Some(record) = self.cluster.pod(*id) else { continue };
            let key = record.pod.member_of();
            let Some(gang) = key.and_then(|key| keys.binary_search(key).ok()) else { continue };
            let (pod, shape) = (record.pod.clone(), record.shape);
            candidates.push(Candidate { id: *id, profile: self.profile_index(&pod), pod, shape, gang });
        }
        // Room that was made for some of them is theirs.
        let is_free = |c: &Candidate| self.cluster.nominator().of(c.id).is_none();
        candidates.sort_by(|a, b| {
            let order = is_free(a).cmp(&is_free(b)).then(b.pod.priority.cmp(&a.pod.priority));
            order.then(a.pod.created.cmp(&b.pod.created)).then_with(|| a.pod.key.cmp(&b.pod.key))
        });
        let gangs: Vec<_> = keys.iter().filter_map(|k| self.cluster.gangs().get(k)).collect();
        let needs = gangs.iter().map(|g| g.need()).collect();
        let is_strict = gangs.iter().any(|g| g.definition.mode == GangMode::Strict);
        Some(Asked { unit, rep: rep.clone(), keys, needs, candidates, is_strict })
    }

    fn plan_strict(&mut self, asked: &Asked, now: Now, probe: &dyn Probe) -> Vec<Step> {
        let (trial, tried) = match self.search(asked, now, probe) {
            Ok(trial) => return self.keep_quorum(asked, &trial, now),
            Err(failed) => failed,
        };
        self.refuse_tried(asked, *trial, tried, now, probe)
    }

    /// Tries the orders. When one gives every gang its quorum, its placements are made; else nothing is left of
    /// any, and the one that came furthest is returned with the names of all.
    fn search(
        &mut self,
        asked: &Asked,
        now: Now,
        probe: &dyn Probe,
    ) -> Result<Trial, (Box<Trial>, Vec<&'static str>)> {
        let shares = Shares::of(&self.cluster);
        let ordered = |c: &Candidate| Ordered {
            kind: (c.profile, c.shape),
            size: shares.size(&c.pod.spec.requests.list),
        };
        let members: Vec<Ordered> = asked.candidates.iter().map(ordered).collect();
        let mut open = orders::orders(&members);
        open.reverse();
        let is_mixed = members.windows(2).any(|pair| pair[0].kind != pair[1].kind);
        let mut tried: Vec<&'static str> = Vec::new();
        let mut best: Option<Trial> = None;
        let mut retries = 0;
        while let Some((name, sequence)) = open.pop().or_else(|| {
            let best = best.as_ref().filter(|_| is_mixed && retries < orders::FAILED_FIRST)?;
            retries += 1;
            let next = orders::in_front(&best.sequence, &best.failed());
            (next != best.sequence).then_some(("failed first", next))
        }) {
            let overlay = self.cluster.begin();
            let trial = self.try_order(asked, name, sequence, true, now, probe);
            if trial.is_quorum(&asked.needs) {
                self.cluster.commit(overlay);
                return Ok(trial);
            }
            self.cluster.rollback(overlay);
            if tried.last() != Some(&name) {
                tried.push(name);
            }
            if best.as_ref().is_none_or(|b| trial.n_placed() > b.n_placed()) {
                best = Some(trial);
            } else if name == "failed first" {
                break;
            }
        }
        let best = best.expect("the members' own order was tried");
        tried.retain(|name| *name != best.order);
        tried.insert(0, best.order);
        Err((Box::new(best), tried))
    }

    /// Places members one after another, each beside those before it. `only_quorum`: no more of a gang than are
    /// wanted. What was placed stays until the caller's overlay ends.
    pub(super) fn try_order(
        &mut self,
        asked: &Asked,
        order: &'static str,
        sequence: Vec<usize>,
        only_quorum: bool,
        now: Now,
        probe: &dyn Probe,
    ) -> Trial {
        let mut fates = vec![Fate::NotAsked; asked.candidates.len()];
        let mut drafts = vec![None; asked.candidates.len()];
        let mut placed = vec![0; asked.keys.len()];
        // Equal members fare alike until something is placed.
        let mut refused: SmallVec<[(usize, ShapeId); 4]> = SmallVec::new();
        for i in sequence.iter().copied() {
            let member = &asked.candidates[i];
            let kind = (member.profile, member.shape);
            let is_enough = only_quorum && placed[member.gang] >= asked.needs[member.gang];
            let is_nominated = self.cluster.nominator().of(member.id).is_some();
            if is_enough || (refused.contains(&kind) && !is_nominated) {
                continue;
            }
            match self.place_member(asked, member, &mut drafts[i], now, probe) {
                Ok((placement, node)) => {
                    placed[member.gang] += 1;
                    refused.clear();
                    fates[i] = Fate::Placed(placement, node);
                }
                Err(refusal) => {
                    refused.push(kind);
                    fates[i] = Fate::Failed(refusal);
                }
            }
        }
        Trial { order, sequence, fates, drafts, placed }
    }

    fn place_member(
        &mut self,
        asked: &Asked,
        member: &Candidate,
        kept: &mut Option<Arc<Draft>>,
        now: Now,
        probe: &dyn Probe,
    ) -> Result<(Placement, Name), Arc<Refusal>> {
        let how = How::Member(&asked.keys);
        let Decided { decision, draft, .. } =
            self.decide(member.id, &member.pod, member.profile, member.shape, how, now, probe);
        *kept = draft;
        let placement = match decision {
            Decision::Place(placement) => placement,
            Decision::Refuse(refusal) => return Err(refusal),
        };
        let profile = self.profiles[member.profile].clone();
        self.cluster.place(member.id, placement.node, Stage::Reserved);
        if let Err(cause) = self.reserve_and_permit(&profile, (member.id, &member.pod), placement.node) {
            self.cluster.release(member.id);
            let by = crate::cycle::search::refused_by(&profile, std::iter::once(&cause));
            return Err(Arc::new(Refusal::of_pod(cause, placement.total as usize, by)));
        }
        Ok((placement, self.cluster.slot(placement.node).name.clone()))
    }

    /// A quorum stands: its members are permitted together.
    fn keep_quorum(&mut self, asked: &Asked, trial: &Trial, now: Now) -> Vec<Step> {
        let placed: Vec<usize> =
            trial.sequence.iter().copied().filter(|i| matches!(trial.fates[*i], Fate::Placed(..))).collect();
        let outcome = GangOutcome::Placed { members: placed.len() as u32, order: trial.order };
        self.store_gang_verdict(asked, outcome, now);
        self.end_round(asked, trial, now);
        let mut steps = Vec::new();
        for i in &placed {
            steps.push(self.settle_member(asked, *i, trial, now));
        }
        let had = |key: &GangKey| self.cluster.gangs().get(key).is_some_and(|g| g.history.once_satisfied);
        let gangs = asked.keys.iter().map(|key| (key.clone(), had(key))).collect();
        self.note_satisfied(&asked.keys, now);
        let ids: Vec<PodId> = placed.iter().map(|i| asked.candidates[*i].id).collect();
        self.start_quorum(gangs, &ids, now);
        steps
    }

    /// A placed member leaves the unit and is in flight on its own.
    pub(super) fn settle_member(&mut self, asked: &Asked, i: usize, trial: &Trial, now: Now) -> Step {
        let member = &asked.candidates[i];
        let tries = self.tries(asked);
        self.fly(member.id, &member.pod, now);
        let outcome = match &trial.fates[i] {
            Fate::Placed(placement, node) => {
                self.take_up_nomination(member.id, &member.pod, node, now);
                self.counters.placed += 1;
                Outcome::Placed(*placement)
            }
            Fate::NotAsked | Fate::Failed(_) => unreachable!("only placed members are settled"),
        };
        let recorded = self.record(trial.drafts[i].as_ref(), now);
        let verdict = self.store_verdict(member.id, outcome, None, now);
        step_of(member, tries, verdict, recorded)
    }

    /// Returns the attempts at the unit and when it first entered the queue: what steps tell.
    fn tries(&self, asked: &Asked) -> (u32, Duration) {
        self.queue.unit(asked.unit).map_or((0, Duration::ZERO), |u| (u.attempts, u.first_queued_at))
    }

    /// Stores why nothing of a group was placed, tells its pods, and puts the unit where an event that could help
    /// finds it.
    pub(super) fn refuse_group(
        &mut self,
        asked: &Asked,
        refusal: GangRefusal,
        trial: Option<&Trial>,
        now: Now,
    ) -> Vec<Step> {
        let refusal = Arc::new(refusal);
        self.counters.refused += 1;
        self.store_gang_verdict(asked, GangOutcome::Refused(refusal.clone()), now);
        if let Some(trial) = trial {
            self.end_round(asked, trial, now);
        }
        let steps = self.refuse_members(asked, &refusal, trial, now);
        self.park(asked, trial, now);
        steps
    }

    /// Gives each member that was not placed its verdict and its condition.
    pub(super) fn refuse_members(
        &mut self,
        asked: &Asked,
        refusal: &GangRefusal,
        trial: Option<&Trial>,
        now: Now,
    ) -> Vec<Step> {
        let total = self.cluster.present().len();
        let code = match trial {
            Some(_) => ReasonCode::GangSiblingUnschedulable,
            None => refusal.code,
        };
        let of_siblings = Arc::new(member_refusal(code, &refusal.message, total));
        let mut steps = Vec::new();
        for (i, member) in asked.candidates.iter().enumerate() {
            if self.cluster.pod(member.id).is_none_or(|r| r.node.is_some()) {
                continue;
            }
            // Of a member that was placed and had to give its place up, nothing stands that could be recorded.
            let (own, recorded) = match trial.map(|t| (&t.fates[i], &t.drafts[i])) {
                Some((Fate::Failed(own), draft)) => (own.clone(), self.record(draft.as_ref(), now)),
                _ => (of_siblings.clone(), (None, None)),
            };
            let tries = self.tries(asked);
            self.tell_changed(&member.pod, "Unschedulable", own.message());
            let verdict = self.store_verdict(member.id, Outcome::Refused(own), None, now);
            steps.push(step_of(member, tries, verdict, recorded));
        }
        steps
    }

    /// The unit waits for an event that could help one of the members that failed.
    pub(super) fn park(&mut self, asked: &Asked, trial: Option<&Trial>, now: Now) {
        let at_least = self.gangs.common_rules().map(|r| r.backoff).unwrap_or_default();
        let ways: Vec<(WakeGroup, PodId)> = match trial {
            Some(trial) => trial.failed().into_iter().filter_map(|i| way(asked, trial, i)).collect(),
            None => Vec::new(),
        };
        let any = asked.candidates.first().map(|c| {
            (WakeGroup { shape: c.shape, profile: c.profile, refused_by: Default::default() }, c.id)
        });
        let ways = if ways.is_empty() { any.into_iter().collect() } else { ways };
        self.queue.refuse_gang(asked.unit, ways, at_least, now.monotonic);
        let gangs = asked.keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let needs = gangs.map(|gang| gang.need()).collect();
        if let Some(group) = self.gangs.groups.get_mut(&asked.rep) {
            group.refused_with = needs;
        }
    }

    pub(super) fn store_gang_verdict(&mut self, asked: &Asked, outcome: GangOutcome, now: Now) {
        let attempts = self.queue.unit(asked.unit).map_or(0, |u| u.attempts);
        self.keep_gang_verdict(&asked.keys, attempts, outcome, now);
        for key in &asked.keys {
            self.cluster.gangs_mut().note(key, |gang| gang.history.attempts += 1);
        }
    }

    /// Stores what became of a group.
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

fn way(asked: &Asked, trial: &Trial, i: usize) -> Option<(WakeGroup, PodId)> {
    let member = &asked.candidates[i];
    match &trial.fates[i] {
        Fate::Failed(refusal) => {
            let (shape, profile) = (member.shape, member.profile);
            Some((WakeGroup { shape, profile, refused_by: refusal.refused_by }, member.id))
        }
        _ => None,
    }
}
