//! The record of preemptions: which pods were evicted for which, how far each eviction is, and whether it helped.
//!
//! Part of the state, so that snapshots show both sides. The scheduler writes it; nothing here decides anything.
//!
//! Several preemptors may wait for the same victim: on a full node, each preemptor of equal priority also needs the
//! room of those nominated before it. Each eviction is counted once, with the preemption that ordered it or with the
//! one of higher priority that took it over.

mod plan;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

pub use plan::{Candidate, CandidateResult, Cost, Lack, LackedAmount, Plan, Rejected, VictimChoice};

use pellucid_model::collections::FxHashMap;
use pellucid_model::pod::StandsFor;
use pellucid_model::{GangKey, Name, Now, PodId, PodKey};

/// Number of ended preemptions that are remembered.
const REMEMBERED: usize = 256;

/// How far an eviction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VictimState {
    /// The delete is ordered.
    Ordered,
    /// The API server accepted the delete; the pod is terminating.
    Terminating,
    /// The pod is deleted.
    Gone,
    /// The victim was not bound yet: its placement was undone, and nothing was deleted.
    Cancelled,
    /// The API server refused the delete, with this message.
    Refused(Arc<str>),
}

impl VictimState {
    /// Returns the name used in the REST API.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Terminating => "terminating",
            Self::Gone => "gone",
            Self::Cancelled => "cancelled",
            Self::Refused(_) => "refused",
        }
    }

    /// Returns whether the preemptor still waits for the victim to leave.
    pub fn is_awaited(&self) -> bool {
        matches!(self, Self::Ordered | Self::Terminating)
    }

    /// Returns whether the eviction cost somebody a place.
    fn is_cost(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// A victim of one preemption.
#[derive(Clone, Debug)]
pub struct Victim {
    /// Id of the pod while it is in the state; another pod may have the id afterwards.
    pub pod: PodId,
    /// Namespace and name.
    pub key: PodKey,
    /// The pod's uid.
    pub uid: Arc<str>,
    /// The object that the pod stands for, if it stands for one.
    pub stands_for: Option<Arc<StandsFor>>,
    /// The pod's priority.
    pub priority: i32,
    /// Whether evicting it went beyond what a PodDisruptionBudget allows.
    pub violates_budget: bool,
    /// How far the eviction is.
    pub state: VictimState,
    /// When it was chosen as a victim.
    pub chosen: Now,
    /// When it entered that state.
    pub since: Now,
    /// Whether the eviction is counted with this preemption; false when somebody else had begun it.
    pub is_counted: bool,
}

impl Victim {
    /// Returns whether the victim is awaited and has this id. Once it is gone, another pod may get the id.
    fn is_awaited_as(&self, pod: PodId) -> bool {
        self.pod == pod && self.state.is_awaited()
    }

    /// Returns whether the eviction cost somebody a place and is counted with this preemption.
    fn is_cost(&self) -> bool {
        self.is_counted && self.state.is_cost()
    }
}

pellucid_model::named! {
    /// How a preemption ended; named as in the REST API and in metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum End {
        /// The preemptor is bound to the node.
        Bound = "bound",
        /// The preemptor is gone, or so many members of its gang that the others cannot be placed.
        PreemptorGone = "preemptor-gone",
        /// The preemptor was placed on another node.
        PlacedElsewhere = "placed-elsewhere",
        /// The node was deleted.
        NodeGone = "node-gone",
        /// A pod of higher priority took the node.
        Overtaken = "overtaken",
        /// Somebody else changed the nomination.
        NominationChanged = "nomination-changed",
        /// A later attempt of the preemptor found no candidate node.
        NothingFound = "nothing-found",
        /// A later attempt of the preemptor chose again.
        ChosenAgain = "chosen-again",
    }
}

/// Marks a preemption as one part of the preemption of a whole gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangPart {
    /// The gangs that are placed together, sorted by key.
    pub group: Arc<[GangKey]>,
    /// Number of members that preempt together.
    pub members: u32,
    /// Whether this part is the one that counts for all of them.
    pub is_counted: bool,
}

/// One preemption: a preemptor, a node, and the victims on it.
#[derive(Clone, Debug)]
pub struct Preemption {
    /// Namespace and name of the preemptor.
    pub preemptor: PodKey,
    /// The preemptor's uid.
    pub uid: Arc<str>,
    /// The preemptor's priority.
    pub priority: i32,
    /// Name of the node.
    pub node: Name,
    /// When it was decided.
    pub decided: Now,
    /// Number of the scheduling cycle in which it was decided.
    pub cycle: u64,
    /// Victims, most important first.
    pub victims: Vec<Victim>,
    /// How the search for victims went.
    pub plan: Arc<Plan>,
    /// The gang that preempts as one, when the preemptor is a member of it.
    pub gang: Option<GangPart>,
    /// How and when it ended; `None` while it is open.
    pub end: Option<(End, Now)>,
}

impl Preemption {
    /// Returns whether no victim is awaited any more.
    pub fn is_clear(&self) -> bool {
        !self.victims.iter().any(|v| v.state.is_awaited())
    }

    /// Returns the number of victims that are still awaited.
    pub fn waiting_for(&self) -> usize {
        self.victims.iter().filter(|v| v.state.is_awaited()).count()
    }
}

/// Counters since the start of the process.
#[derive(Clone, Debug, Default)]
pub struct PreemptionCounts {
    /// Searches for victims.
    pub attempts: u64,
    /// Preemptions begun. Choosing the same node again for the same pod is not counted, and the preemption of a whole
    /// gang counts once.
    pub preemptions: u64,
    /// Victims chosen, each once: the sum of `useful`, `wasted`, `refused`, and the victims of open preemptions.
    pub victims: u64,
    /// Victims whose preemptor was bound to the node.
    pub useful: u64,
    /// Victims evicted in vain, by how the preemption ended.
    pub wasted: BTreeMap<End, u64>,
    /// Victims that the API server refused to delete.
    pub refused: u64,
}

type Preemptors = SmallVec<[PodId; 1]>;

/// All preemptions, part of [`Cluster`](super::Cluster). Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Preemptions {
    open: Arc<BTreeMap<PodId, Arc<Preemption>>>,
    /// The preemptors that await each victim, in the order in which they asked.
    preemptors_of: Arc<FxHashMap<PodId, Preemptors>>,
    ended: Arc<VecDeque<Arc<Preemption>>>,
    counts: PreemptionCounts,
}

impl Preemptions {
    /// Returns the open preemption of a preemptor, or `None`.
    pub fn of(&self, preemptor: PodId) -> Option<&Arc<Preemption>> {
        self.open.get(&preemptor)
    }

    /// Returns a victim's entry while it is awaited, preferably the one that counts its eviction.
    pub fn victim(&self, pod: PodId) -> Option<&Victim> {
        let lines = self.preemptors_of.get(&pod)?.iter().filter_map(|by| self.line(*by, pod));
        lines.max_by_key(|line| line.is_counted)
    }

    /// Returns the preemptors that wait for a victim, in the order in which they asked.
    pub fn waiting_for(&self, victim: PodId) -> &[PodId] {
        self.preemptors_of.get(&victim).map_or(&[], |preemptors| preemptors)
    }

    fn line(&self, preemptor: PodId, victim: PodId) -> Option<&Victim> {
        self.open.get(&preemptor)?.victims.iter().find(|v| v.is_awaited_as(victim))
    }

    /// Returns the open parts of a gang's preemption, with the members that they are for.
    pub fn of_gang(&self, gang: &GangKey) -> Vec<(PodId, &Arc<Preemption>)> {
        let is_part = |p: &Preemption| p.gang.as_ref().is_some_and(|part| part.group.contains(gang));
        self.open().filter(|(_, p)| is_part(p)).collect()
    }

    /// Iterates over the open preemptions, with their preemptors.
    pub fn open(&self) -> impl Iterator<Item = (PodId, &Arc<Preemption>)> {
        self.open.iter().map(|(id, p)| (*id, p))
    }

    /// Iterates over ended preemptions, newest first.
    pub fn ended(&self) -> impl Iterator<Item = &Arc<Preemption>> {
        self.ended.iter().rev()
    }

    /// Returns the counters since the start of the process.
    pub fn counts(&self) -> &PreemptionCounts {
        &self.counts
    }

    /// Counts a search for victims.
    pub fn count_attempt(&mut self) {
        self.counts.attempts += 1;
    }

    /// Opens a preemption. An open one of the same pod is merged into it when the node is the same, and otherwise ends.
    /// Evictions that the `overtaken` pods ordered and this preemption needs as well are counted here from now on.
    pub fn begin(&mut self, preemptor: PodId, mut preemption: Preemption, overtaken: &[PodId]) {
        for victim in &mut preemption.victims {
            let takes_over = self.give_up_count(victim.pod, preemptor, overtaken);
            if takes_over {
                victim.is_counted = true;
            } else if victim.is_counted {
                self.counts.victims += 1;
            }
        }
        if !self.merge_earlier(preemptor, &mut preemption) {
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

    /// Merges the pod's earlier preemption of the same node into a new one, because its evictions make room as well.
    /// Returns false when there is none.
    fn merge_earlier(&mut self, preemptor: PodId, preemption: &mut Preemption) -> bool {
        if self.open.get(&preemptor).is_none_or(|earlier| earlier.node != preemption.node) {
            return false;
        }
        let Some(earlier) = self.take(preemptor) else { return false };
        for victim in &earlier.victims {
            let again = preemption.victims.iter().find(|v| v.uid == victim.uid);
            if !victim.state.is_cost() {
                self.counts.refused += u64::from(victim.is_counted);
            } else if again.is_some_and(|v| v.is_counted && victim.is_counted) {
                // The victim's placement was undone, made again, and is undone again.
                *self.counts.wasted.entry(End::ChosenAgain).or_default() += 1;
            } else if victim.is_counted || again.is_none() {
                preemption.victims.push(victim.clone());
            }
        }
        true
    }

    /// Uncounts an eviction in the preemption that counts it, if that preemption ends now. Returns whether it did.
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

    /// Ends a pod's preemption. Returns whether there was one.
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

    /// Removes a preemption from the open ones, and its preemptor from those that await the victims.
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

    /// Moves the count of each eviction that another preemptor still awaits to that preemptor, because it may yet help.
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

    /// Records how far an eviction is. Returns the preemptors that no longer wait for any victim.
    pub fn set_victim_state(&mut self, victim: PodId, state: VictimState, now: Now) -> SmallVec<[PodId; 1]> {
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
