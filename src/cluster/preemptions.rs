//! The book of preemptions: who was evicted for whom, how far that is, and whether it was of use.
//!
//! Part of the state, so that roots show both sides. The engine writes it; nothing here decides anything.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::framework::post_filter::Plan;
use crate::model::collections::FxHashMap;
use crate::model::{Name, Now, PodId, PodKey};

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
}

/// What became of a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The preemptor is bound to the node.
    Bound,
    /// The preemptor is gone.
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
    /// What became of it, and when.
    pub end: Option<(End, Now)>,
}

impl Preemption {
    /// Whether all victims are out of the way.
    pub fn is_clear(&self) -> bool {
        !self.victims.iter().any(|v| v.state.is_awaited())
    }
}

/// Counters since the start.
#[derive(Clone, Debug, Default)]
pub struct PreemptionCounts {
    /// Searches for victims.
    pub attempts: u64,
    /// Searches that chose a node.
    pub preemptions: u64,
    /// Victims chosen.
    pub victims: u64,
    /// Victims whose preemptor ended bound to the node.
    pub useful: u64,
    /// Victims that were evicted for nothing, by what became of the preemption.
    pub wasted: BTreeMap<End, u64>,
}

/// Pods that preempt.
pub type Preemptors = SmallVec<[PodId; 1]>;

/// The book.
#[derive(Clone, Debug, Default)]
pub struct Preemptions {
    open: Arc<BTreeMap<PodId, Arc<Preemption>>>,
    /// Who waits for each awaited victim: pods of equal priority may need the same one gone.
    waiting_for: Arc<FxHashMap<PodId, Preemptors>>,
    ended: Arc<VecDeque<Arc<Preemption>>>,
    counts: PreemptionCounts,
}

impl Preemptions {
    /// Returns the preemption that a pod waits for.
    pub fn of(&self, preemptor: PodId) -> Option<&Arc<Preemption>> {
        self.open.get(&preemptor)
    }

    /// Returns the pods that wait for a victim to be gone, in the order of their decisions.
    pub fn waiting_for(&self, victim: PodId) -> &[PodId] {
        self.waiting_for.get(&victim).map_or(&[], |preemptors| preemptors)
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

    /// Opens a preemption; an open one of the same pod ends.
    pub fn begin(&mut self, preemptor: PodId, preemption: Preemption) {
        self.end(preemptor, End::ChosenAgain, preemption.decided);
        self.counts.preemptions += 1;
        self.counts.victims += preemption.victims.len() as u64;
        let waiting_for = Arc::make_mut(&mut self.waiting_for);
        for victim in preemption.victims.iter().filter(|v| v.state.is_awaited()) {
            waiting_for.entry(victim.pod).or_default().push(preemptor);
        }
        Arc::make_mut(&mut self.open).insert(preemptor, Arc::new(preemption));
    }

    /// Ends a pod's preemption and says whether there was one.
    pub fn end(&mut self, preemptor: PodId, end: End, now: Now) -> bool {
        if !self.open.contains_key(&preemptor) {
            return false;
        }
        let Some(mut preemption) = Arc::make_mut(&mut self.open).remove(&preemptor) else { return false };
        let waiting_for = Arc::make_mut(&mut self.waiting_for);
        for victim in &preemption.victims {
            if let Some(preemptors) = waiting_for.get_mut(&victim.pod) {
                preemptors.retain(|p| *p != preemptor);
                if preemptors.is_empty() {
                    waiting_for.remove(&victim.pod);
                }
            }
        }
        let cost = preemption.victims.iter().filter(|v| v.state.is_cost()).count() as u64;
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

    /// Notes how far an eviction is. Returns the preemptors that now wait for nobody any more.
    pub fn note(&mut self, victim: PodId, state: &VictimState, now: Now) -> Preemptors {
        let Some(mut preemptors) = self.waiting_for.get(&victim).cloned() else { return Preemptors::new() };
        if !state.is_awaited() {
            Arc::make_mut(&mut self.waiting_for).remove(&victim);
        }
        let open = Arc::make_mut(&mut self.open);
        preemptors.retain(|preemptor| {
            let Some(preemption) = open.get_mut(preemptor).map(Arc::make_mut) else { return false };
            if let Some(known) = preemption.victims.iter_mut().find(|v| v.pod == victim) {
                (known.state, known.since) = (state.clone(), now);
            }
            preemption.is_clear()
        });
        preemptors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn victim(pod: u32) -> Victim {
        Victim {
            pod: PodId(pod),
            key: PodKey::new("d", &format!("v{pod}")),
            uid: "u".into(),
            priority: 0,
            violates_budget: false,
            state: VictimState::Ordered,
            since: Now::default(),
        }
    }

    fn preemption(victims: &[u32]) -> Preemption {
        Preemption {
            preemptor: PodKey::new("d", "p"),
            uid: "p".into(),
            priority: 10,
            node: "n".into(),
            decided: Now::default(),
            cycle: 1,
            victims: victims.iter().map(|v| victim(*v)).collect(),
            plan: Arc::default(),
            end: None,
        }
    }

    #[test]
    fn the_preemptor_is_told_when_the_last_victim_is_out_of_the_way() {
        let (mut book, now) = (Preemptions::default(), Now::default());
        book.begin(PodId(9), preemption(&[1, 2]));
        assert!(book.note(PodId(1), &VictimState::Terminating, now).is_empty());
        assert!(book.note(PodId(1), &VictimState::Gone, now).is_empty());
        assert!(book.waiting_for(PodId(1)).is_empty());
        assert_eq!(book.note(PodId(2), &VictimState::Refused("no".into()), now).as_slice(), [PodId(9)]);
        assert!(book.end(PodId(9), End::PlacedElsewhere, now));
        assert!(!book.end(PodId(9), End::Bound, now));
        assert_eq!(book.counts().wasted[&End::PlacedElsewhere], 1, "a refused eviction cost nothing");
        assert_eq!(book.ended().count(), 1);
    }

    #[test]
    fn several_preemptors_wait_for_one_victim() {
        let (mut book, now) = (Preemptions::default(), Now::default());
        book.begin(PodId(8), preemption(&[1]));
        book.begin(PodId(9), preemption(&[1, 2]));
        assert_eq!(book.waiting_for(PodId(1)), [PodId(8), PodId(9)]);
        assert_eq!(book.note(PodId(1), &VictimState::Gone, now).as_slice(), [PodId(8)]);
        assert!(book.waiting_for(PodId(1)).is_empty());
        assert_eq!(book.note(PodId(2), &VictimState::Gone, now).as_slice(), [PodId(9)]);
        book.begin(PodId(7), preemption(&[3]));
        book.begin(PodId(8), preemption(&[3]));
        book.end(PodId(7), End::Overtaken, now);
        assert_eq!(book.waiting_for(PodId(3)), [PodId(8)], "who no longer waits is not told");
    }

    #[test]
    fn every_victim_is_useful_or_wasted() {
        let (mut book, now) = (Preemptions::default(), Now::default());
        book.begin(PodId(9), preemption(&[1, 2]));
        book.begin(PodId(9), preemption(&[3]));
        book.end(PodId(9), End::Bound, now);
        let counts = book.counts();
        assert_eq!((counts.victims, counts.useful, counts.wasted[&End::ChosenAgain]), (3, 1, 2));
    }
}
