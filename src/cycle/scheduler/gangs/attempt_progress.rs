//! One attempt at a group, in slices: a long attempt pauses between other units, and holds nothing while paused.
//!
//! Slices end by counted work, not by time. An attempt without changes in between has the same result in one slice as
//! in many. It restarts when its members or their required number change; pods that join wait for the next attempt.

use std::sync::Arc;

use pellucid_model::collections::FxHashSet;
use pellucid_model::time::Probe;
use pellucid_model::{GangKey, NodeIdx, Now, Pod};
use pellucid_queue::{QueueStage, UnitId};

use super::plan::GangAttempt;
use super::search::{Search, Searched};
use super::trial::Run;
use super::victims::{Before, Victims};
use crate::attempt::work;
use crate::scheduler::{Scheduler, Step};

/// The progress of an attempt at a group.
pub(super) struct AttemptProgress {
    attempt: GangAttempt,
    at: At,
    /// Work of the earlier slices.
    spent: u64,
    /// Position in the change log when the last slice ended.
    position: (u64, u64),
    /// Number of restarts because any node could have changed. Slices grow with it, so that an attempt ends however
    /// often nodes come and go.
    restarts: u32,
}

/// The phase of an attempt.
pub(super) enum At {
    /// Strict: orders of the members are tried.
    Search(Box<Search>),
    /// NonStrict: members are placed to wait for each other.
    Waiting(Box<Run>),
    /// Strict: victims are searched for.
    Victims(Box<Victims>),
}

/// One slice of an attempt.
pub(super) struct Slice<'a> {
    pub(super) now: Now,
    pub(super) probe: &'a dyn Probe,
    /// The nodes that others changed since the last slice; `None` if any node may have changed.
    pub(super) since: Option<FxHashSet<NodeIdx>>,
    /// The work counter at which the attempt would have begun without pauses.
    origin: u64,
    allowance: u64,
    until: u64,
}

impl Slice<'_> {
    /// Begins new work after the work of earlier slices was repeated; the slice gets its full allowance from here.
    pub(super) fn begin(&mut self, work: u64) {
        self.since = Some(FxHashSet::default());
        self.until = self.until.max(work.saturating_add(self.allowance));
    }

    pub(super) fn is_over(&self, work: u64) -> bool {
        work >= self.until
    }

    /// Returns the work of the whole attempt.
    pub(super) fn spent(&self, work: u64) -> u64 {
        work - self.origin
    }
}

impl Scheduler {
    /// Plans the unit of a gang group, or one slice of it. Returns `None` when the attempt is paused.
    pub(crate) fn schedule_gang(
        &mut self,
        unit: UnitId,
        rep: &GangKey,
        now: Now,
        probe: &dyn Probe,
    ) -> Option<Step> {
        let known = self.take_underway(unit, rep);
        let is_new = known.is_none();
        let attempt_progress = match known {
            Some(attempt_progress) => attempt_progress,
            None => self.begin_attempt(unit, rep)?,
        };
        if is_new && self.is_for_later(&attempt_progress.attempt) {
            return self.pause(attempt_progress);
        }
        let AttemptProgress { attempt, at, spent, position, mut restarts } = attempt_progress;
        let changed = self.cluster.changes().since(position);
        let since: Option<FxHashSet<_>> = changed.map(|changed| changed.map(|(node, _)| node).collect());
        self.cycle += 1;
        restarts += u32::from(since.is_none());
        let allowance = self.turns.slice.saturating_mul(1 << restarts.min(10));
        let (origin, until) = (self.turns.work - spent, self.turns.work.saturating_add(allowance));
        let mut slice = Slice { now, probe, since, origin, allowance, until };
        let steps = match self.resume(&attempt, at, &mut slice) {
            Ok(steps) => steps,
            Err(at) => {
                let (spent, position) = (slice.spent(self.turns.work), self.cluster.changes().head());
                return self.pause(AttemptProgress { attempt, at, spent, position, restarts });
            }
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

    fn begin_attempt(&mut self, unit: UnitId, rep: &GangKey) -> Option<AttemptProgress> {
        let attempt = self.ask(unit, rep)?;
        self.records.counters.attempts += 1;
        self.begin_round(&attempt);
        let at = match self.lacks_resources(&attempt) {
            Some(refusal) => At::Victims(Victims::of(Before::Short(refusal))),
            None if attempt.is_strict => At::Search(self.search_for(&attempt)),
            None => {
                let sequence = (0..attempt.candidates.len()).collect();
                At::Waiting(Box::new(Run::new(&attempt, "queue order", sequence)))
            }
        };
        Some(AttemptProgress { attempt, at, spent: 0, position: self.cluster.changes().head(), restarts: 0 })
    }

    /// Resumes an attempt. When the slice is over, returns the phase that the attempt is in as the error.
    fn resume(&mut self, attempt: &GangAttempt, at: At, slice: &mut Slice<'_>) -> Result<Vec<Step>, At> {
        let victims = match at {
            At::Waiting(run) => return self.plan_waiting(attempt, run, slice).map_err(At::Waiting),
            At::Search(search) => match self.search(attempt, search, slice) {
                Searched::Paused(search) => return Err(At::Search(search)),
                Searched::Quorum(trial) => return Ok(self.keep_quorum(attempt, &trial, slice.now)),
                Searched::Failed(failed) => {
                    let victims = Victims::of(Before::Tried(failed));
                    if self.lets_others_go(attempt.unit) && self.expected_hunt(attempt) > self.turns.slice / 4
                    {
                        return Err(At::Victims(victims));
                    }
                    victims
                }
            },
            At::Victims(victims) => victims,
        };
        let (before, found) = self.find_victims(attempt, victims, slice).map_err(At::Victims)?;
        // Reporting to each member is work too.
        let work = slice.spent(self.turns.work) + attempt.candidates.len() as u64 * work::ASK;
        Ok(self.refuse_after(attempt, before, found, work, slice.now))
    }

    /// Whether an attempt that is expected to exceed a slice should let other units go first.
    fn is_for_later(&self, attempt: &GangAttempt) -> bool {
        if !self.lets_others_go(attempt.unit) {
            return false;
        }
        let kinds: FxHashSet<_> = attempt.candidates.iter().map(|c| c.kind()).collect();
        let work =
            kinds.len() * self.cluster.present().len() + attempt.candidates.len() * work::DECISION as usize;
        work as u64 > self.turns.slice
    }

    /// Whether other units would have their turn before the next slice of a unit.
    fn lets_others_go(&self, unit: UnitId) -> bool {
        let rank = self.queue.unit(unit).map(|u| u.rank);
        self.queue.first_ranks().0.is_some_and(|active| Some(active) <= rank)
    }

    /// Estimates the work of a search for victims: a hundred nodes with their pods once, and all nodes for each member.
    fn expected_hunt(&self, attempt: &GangAttempt) -> u64 {
        let (nodes, pods) = (self.cluster.present().len() as u64, self.cluster.n_pod_slots() as u64);
        let members: u64 = attempt.needs.iter().map(|n| u64::from(*n)).sum();
        let tries = pods * nodes.min(100) / nodes.max(1) * (work::ASK + 2 * work::MOVE);
        tries + members * (nodes / 4 + work::DECISION)
    }

    fn pause(&mut self, attempt_progress: AttemptProgress) -> Option<Step> {
        self.queue.pause(attempt_progress.attempt.unit);
        if let Some(group) = self.gangs.groups.get_mut(&attempt_progress.attempt.rep) {
            group.attempt_progress = Some(Box::new(attempt_progress));
        }
        None
    }

    /// Takes the paused attempt. Returns it if its members are unchanged.
    fn take_underway(&mut self, unit: UnitId, rep: &GangKey) -> Option<AttemptProgress> {
        let attempt_progress = *self.gangs.groups.get_mut(rep)?.attempt_progress.take()?;
        let is_paused = self.queue.unit(unit).is_some_and(|u| u.is_paused);
        (is_paused && attempt_progress.attempt.unit == unit && self.is_still_valid(&attempt_progress.attempt))
            .then_some(attempt_progress)
    }

    fn is_still_valid(&self, attempt: &GangAttempt) -> bool {
        let Some(group) = self.gangs.groups.get(&attempt.rep) else { return false };
        let gangs = attempt.keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let is_same = |c: &super::plan::Candidate| {
            self.queue.unit_of(c.id) == Some(attempt.unit)
                && self.cluster.pod(c.id).is_some_and(|r| is_unchanged(&r.pod, &c.pod))
        };
        group.keys == attempt.keys
            && gangs.map(|g| g.need()).eq(attempt.needs.iter().copied())
            && attempt.candidates.iter().all(is_same)
    }
}

/// Whether a pod is unchanged in everything that an attempt reads.
fn is_unchanged(pod: &Arc<Pod>, asked: &Arc<Pod>) -> bool {
    let is_same_spec = Arc::ptr_eq(&pod.spec, &asked.spec);
    Arc::ptr_eq(pod, asked)
        || pod.uid == asked.uid && is_same_spec && pod.priority == asked.priority && pod.gang == asked.gang
}
