//! Searches for victims member by member, in slices.
//!
//! Before the search, one walk over the nodes bounds how many members could fit with all pods of lower priority gone
//! (`bound`), unless a plugin evicts others too. Equal members share what is known about a node until something on it
//! changes. `preempt` makes room for one member and carries out the result.

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::ShapeId;
use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{NodeIdx, PodId, cancellation};
use pellucid_recording::gang_verdict::GangRefusal;

use super::attempt_progress::Slice;
use super::orders::Order;
use super::plan::{Candidate, GangAttempt};
use super::preempt::{self, Found, Part, VictimSearchParams};
use super::search::Failed;
use crate::attempt::post_filter::KnownNodes;
use crate::attempt::work;
use crate::scheduler::Scheduler;

/// Maximum number of member kinds for which knowledge about nodes is cached.
const KINDS_KEPT: usize = 4;

/// A search for victims that continues over slices.
pub(super) struct Victims {
    pub(super) before: Before,
    search: Option<Search>,
}

/// Why the group cannot be placed without victims.
pub(super) enum Before {
    /// No order of the members gave a quorum.
    Tried(Failed),
    /// The cluster has less free than the `minResources` of a gang.
    Short(GangRefusal),
}

struct Search {
    below: i32,
    /// Whether only pods of lower priority may be victims, and none is placed.
    is_hopeless: bool,
    /// Orders of the members to try, the next one last.
    open: Vec<Order>,
    run: Option<Run>,
    known: Known,
    last: Found,
}

/// The search in one order of the members.
pub(super) struct Run {
    sequence: Vec<usize>,
    at: usize,
    missing: Vec<u32>,
    parts: Vec<Part>,
    going: Vec<PodId>,
    refused: FxHashSet<(usize, ShapeId)>,
    nothing: Found,
}

impl Run {
    fn new(attempt: &GangAttempt, sequence: Vec<usize>) -> Self {
        Self {
            sequence,
            at: 0,
            missing: attempt.needs.clone(),
            parts: Vec::new(),
            going: Vec::new(),
            refused: FxHashSet::default(),
            nothing: Found::NotAsked,
        }
    }

    fn add(&mut self, part: Part, gang: usize) {
        self.missing[gang] -= 1;
        self.going.extend(part.victims.iter().map(|v| v.choice.pod));
        self.parts.push(part);
        self.refused.clear();
    }
}

/// What is known about nodes, per kind of member.
#[derive(Default)]
struct Known(FxHashMap<(usize, ShapeId), KnownNodes>);

impl Known {
    fn of(&mut self, member: &Candidate) -> &KnownNodes {
        let kind = member.kind();
        if self.0.len() >= KINDS_KEPT && !self.0.contains_key(&kind) {
            self.0.clear();
        }
        self.0.entry(kind).or_default()
    }

    fn forget(&self, nodes: impl Iterator<Item = NodeIdx>) {
        for node in nodes {
            for known in self.0.values() {
                known.borrow_mut().remove(&node);
            }
        }
    }
}

impl Victims {
    pub(super) fn of(before: Before) -> Box<Self> {
        Box::new(Self { before, search: None })
    }
}

impl Scheduler {
    /// Continues a search for victims. Everything that it tries is undone. Returns the search as the error when the
    /// slice is over.
    pub(super) fn find_victims(
        &mut self,
        attempt: &GangAttempt,
        victims: Box<Victims>,
        slice: &mut Slice<'_>,
    ) -> Result<(Before, Found), Box<Victims>> {
        let Victims { before, search } = *victims;
        let mut search = match search.map_or_else(|| self.begin_search(attempt), Ok) {
            Ok(search) => search,
            Err(found) => return Ok((before, found)),
        };
        loop {
            let next = search.run.take().or_else(|| Some(Run::new(attempt, search.open.pop()?.1)));
            let Some(mut run) = next else { return Ok((before, search.last)) };
            let overlay = self.cluster.begin();
            let found = self.hunt(attempt, &mut search, &mut run, slice);
            self.cluster.rollback(overlay);
            match found {
                None => {
                    search.run = Some(run);
                    return Err(Box::new(Victims { before, search: Some(search) }));
                }
                Some(found @ (Found::Quorum(_) | Found::NotEligible(_) | Found::CutShort(_))) => {
                    return Ok((before, found));
                }
                Some(found) if search.is_hopeless => return Ok((before, found)),
                Some(found) => search.last = found,
            }
            search.known.forget(run.parts.iter().map(|part| part.node));
        }
    }

    fn begin_search(&mut self, attempt: &GangAttempt) -> Result<Search, Found> {
        let has_post_filter = |c: &Candidate| {
            self.profiles.all[c.profile].post_filter.iter().any(|e| e.plugin.post_filter().is_some())
        };
        if !attempt.is_strict
            || self.cluster.present().is_empty()
            || !attempt.candidates.iter().all(has_post_filter)
        {
            return Err(Found::NotAsked);
        }
        self.cluster.preemptions_mut().count_attempt();
        if self.awaits_victims(attempt.unit) {
            return Err(Found::NotEligible(ReasonCode::PreemptionUnderWay.message("").into()));
        }
        let Some(members) = preempt::able(attempt) else {
            return Err(Found::NotEligible(ReasonCode::PreemptionPolicyNever.message("").into()));
        };
        let gangs = attempt.keys.iter().filter_map(|k| self.cluster.gangs().get(k));
        let group = gangs.flat_map(|g| g.members.keys()).filter_map(|id| self.cluster.pod(*id));
        let below = group.map(|r| r.pod.priority).min().unwrap_or(i32::MIN);
        let lower_only = attempt.candidates.iter().all(|c| self.evict_lower_only(c.profile));
        let is_hopeless =
            lower_only && !self.cluster.pods().any(|(_, r)| r.node.is_some() && r.pod.priority < below);
        if lower_only
            && !is_hopeless
            && !attempt.candidates.iter().any(|member| self.has_overrides(member))
            && let Some(found) = self.lacks_even_without(attempt, &members, below)
        {
            return Err(found);
        }
        let open = self.orders(attempt, &members);
        Ok(Search { below, is_hopeless, open, run: None, known: Known::default(), last: Found::NotAsked })
    }

    /// Whether the PostFilter plugins of a profile choose only victims of lower priority.
    fn evict_lower_only(&self, profile: usize) -> bool {
        let mut plugins =
            self.profiles.all[profile].post_filter.iter().filter_map(|e| e.plugin.post_filter());
        plugins.all(|plugin| plugin.evicts_lower_only())
    }

    /// Plans the members in one order. Returns `None` when the slice is over. Placements and releases stay until the
    /// caller's overlay ends.
    fn hunt(
        &mut self,
        attempt: &GangAttempt,
        search: &mut Search,
        run: &mut Run,
        slice: &mut Slice<'_>,
    ) -> Option<Found> {
        let hunt = VictimSearchParams { attempt, below: search.below, now: slice.now, probe: slice.probe };
        if run.at > 0 {
            if !self.put_parts_again(&hunt, search, run, slice) {
                *run = Run::new(attempt, std::mem::take(&mut run.sequence));
            }
            slice.begin(self.turns.work);
        }
        while run.at < run.sequence.len() && run.missing.iter().any(|n| *n > 0) {
            if slice.spent(self.turns.work) > work::SEARCH + work::HUNT {
                return Some(self.cut_short(attempt, run));
            }
            if slice.is_over(self.turns.work) {
                return None;
            }
            let i = run.sequence[run.at];
            run.at += 1;
            cancellation::check();
            let member = &attempt.candidates[i];
            let is_special =
                || self.cluster.nominator().of(member.id).is_some() || self.has_overrides(member);
            if run.missing[member.gang] == 0 || (run.refused.contains(&member.kind()) && !is_special()) {
                continue;
            }
            match self.make_room_for(&hunt, i, &run.going, search.known.of(member)) {
                Ok(part) => {
                    search.known.forget(std::iter::once(part.node));
                    run.add(part, member.gang);
                }
                Err(found) if search.is_hopeless || matches!(found, Found::NotEligible(_)) => {
                    return Some(found);
                }
                Err(found) => {
                    if !self.has_overrides(member) {
                        run.refused.insert(member.kind());
                    }
                    run.nothing = found;
                }
            }
        }
        Some(self.end_of(run, &hunt))
    }

    /// Returns the plan of a run that is over, or why there is none.
    fn end_of(&mut self, run: &mut Run, hunt: &VictimSearchParams<'_>) -> Found {
        if run.missing.iter().any(|n| *n > 0) {
            return std::mem::replace(&mut run.nothing, Found::NotAsked);
        }
        let mut parts = std::mem::take(&mut run.parts);
        if self.settle_plan(hunt, &mut parts) { Found::Quorum(parts) } else { preempt::not_together() }
    }

    fn cut_short(&self, attempt: &GangAttempt, run: &Run) -> Found {
        let needed: u32 = attempt.needs.iter().sum();
        let message = format!(
            "the search for victims was cut short because it took too long: {} of {needed} members had a node by then.",
            run.parts.len()
        );
        Found::CutShort(message.into())
    }

    /// Repeats the work of earlier slices: releases victims and places members. Returns whether all of it still holds;
    /// if not, nothing of it remains.
    fn put_parts_again(
        &mut self,
        hunt: &VictimSearchParams<'_>,
        search: &Search,
        run: &Run,
        slice: &Slice<'_>,
    ) -> bool {
        let Some(changed) = &slice.since else {
            search.known.0.values().for_each(|known| known.borrow_mut().clear());
            return false;
        };
        search.known.forget(changed.iter().copied());
        let overlay = self.cluster.begin();
        let holds = run.parts.iter().all(|part| {
            for victim in &part.victims {
                if self.cluster.pod(victim.choice.pod).is_some_and(|r| r.node == Some(part.node)) {
                    self.turns.work += work::MOVE;
                    self.cluster.release(victim.choice.pod);
                }
            }
            let member = &hunt.attempt.candidates[part.member];
            (changed.is_empty() || self.is_taken(hunt, part)) && self.put_member(member, part.node).is_ok()
        });
        if holds {
            self.cluster.commit(overlay);
        } else {
            self.cluster.rollback(overlay);
            search.known.0.values().for_each(|known| known.borrow_mut().clear());
        }
        holds
    }
}
