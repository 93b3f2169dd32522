//! Tries one order of the members: each is placed beside those before it.
//!
//! A run continues over slices. Its placements are undone when a slice ends and repeated when the next one begins, so a
//! paused run holds nothing. Members that changes by others could affect are judged again.

use std::sync::Arc;

use pellucid_cluster::{ShapeId, Stage};
use pellucid_framework::profile::Aside;
use pellucid_framework::{Cause, View};
use pellucid_model::collections::FxHashSet;
use pellucid_model::time::Probe;
use pellucid_model::{NodeIdx, cancellation};
use pellucid_recording::{Decision, Placement, Refusal};

use super::attempt_progress::Slice;
use super::plan::{Candidate, GangAttempt};
use crate::attempt::nominations::{AttemptContext, AttemptKind, NominationFilter};
use crate::attempt::overrides::{self, affinity};
use crate::attempt::refusal::refusal_of_pod;
use crate::attempt::reserve::reserve;
use crate::attempt::work;
use crate::scheduler::Scheduler;
use crate::scheduler::records::draft::Draft;
use crate::scheduler::schedule_one::Decided;

/// The result of one member in a trial.
#[derive(Clone)]
pub(super) enum Fate {
    /// The member was not tried: an equal one had been refused, or its gang has its quorum.
    NotAsked,
    /// The member is placed on this node.
    Placed(Placement),
    /// No node is feasible for the member, or Reserve or Permit refused it.
    Failed(Arc<Refusal>),
}

/// The results of one order.
pub(super) struct Trial {
    pub(super) order: &'static str,
    pub(super) sequence: Vec<usize>,
    pub(super) fates: Vec<Fate>,
    /// What to record of each member if the trial is carried out.
    pub(super) drafts: Vec<Option<Arc<Draft>>>,
    /// Members placed per gang.
    pub(super) placed: Vec<u32>,
}

impl Trial {
    pub(super) fn is_quorum(&self, needs: &[u32]) -> bool {
        self.placed.iter().zip(needs).all(|(placed, need)| placed >= need)
    }

    pub(super) fn n_placed(&self) -> u32 {
        self.placed.iter().sum()
    }

    /// Returns the members that were refused and why, in the order in which they were tried.
    pub(super) fn failed(&self) -> Vec<(usize, &Arc<Refusal>)> {
        let failed = |i: &usize| match &self.fates[*i] {
            Fate::Failed(refusal) => Some((*i, refusal)),
            Fate::NotAsked | Fate::Placed(..) => None,
        };
        self.sequence.iter().filter_map(failed).collect()
    }
}

/// A trial in progress.
pub(super) struct Run {
    pub(super) trial: Trial,
    /// How many members of the sequence have been handled.
    at: usize,
    /// Kinds of members refused since the last placement: equal members would be refused too.
    refused: FxHashSet<(usize, ShapeId)>,
    /// Placed members whose decision depended on more than their node.
    compared: FxHashSet<usize>,
}

impl Run {
    pub(super) fn new(attempt: &GangAttempt, order: &'static str, sequence: Vec<usize>) -> Self {
        let n = attempt.candidates.len();
        let (fates, drafts) = (vec![Fate::NotAsked; n], vec![None; n]);
        let trial = Trial { order, sequence, fates, drafts, placed: vec![0; attempt.keys.len()] };
        Self { trial, at: 0, refused: FxHashSet::default(), compared: FxHashSet::default() }
    }

    /// Restarts the run, because any node may have changed.
    fn anew(&mut self, attempt: &GangAttempt) {
        let Trial { order, sequence, .. } = &mut self.trial;
        *self = Self::new(attempt, order, std::mem::take(sequence));
    }
}

impl Scheduler {
    /// Continues a run on the caller's overlay until every member was handled or the slice is over. Returns whether
    /// every member was.
    pub(super) fn run_on(&mut self, attempt: &GangAttempt, run: &mut Run, slice: &mut Slice<'_>) -> bool {
        if run.at > 0 {
            self.put_again(attempt, run, slice);
            slice.begin(self.turns.work);
        }
        while run.at < run.trial.sequence.len() {
            let i = run.trial.sequence[run.at];
            run.at += 1;
            cancellation::check();
            if self.is_wanted(attempt, run, i) {
                self.try_member(attempt, run, i, slice);
                if slice.is_over(self.turns.work) {
                    return false;
                }
            }
        }
        true
    }

    fn is_wanted(&self, attempt: &GangAttempt, run: &Run, i: usize) -> bool {
        let member = &attempt.candidates[i];
        // A gang of a strict group gets no more places than it needs.
        let is_enough = attempt.is_strict && run.trial.placed[member.gang] >= attempt.needs[member.gang];
        let is_nominated = || self.cluster.nominator().of(member.id).is_some();
        let is_special = || is_nominated() || self.has_overrides(member);
        !is_enough && (!run.refused.contains(&member.kind()) || is_special())
    }

    /// Whether a member sees nodes differently from equal members.
    pub(super) fn has_overrides(&self, member: &Candidate) -> bool {
        let (profile, pod) = (&self.profiles.all[member.profile], &member.pod);
        !overrides::of_pod(profile, View::new(&self.cluster), &pod.spec, pod).is_empty()
    }

    fn try_member(&mut self, attempt: &GangAttempt, run: &mut Run, i: usize, slice: &Slice<'_>) {
        let member = &attempt.candidates[i];
        let group = AttemptKind::Member(&attempt.keys);
        let Decided { decision, draft, reads_others, .. } =
            self.find_node((member.id, &member.pod), member.kind(), group, slice.now, slice.probe);
        run.trial.drafts[i] = draft;
        let placed = match decision {
            Decision::Refuse(refusal) => Err(refusal),
            Decision::Place(placement) => match self.put_member(member, placement.node) {
                Ok(()) => Ok(placement),
                Err(cause) => {
                    let profile = &self.profiles.all[member.profile];
                    Err(Arc::new(refusal_of_pod(profile, cause, placement.total as usize)))
                }
            },
        };
        run.trial.fates[i] = match placed {
            Ok(placement) => {
                run.trial.placed[member.gang] += 1;
                run.refused.clear();
                if reads_others {
                    run.compared.insert(i);
                }
                Fate::Placed(placement)
            }
            Err(refusal) => {
                if !self.has_overrides(member) {
                    run.refused.insert(member.kind());
                }
                Fate::Failed(refusal)
            }
        };
    }

    /// Places a member, with Reserve and Permit. A failure leaves nothing behind.
    pub(super) fn put_member(&mut self, member: &Candidate, node: NodeIdx) -> Result<(), Cause> {
        let profile = self.profiles.all[member.profile].clone();
        self.turns.work += work::MOVE;
        let aligned = affinity(&mut self.cluster, &profile, &member.pod, node)?;
        self.cluster.place(member.id, node, Stage::Reserved);
        let reserved = reserve(&mut self.cluster, &profile, (member.id, &member.pod), node, aligned);
        reserved
            .and_then(|()| self.permit(&profile, Aside::default(), &member.pod, node))
            .map(drop)
            .inspect_err(|_| {
                self.cluster.release(member.id);
            })
    }

    /// Repeats the placements of earlier slices.
    fn put_again(&mut self, attempt: &GangAttempt, run: &mut Run, slice: &Slice<'_>) {
        let Some(changed) = &slice.since else { return run.anew(attempt) };
        for at in 0..run.at {
            let i = run.trial.sequence[at];
            let Fate::Placed(placement) = &run.trial.fates[i] else { continue };
            let (member, node) = (&attempt.candidates[i], placement.node);
            let may_differ = changed.contains(&node) || !changed.is_empty() && run.compared.contains(&i);
            let is_refused = may_differ && self.is_refused_on(attempt, member, node, slice.probe);
            if is_refused || self.put_member(member, node).is_err() {
                run.trial.placed[member.gang] -= 1;
                self.try_member(attempt, run, i, slice);
            }
        }
    }

    /// Whether a filter refuses a member on a node in the current state.
    pub(super) fn is_refused_on(
        &mut self,
        attempt: &GangAttempt,
        member: &Candidate,
        node: NodeIdx,
        probe: &dyn Probe,
    ) -> bool {
        let results = self.profiles.results.of(member.kind(), self.cluster.shapes(), self.cycle);
        let profile = &self.profiles.all[member.profile];
        let tally = &mut self.profiles.tally[member.profile];
        let kind = AttemptKind::Member(&attempt.keys);
        let asked = AttemptContext::new(profile, (member.id, &member.pod), kind, &self.cluster, probe);
        results.run_filters(&asked.on(&self.cluster), self.switches.reuse(), tally);
        self.turns.work += std::mem::take(&mut results.work) + work::ASK;
        if results.refused_as_a_whole().is_some() {
            return true;
        }
        let scratch = &mut self.profiles.scratch;
        let mut filter = NominationFilter::new(asked, &mut self.cluster, tally, scratch);
        filter.find_overrides(results);
        let is_refused = filter.refusal(results, node).is_some();
        results.attempt = None;
        is_refused
    }
}
