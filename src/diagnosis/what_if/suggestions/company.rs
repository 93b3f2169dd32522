//! Whether a fix holds when the other pending pods are tried too, as they are on the real cluster.

use std::collections::BTreeSet;

use pellucid_api::reason::ReasonCode;
use pellucid_cluster::PodRecord;
use pellucid_cycle::Snapshot;
use pellucid_cycle::what_if::edit::{Edit, Target};
use pellucid_cycle::what_if::simulation::{Fate, QueueEnd, Simulation, is_terminating};
use pellucid_model::{GangKey, Name, Now, PodId, PodKey};
use pellucid_queue::{QueueStage, Unit};

use super::parts::{Part, put_in_order};
use super::search::are_moved;

/// Largest number of pending pods that are planned together.
const MOST_PENDING: usize = 2_000;
/// Number of pods named as those that take the room.
const MOST_NAMED: usize = 5;
/// Bounds on the plans for one question, and on the pods planned in all of them together.
const LEAST_PLANS: usize = 6;
const MOST_PLANS: usize = 120;
const MOST_PODS: usize = 20_000;
/// Largest number of groups whose waits are let run out.
const MOST_WAITING: usize = 4;

/// Whether a fix holds in company.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InCompany {
    /// The pod, or the gang's quorum with the member that is asked about, has its place at the end: that of the pod or the
    /// member is on this node, however the change is carried out.
    Holds(Option<Name>),
    /// It has none. These went to where it has its place without others, in this order; none if what it needs is taken
    /// elsewhere.
    Taken(Vec<PodKey>),
    /// It was not tried, a pod comes back in a way that is not known or under another name, or it depends on how fast the
    /// parts follow each other, on who is tried in between, on whether backoffs have ended, on when pods leave that are being
    /// deleted, on when gangs that wait give up their places, on volumes that are to be made, or on when pods are tried again
    /// that nothing wakes; or the member has its place in the end, and the gang no quorum.
    Unknown,
}

impl InCompany {
    pub(super) fn holds(&self) -> bool {
        matches!(self, Self::Holds(_))
    }

    /// Returns what is said in this plan and another one.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Holds(node), Self::Holds(place)) => {
                Self::Holds(node.filter(|node| Some(node) == place.as_ref()))
            }
            (said @ Self::Taken(_), Self::Taken(_)) => said,
            _ => Self::Unknown,
        }
    }

    /// Returns the name in bodies.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Holds(_) => "holds",
            Self::Taken(_) => "taken",
            Self::Unknown => "unknown",
        }
    }
}

/// When the pods leave that are being deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// Before the change.
    Before,
    /// When all others have been tried after the change, or after its first part.
    Afterwards,
}

/// When what happens that nobody who carries out a change decides.
#[derive(Clone, Copy)]
struct When {
    /// Where the pods that are asked about stand in the queue after the first step.
    queue_end: Option<QueueEnd>,
    leaving: Leaving,
    /// Whether the gangs that gave their places up when their waits ran out are tried again only after all others.
    is_resting: bool,
    /// Whether backoffs that run now go on when the change is carried out.
    backs_off: bool,
}

/// Plans changes with all other pending pods, as often as is allowed.
pub(super) struct Company<'s> {
    snapshot: &'s Snapshot,
    of: &'s Target,
    /// The member of the gang that is asked about, if one is.
    member: Option<&'s PodKey>,
    now: Now,
    left: usize,
    /// Whether other pods of ours are pending.
    has_others: bool,
    /// Whether pods are being deleted, which leave at a time that nobody knows.
    has_terminating: bool,
    /// The groups of gangs that gave their places up when their waits ran out, and back off before they are tried again.
    resting: Vec<GangKey>,
    /// Whether a pending pod backs off, or would if it were woken now.
    has_backoff: bool,
    /// Whether a plan was not made because none was left, or because there are too many pods.
    pub(super) is_cut: bool,
}

impl<'s> Company<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, of: &'s Target, now: Now) -> Self {
        let cluster = &snapshot.cluster;
        let is_pending = |r: &PodRecord| r.node.is_none() && cluster.is_ours(&r.pod.scheduler_name);
        let is_own = |r: &PodRecord| match of {
            Target::Pod(key) => r.pod.key == *key,
            Target::Gang(key) => r.pod.member_of() == Some(key),
        };
        let pending = cluster.pods().filter(|(_, record)| is_pending(record)).take(MOST_PENDING + 1);
        let (mut pending, mut others) = pending.fold((0, 0), |(pending, others), (_, record)| {
            (pending + 1, others + usize::from(!is_own(record)))
        });
        if snapshot.shadow.is_some() {
            // The shadowed scheduler decides about the others.
            (pending, others) = (MOST_PENDING + 1, 1);
        }
        let is_cut = pending > MOST_PENDING;
        let left = if is_cut { 0 } else { (MOST_PODS / pending.max(1)).clamp(LEAST_PLANS, MOST_PLANS) };
        let has_terminating = cluster.pods().any(|(_, record)| is_terminating(cluster, record));
        let (member, has_others, resting) = (None, others > 0, resting(snapshot));
        let has_backoff = snapshot.queue.units().any(|(_, unit)| unit.backoff_until > now.monotonic);
        Self { snapshot, of, member, now, left, has_others, has_terminating, resting, has_backoff, is_cut }
    }

    /// Asks about one member of the gang, which has to have a place as well.
    pub(super) fn with_member(self, member: Option<&'s PodKey>) -> Self {
        Self { member, ..self }
    }

    /// Whether there is a plan left.
    pub(super) fn can_plan(&self) -> bool {
        self.left > 0
    }

    /// Tries a change that helps the pod alone, its parts in the order in which they are listed, at once and one by one;
    /// `node` is where the pod would go.
    pub(super) fn judge(&mut self, parts: &[Part], node: Option<&str>) -> InCompany {
        let deletes = parts.iter().any(|part| matches!(part.edit, Edit::DeletePod(_)));
        if !self.has_others && !deletes {
            return InCompany::Holds(node.map(Name::new));
        }
        let mut parts = parts.to_vec();
        put_in_order(&mut parts);
        let when =
            When { queue_end: None, leaving: Leaving::Afterwards, is_resting: false, backs_off: false };
        let others = [
            (self.has_terminating, When { leaving: Leaving::Before, ..when }),
            (!self.resting.is_empty(), When { is_resting: true, ..when }),
            (self.has_backoff, When { backs_off: true, ..when }),
        ];
        let mut said = self.judged(&parts, node, when);
        for (_, when) in others.into_iter().filter(|(is_possible, _)| *is_possible) {
            if said == InCompany::Unknown {
                break;
            }
            said = said.and(self.judged(&parts, node, when));
        }
        said
    }

    fn judged(&mut self, parts: &[Part], node: Option<&str>, when: When) -> InCompany {
        let together = self.tried(&[parts], when, node);
        // Whoever carries out one part after another gives the others time in between. New nodes come together.
        let is_node = |part: &Part| matches!(part.edit, Edit::CopyNode { .. });
        let one_by_one: Vec<&[Part]> = parts.chunk_by(|a, b| is_node(a) && is_node(b)).collect();
        let queue_end = match &together {
            _ if one_by_one.len() < 2 => return together,
            InCompany::Holds(_) => QueueEnd::Back,
            InCompany::Taken(_) => QueueEnd::Front,
            InCompany::Unknown => return together,
        };
        together.and(self.tried(&one_by_one, When { queue_end: Some(queue_end), ..when }, node))
    }

    /// Carries out steps of a change, the others being planned after each.
    fn tried(&mut self, steps: &[&[Part]], when: When, node: Option<&str>) -> InCompany {
        let Some(mut simulation) = self.planned(steps, when) else { return InCompany::Unknown };
        if self.is_met(&simulation) {
            simulation.try_sleeping();
            if simulation.is_cut() || !self.is_met(&simulation) {
                return InCompany::Unknown;
            }
            // The place may be that of the pod that a controller made for one that was placed and evicted.
            let own = if simulation.evicted().is_empty() { Vec::new() } else { self.own() };
            if simulation.evicted().iter().any(|gone| own.contains(&gone.pod)) {
                return InCompany::Unknown;
            }
            return InCompany::Holds(self.place_of(&simulation));
        }
        if self.member.is_some_and(|member| simulation.is_placed(member)) {
            // It keeps its place, although another one of the quorum was evicted.
            return InCompany::Unknown;
        }
        if simulation.is_waiting() {
            match self.outlasting(&simulation, steps, when) {
                Some(later) => simulation = later,
                None => return InCompany::Unknown,
            }
        }
        let nodes = match self.of {
            Target::Pod(_) => node.map(Name::new).into_iter().collect(),
            Target::Gang(key) => self.nodes_of_gang(key, steps),
        };
        let own = self.own();
        let is_other = |key: &PodKey, at: &Name| {
            nodes.contains(at) && !own.contains(key) && !simulation.is_waiting_pod(key)
        };
        let others = simulation.placed().into_iter().filter(|(key, at)| is_other(key, at));
        InCompany::Taken(others.map(|(key, _)| key.clone()).take(MOST_NAMED).collect())
    }

    /// Lets the waits of the gangs run out that have places at Permit at the end of a plan: one after another and all at
    /// once, each tried again before and after the others. Returns the last of these plans if none of them gives the pod or
    /// the gang its place; `None` also when there are too many groups or plans.
    fn outlasting(&mut self, planned: &Simulation, steps: &[&[Part]], when: When) -> Option<Simulation> {
        let waiting = planned.waiting_groups().filter(|groups| groups.len() <= MOST_WAITING)?;
        let apart: Vec<&[GangKey]> = waiting.chunks(1).collect();
        let together = [waiting.as_slice()];
        let mut ways = vec![(apart.as_slice(), QueueEnd::Front)];
        ways.extend((waiting.len() > 1).then_some((&together[..], QueueEnd::Back)));
        ways.push((apart.as_slice(), QueueEnd::Back));
        let mut last = None;
        for (groups, again) in ways {
            let mut simulation = self.planned(steps, when)?;
            for group in groups {
                simulation.end_waits(group, again);
                if self.is_met(&simulation) {
                    return None;
                }
                simulation.call_back();
                if self.is_met(&simulation) || simulation.is_cut() {
                    return None;
                }
            }
            last = Some(simulation);
        }
        last
    }

    /// Returns the nodes on which a change gives a gang's pending members places when nobody else is tried.
    fn nodes_of_gang(&self, gang: &GangKey, steps: &[&[Part]]) -> BTreeSet<Name> {
        let mut simulation = Simulation::of(self.snapshot, self.now);
        if steps.iter().copied().flatten().any(|part| simulation.edit(&part.edit).is_err()) {
            return BTreeSet::new();
        }
        simulation.ask_gang(gang);
        simulation.plan(false);
        let node = |key: &PodKey| match simulation.fate(key) {
            Fate::Placed { node, .. } => Some(node.clone()),
            _ => None,
        };
        self.own().iter().filter_map(node).collect()
    }

    /// Plans a change in steps, if there is a plan left and its result is sure.
    fn planned(&mut self, steps: &[&[Part]], when: When) -> Option<Simulation> {
        let Some(left) = self.left.checked_sub(steps.len()) else {
            self.is_cut = true;
            return None;
        };
        self.left = left;
        let simulation = self.carried_out(steps, when)?;
        let is_moved = steps.iter().all(|parts| are_moved(parts, &simulation));
        (is_moved && !simulation.is_cut()).then_some(simulation)
    }

    fn carried_out(&self, steps: &[&[Part]], when: When) -> Option<Simulation> {
        let mut simulation = Simulation::of(self.snapshot, self.now);
        if let Some(queue_end) = when.queue_end {
            simulation.queue_at(self.own(), queue_end);
        }
        if when.is_resting {
            simulation.keep_away(self.resting.clone());
        }
        if when.backs_off {
            simulation.back_off_as_published();
        }
        simulation.replace_removed();
        if !simulation.resume_pending(MOST_PENDING) {
            return None;
        }
        if when.leaving == Leaving::Before {
            simulation.end_terminating();
            simulation.plan(true);
            if self.is_met(&simulation) {
                return Some(simulation);
            }
        }
        for parts in steps {
            for part in *parts {
                let is_evicted = |key: &PodKey| simulation.evicted().iter().any(|gone| gone.pod == *key);
                if matches!(&part.edit, Edit::DeletePod(pod) | Edit::MovePod { pod, .. } if is_evicted(pod)) {
                    return None;
                }
                let is_anew = part.recreate || matches!(part.edit, Edit::RemoveGates(_));
                simulation.edit_queued(&part.edit, is_anew).ok()?;
            }
            simulation.plan(true);
        }
        if when.is_resting && !self.is_met(&simulation) {
            simulation.call_back();
        }
        Some(simulation)
    }

    /// Returns the node of the pod, or of the member that is asked about.
    fn place_of(&self, simulation: &Simulation) -> Option<Name> {
        let asked = match self.of {
            Target::Pod(key) => Some(key),
            Target::Gang(_) => self.member,
        };
        match simulation.fate(asked?) {
            Fate::Placed { node, .. } => Some(node.clone()),
            _ => None,
        }
    }

    /// Returns the pods that are asked about.
    fn own(&self) -> Vec<PodKey> {
        let key = match self.of {
            Target::Pod(key) => return vec![key.clone()],
            Target::Gang(key) => key,
        };
        let pods = self.snapshot.cluster.pods();
        pods.filter(|(_, r)| r.node.is_none() && r.pod.member_of() == Some(key))
            .map(|(_, r)| r.pod.key.clone())
            .collect()
    }

    fn is_met(&self, simulation: &Simulation) -> bool {
        match self.of {
            Target::Pod(key) => simulation.is_placed(key),
            Target::Gang(key) => {
                let gang = simulation.scheduler().cluster().gangs().get(key);
                gang.is_some_and(|gang| gang.definition.undefined.is_none() && gang.is_satisfied())
                    && self.member.is_none_or(|member| simulation.is_placed(member))
            }
        }
    }
}

/// Returns the groups of gangs that back off because a wait of theirs ran out, by the keys of their units.
fn resting(snapshot: &Snapshot) -> Vec<GangKey> {
    let has_waited = |id: &PodId| {
        let cause = snapshot.refusal(*id).and_then(|refusal| refusal.pod_cause.as_ref());
        cause.is_some_and(|cause| cause.reasons.iter().any(|r| r.code == ReasonCode::GangWaitTimeout))
    };
    let backs_off = |unit: &Unit| matches!(unit.stage, QueueStage::Backoff | QueueStage::ErrorBackoff);
    let rests = |unit: &Unit| backs_off(unit) && unit.pods.iter().any(has_waited);
    let units = snapshot.queue.units().map(|(_, unit)| unit).filter(|unit| rests(unit));
    let mut resting: Vec<GangKey> = units.filter_map(|unit| unit.gang.clone()).collect();
    resting.sort_unstable();
    resting
}
