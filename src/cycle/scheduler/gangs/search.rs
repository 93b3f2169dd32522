//! Tries orders of a strict group's members until one gives every gang its quorum.

use super::orders::{self, Ordered};
use super::plan::GangAttempt;
use super::resources::Shares;
use super::trial::{Run, Trial};
use super::underway::Slice;
use crate::attempt::work;
use crate::scheduler::Scheduler;

/// A search that continues over slices.
pub(super) struct Search {
    /// Orders to try, the next one last.
    open: Vec<(&'static str, Vec<usize>)>,
    /// Whether members differ, so that another order could have another result.
    is_mixed: bool,
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
    /// Creates the search for an attempt.
    pub(super) fn search_for(&self, attempt: &GangAttempt) -> Box<Search> {
        let shares = Shares::of(&self.cluster);
        let ordered = |c: &super::plan::Candidate| Ordered {
            kind: c.kind(),
            size: shares.size(&c.pod.spec.requests.list),
        };
        let members: Vec<Ordered> = attempt.candidates.iter().map(ordered).collect();
        let mut open = orders::orders(&members);
        open.reverse();
        let is_mixed = members.windows(2).any(|pair| pair[0].kind != pair[1].kind);
        Box::new(Search { open, is_mixed, retries: 0, tried: Vec::new(), best: None, run: None })
    }

    /// Continues a search.
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
    /// Returns the next order to try.
    fn next(&mut self, attempt: &GangAttempt) -> Option<Run> {
        let (name, sequence) = self.open.pop().or_else(|| {
            let best = self.best.as_ref().filter(|_| self.is_mixed && self.retries < orders::FAILED_FIRST)?;
            self.retries += 1;
            let next = orders::in_front(&best.sequence, &best.failed());
            (next != best.sequence).then_some((orders::FAILED_IN_FRONT, next))
        })?;
        Some(Run::new(attempt, name, sequence, true))
    }

    /// Notes a failed trial.
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
