//! The book of preemptions: who was evicted for whom, how far that is, and whether it was of use.
//!
//! Part of the state, so that snapshots show both sides. The engine writes it; nothing here decides anything.
//!
//! Several preemptors may wait for the same victim: on a full node, each of equal priority needs the room of
//! those nominated before it as well. Its eviction is counted once, with the preemption that ordered it, or
//! with the one of higher priority that took over.

mod plan;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

pub use plan::{Candidate, Cost, Found, Plan, Rejected, VictimChoice};

use pellucid_model::collections::FxHashMap;
use pellucid_model::{GangKey, Name, Now, PodId, PodKey};

/// Ended preemptions that are remembered.
const REMEMBERED: usize = 256;

/// How far an eviction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VictimState {
    /// The delete is ordered.
    Ordered,
    /// The API server took the delete; the pod is terminating.
    Terminating,
    /// The pod is gone.
    Gone,
    /// The victim was not bound yet: its placement was taken back, nothing was deleted.
    Cancelled,
    /// The API server refused the delete.
    Refused(Arc<str>),
}

impl VictimState {
    /// Returns the word used in bodies.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Terminating => "terminating",
            Self::Gone => "gone",
            Self::Cancelled => "cancelled",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether the preemptor still waits for it.
    pub fn is_awaited(&self) -> bool {
        matches!(self, Self::Ordered | Self::Terminating)
    }

    /// Whether something was lost by it.
    fn is_cost(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// A victim.
#[derive(Clone, Debug)]
pub struct Victim {
    /// Number of the pod while it was there.
    pub pod: PodId,
    /// Namespace and name.
    pub key: PodKey,
    /// uid.
    pub uid: Arc<str>,
    /// Priority.
    pub priority: i32,
    /// Whether it was beyond what a budget allows.
    pub violates_budget: bool,
    /// How far it is.
    pub state: VictimState,
    /// Since when.
    pub since: Now,
    /// Whether the eviction counts as this preemption's: not when somebody else had begun it.
    pub is_counted: bool,
}

impl Victim {
    /// Whether it is awaited, and the pod of this number: when it is gone another pod may get the number.
    fn is_awaited_as(&self, pod: PodId) -> bool {
        self.pod == pod && self.state.is_awaited()
    }

    /// Whether something was lost by it on behalf of this preemption.
    fn is_cost(&self) -> bool {
        self.is_counted && self.state.is_cost()
    }
}

/// What became of a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The preemptor is bound to the node.
    Bound,
    /// The preemptor is gone, or so many of its gang that the others cannot be placed.
    PreemptorGone,
    /// The preemptor was placed on another node.
    PlacedElsewhere,
    /// The node is gone.
    NodeGone,
    /// A pod of higher priority took the node.
    Overtaken,
    /// Somebody else changed the nomination.
    NominationChanged,
    /// A later attempt found no way any more.
    NothingFound,
    /// A later attempt chose again.
    ChosenAgain,
}

impl End {
    /// All there are.
    pub const ALL: [Self; 8] = [
        Self::Bound,
        Self::PreemptorGone,
        Self::PlacedElsewhere,
        Self::NodeGone,
        Self::Overtaken,
        Self::NominationChanged,
        Self::NothingFound,
        Self::ChosenAgain,
    ];

    /// Returns the word used in bodies and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bound => "bound",
            Self::PreemptorGone => "preemptor-gone",
            Self::PlacedElsewhere => "placed-elsewhere",
            Self::NodeGone => "node-gone",
            Self::Overtaken => "overtaken",
            Self::NominationChanged => "nomination-changed",
            Self::NothingFound => "nothing-found",
            Self::ChosenAgain => "chosen-again",
        }
    }
}

/// What makes a preemption part of a whole gang's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangPart {
    /// The gangs that are placed together, by key.
    pub group: Arc<[GangKey]>,
    /// How many members preempt together.
    pub members: u32,
    /// Whether this one counts for all of them.
    pub is_counted: bool,
}

/// A preemption.
#[derive(Clone, Debug)]
pub struct Preemption {
    /// Namespace and name of the preemptor.
    pub preemptor: PodKey,
    /// Its uid.
    pub uid: Arc<str>,
    /// Its priority.
    pub priority: i32,
    /// The node.
    pub node: Name,
    /// When it was decided.
    pub decided: Now,
    /// In which scheduling cycle.
    pub cycle: u64,
    /// Victims, the most important first.
    pub victims: Vec<Victim>,
    /// The account of the search.
    pub plan: Arc<Plan>,
    /// The gang that preempts as one, when the pod is a member of it.
    pub gang: Option<GangPart>,
    /// What became of it, and when.
    pub end: Option<(End, Now)>,
}

impl Preemption {
    /// Whether all victims are out of the way.
    pub fn is_clear(&self) -> bool {
        !self.victims.iter().any(|v| v.state.is_awaited())
    }

    /// Returns how many victims are not yet out of the way.
    pub fn waiting_for(&self) -> usize {
        self.victims.iter().filter(|v| v.state.is_awaited()).count()
    }
}

/// Counters since the start.
#[derive(Clone, Debug, Default)]
pub struct PreemptionCounts {
    /// Searches for victims.
    pub attempts: u64,
    /// Searches that chose a node; those that chose the same one again, for the same pod, are not counted. The
    /// preemption of a whole gang is one.
    pub preemptions: u64,
    /// Victims chosen, each once: these are the useful, the wasted, the refused, and those of preemptions
    /// under way.
    pub victims: u64,
    /// Victims whose preemptor ended bound to the node.
    pub useful: u64,
    /// Victims that were evicted for nothing, by what became of the preemption.
    pub wasted: BTreeMap<End, u64>,
    /// Victims that the API server did not delete.
    pub refused: u64,
}

type Preemptors = SmallVec<[PodId; 1]>;

/// The book.
#[derive(Clone, Debug, Default)]
pub struct Preemptions {
    open: Arc<BTreeMap<PodId, Arc<Preemption>>>,
    /// Victims that are awaited, and by whom, those first who asked first.
    preemptors_of: Arc<FxHashMap<PodId, Preemptors>>,
    ended: Arc<VecDeque<Arc<Preemption>>>,
    counts: PreemptionCounts,
}

impl Preemptions {
    /// Returns the preemption that a pod waits for.
    pub fn of(&self, preemptor: PodId) -> Option<&Arc<Preemption>> {
        self.open.get(&preemptor)
    }

    /// Returns a pod's line in the preemption that counts its eviction, while it is awaited.
    pub fn victim(&self, pod: PodId) -> Option<&Victim> {
        let lines = self.preemptors_of.get(&pod)?.iter().filter_map(|by| self.line(*by, pod));
        lines.max_by_key(|line| line.is_counted)
    }

    /// Returns the pods that wait for a victim to be gone, those first who asked first.
    pub fn waiting_for(&self, victim: PodId) -> &[PodId] {
        self.preemptors_of.get(&victim).map_or(&[], |preemptors| preemptors)
    }

    fn line(&self, preemptor: PodId, victim: PodId) -> Option<&Victim> {
        self.open.get(&preemptor)?.victims.iter().find(|v| v.is_awaited_as(victim))
    }

    /// Returns the parts of a gang's preemption that are under way, by member.
    pub fn of_gang(&self, gang: &GangKey) -> Vec<(PodId, &Arc<Preemption>)> {
        let is_part = |p: &Preemption| p.gang.as_ref().is_some_and(|part| part.group.contains(gang));
        self.open().filter(|(_, p)| is_part(p)).collect()
    }

    /// Iterates over the preemptions under way.
    pub fn open(&self) -> impl Iterator<Item = (PodId, &Arc<Preemption>)> {
        self.open.iter().map(|(id, p)| (*id, p))
    }

    /// Iterates over ended ones, the newest first.
    pub fn ended(&self) -> impl Iterator<Item = &Arc<Preemption>> {
        self.ended.iter().rev()
    }

    /// Returns the counters.
    pub fn counts(&self) -> &PreemptionCounts {
        &self.counts
    }

    /// Counts a search.
    pub fn count_attempt(&mut self) {
        self.counts.attempts += 1;
    }

    /// Opens a preemption; an open one of the same pod goes on in it, or ends when it was for another node.
    /// What `overtaken` pods evicted and it needs as well is its own from now on.
    pub fn begin(&mut self, preemptor: PodId, mut preemption: Preemption, overtaken: &[PodId]) {
        for victim in &mut preemption.victims {
            let takes_over = self.give_up_count(victim.pod, preemptor, overtaken);
            if takes_over {
                victim.is_counted = true;
            } else if victim.is_counted {
                self.counts.victims += 1;
            }
        }
        if !self.go_on(preemptor, &mut preemption) {
            self.end(preemptor, End::ChosenAgain, preemption.decided);
            let counts = preemption.gang.as_ref().is_none_or(|part| part.is_counted);
            self.counts.preemptions += u64::from(counts);
        }
        let by_victim = Arc::make_mut(&mut self.preemptors_of);
        for victim in preemption.victims.iter().filter(|v| v.state.is_awaited()) {
            by_victim.entry(victim.pod).or_default().push(preemptor);
        }
        Arc::make_mut(&mut self.open).insert(preemptor, Arc::new(preemption));
    }

    /// Joins what a pod evicted earlier on the same node to a new preemption: that room is used as well.
    fn go_on(&mut self, preemptor: PodId, preemption: &mut Preemption) -> bool {
        if self.open.get(&preemptor).is_none_or(|earlier| earlier.node != preemption.node) {
            return false;
        }
        let Some(earlier) = self.take(preemptor) else { return false };
        for victim in &earlier.victims {
            let again = preemption.victims.iter().find(|v| v.uid == victim.uid);
            if !victim.state.is_cost() {
                self.counts.refused += u64::from(victim.is_counted);
            } else if again.is_some_and(|v| v.is_counted && victim.is_counted) {
                // A placement that was taken back, made again, and is taken back again.
                *self.counts.wasted.entry(End::ChosenAgain).or_default() += 1;
            } else if victim.is_counted || again.is_none() {
                preemption.victims.push(victim.clone());
            }
        }
        true
    }

    /// Takes an eviction from the preemption that counts it, if that is one of those that end now.
    fn give_up_count(&mut self, victim: PodId, preemptor: PodId, overtaken: &[PodId]) -> bool {
        let ends = |by: &&PodId| **by == preemptor || overtaken.contains(by);
        let waiting = self.preemptors_of.get(&victim);
        let mut ending = waiting.into_iter().flatten().filter(ends);
        let Some(by) = ending.find(|by| self.line(**by, victim).is_some_and(|v| v.is_counted)).copied()
        else {
            return false;
        };
        if let Some(open) = Arc::make_mut(&mut self.open).get_mut(&by) {
            let lines = Arc::make_mut(open).victims.iter_mut();
            lines.filter(|v| v.is_awaited_as(victim)).for_each(|v| v.is_counted = false);
        }
        true
    }

    /// Ends a pod's preemption and says whether there was one.
    pub fn end(&mut self, preemptor: PodId, end: End, now: Now) -> bool {
        let Some(mut preemption) = self.take(preemptor) else { return false };
        if end != End::Bound {
            self.pass_counts_on(Arc::make_mut(&mut preemption));
        }
        let counted = preemption.victims.iter().filter(|v| v.is_counted).count() as u64;
        let cost = preemption.victims.iter().filter(|v| v.is_cost()).count() as u64;
        self.counts.refused += counted - cost;
        match end {
            End::Bound => self.counts.useful += cost,
            _ if cost > 0 => *self.counts.wasted.entry(end).or_default() += cost,
            _ => {}
        }
        Arc::make_mut(&mut preemption).end = Some((end, now));
        let ended = Arc::make_mut(&mut self.ended);
        ended.push_back(preemption);
        if ended.len() > REMEMBERED {
            ended.pop_front();
        }
        true
    }

    /// Takes a preemption out: nobody is awaited for it any more.
    fn take(&mut self, preemptor: PodId) -> Option<Arc<Preemption>> {
        self.open.get(&preemptor)?;
        let preemption = Arc::make_mut(&mut self.open).remove(&preemptor)?;
        let by_victim = Arc::make_mut(&mut self.preemptors_of);
        for victim in &preemption.victims {
            if let Some(waiting) = by_victim.get_mut(&victim.pod) {
                waiting.retain(|by| *by != preemptor);
                if waiting.is_empty() {
                    by_victim.remove(&victim.pod);
                }
            }
        }
        Some(preemption)
    }

    /// An eviction that somebody else still waits for may yet be of use: it is counted there from now on.
    fn pass_counts_on(&mut self, ending: &mut Preemption) {
        let open = Arc::make_mut(&mut self.open);
        for victim in ending.victims.iter_mut().filter(|v| v.is_counted && v.state.is_awaited()) {
            let Some(heir) = self.preemptors_of.get(&victim.pod).and_then(|waiting| waiting.first()) else {
                continue;
            };
            if let Some(heir) = open.get_mut(heir).map(Arc::make_mut) {
                let lines = heir.victims.iter_mut().filter(|v| v.is_awaited_as(victim.pod));
                lines.for_each(|v| v.is_counted = true);
                victim.is_counted = false;
            }
        }
    }

    /// Notes how far an eviction is. Returns the preemptors that now wait for nobody any more.
    pub fn note(&mut self, victim: PodId, state: VictimState, now: Now) -> SmallVec<[PodId; 1]> {
        let Some(waiting) = self.preemptors_of.get(&victim).cloned() else { return SmallVec::new() };
        if !state.is_awaited() {
            Arc::make_mut(&mut self.preemptors_of).remove(&victim);
        }
        let open = Arc::make_mut(&mut self.open);
        let mut clear = SmallVec::new();
        for preemptor in waiting {
            let Some(preemption) = open.get_mut(&preemptor).map(Arc::make_mut) else { continue };
            for line in preemption.victims.iter_mut().filter(|v| v.is_awaited_as(victim) && v.state != state)
            {
                (line.state, line.since) = (state.clone(), now);
            }
            if preemption.is_clear() {
                clear.push(preemptor);
            }
        }
        clear
    }
}

#[cfg(test)]
mod tests;
