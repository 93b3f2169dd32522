//! Tries orders of a strict group's members until one gives every gang its quorum.

use super::attempt_progress::Slice;
use super::orders::{self, Order, Ordered};
use super::plan::GangAttempt;
use super::resources::Shares;
use super::trial::{Run, Trial};
use crate::attempt::work;
use crate::scheduler::Scheduler;

/// A search that continues over slices.
pub(super) struct Search {
    /// Orders to try, the next one last.
    open: Vec<Order>,
    /// How often an order with the failed members in front was tried.
    retries: usize,
    tried: Vec<&'static str>,
    /// The trial that placed the most members.
    best: Option<Trial>,
    run: Option<Run>,
}

/// The result of a slice of a search.
pub(super) enum Searched {
    /// The slice is over; nothing is placed.
    Paused(Box<Search>),
    /// Every gang has its quorum; the placements are committed.
    Quorum(Trial),
    /// No order gave a quorum; nothing is placed.
    Failed(Failed),
}

/// A search in which no order gave a quorum.
pub(super) struct Failed {
    /// The trial that placed the most members.
    pub(super) best: Trial,
    /// The names of all orders that were tried, that of `best` first.
    pub(super) tried: Vec<&'static str>,
    /// Whether orders were left out because the others took too much work.
    pub(super) is_truncated: bool,
}

impl Scheduler {
    /// Returns the orders in which to try some members, the next one last.
    pub(super) fn orders(&self, attempt: &GangAttempt, members: &[usize]) -> Vec<Order> {
        let shares = Shares::of(&self.cluster);
        let ordered = |i: &usize| {
            let member = &attempt.candidates[*i];
            Ordered { kind: member.kind(), size: shares.size(&member.pod.spec.requests.list) }
        };
        let ordered: Vec<Ordered> = members.iter().map(ordered).collect();
        let all = orders::orders(&ordered).into_iter().rev();
        all.map(|(name, order)| (name, order.into_iter().map(|at| members[at]).collect())).collect()
    }

    pub(super) fn search_for(&self, attempt: &GangAttempt) -> Box<Search> {
        let all: Vec<usize> = (0..attempt.candidates.len()).collect();
        let open = self.orders(attempt, &all);
        Box::new(Search { open, retries: 0, tried: Vec::new(), best: None, run: None })
    }

    pub(super) fn search(
        &mut self,
        attempt: &GangAttempt,
        mut search: Box<Search>,
        slice: &mut Slice<'_>,
    ) -> Searched {
        loop {
            let is_first = search.best.is_none();
            let Some(mut run) = search.run.take().or_else(|| search.next(attempt)) else {
                return Searched::Failed(search.end(false));
            };
            if !is_first && slice.spent(self.turns.work) > work::SEARCH {
                return Searched::Failed(search.end(true));
            }
            let overlay = self.cluster.begin();
            let is_through = self.run_on(attempt, &mut run, slice);
            if run.trial.is_quorum(&attempt.needs) {
                self.cluster.commit(overlay);
                return Searched::Quorum(run.trial);
            }
            self.cluster.rollback(overlay);
            if !is_through {
                search.run = Some(run);
                return Searched::Paused(search);
            }
            search.note(run.trial);
        }
    }
}

impl Search {
    fn next(&mut self, attempt: &GangAttempt) -> Option<Run> {
        let (name, sequence) = self.open.pop().or_else(|| {
            // Another order of equal members has the same result.
            let is_mixed = attempt.candidates.windows(2).any(|pair| pair[0].kind() != pair[1].kind());
            let best = self.best.as_ref().filter(|_| is_mixed && self.retries < orders::FAILED_FIRST)?;
            self.retries += 1;
            let failed: Vec<usize> = best.failed().into_iter().map(|(i, _)| i).collect();
            let next = orders::in_front(&best.sequence, &failed);
            (next != best.sequence).then_some((orders::FAILED_IN_FRONT, next))
        })?;
        Some(Run::new(attempt, name, sequence))
    }

    fn note(&mut self, trial: Trial) {
        let name = trial.order;
        if self.tried.last() != Some(&name) {
            self.tried.push(name);
        }
        if self.best.as_ref().is_none_or(|b| trial.n_placed() > b.n_placed()) {
            self.best = Some(trial);
        } else if name == orders::FAILED_IN_FRONT {
            self.retries = orders::FAILED_FIRST;
        }
    }

    fn end(mut self, is_truncated: bool) -> Failed {
        let best = self.best.expect("the members' own order was tried");
        self.tried.retain(|name| *name != best.order);
        self.tried.insert(0, best.order);
        Failed { best, tried: self.tried, is_truncated }
    }
}
