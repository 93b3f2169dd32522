//! Simulates decisions: a separate scheduler on a copy of a published state, with changes.
//!
//! The code is that of the real cycle. Edits become the inputs that a watch would deliver, pods are queued and planned,
//! and placements are stored in the copy. Nothing leaves it: Bindings are confirmed and evictions carried out in the
//! copy, other effects are dropped. Pages of the state are shared with the published one until they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::{Cluster, ClusterEvent, Input, PodRecord, Stage};
use pellucid_framework::profile::Profile;
use pellucid_model::time::NoProbe;
use pellucid_model::{GangKey, Name, Now, Pod, PodId, PodKey, cancellation};
use pellucid_queue::Queue;
use pellucid_recording::GangVerdict;
use pellucid_recording::switches::Setter;

use super::edit::{self, Edit, Target};
pub use super::line::QueueEnd;
pub use super::orders::{Evicted, is_terminating};
use crate::Snapshot;
use crate::scheduler::gangs::gate::{Block, block};
use crate::scheduler::records::last_attempt::LastAttempt;
use crate::scheduler::{Scheduler, Step};

/// A plan is cut off after this many attempts per requested pod, plus [`LEAST_STEPS`].
const STEPS_PER_POD: usize = 20;
const LEAST_STEPS: usize = 1_000;
/// Longer than any backoff, so that every woken unit is tried.
pub(super) const ROUND: Duration = Duration::from_secs(60);
/// Time between two attempts, so that units queue up behind each other as they do in reality.
pub(super) const BETWEEN_STEPS: Duration = Duration::from_nanos(1);

/// A scheduler on a copy of a snapshot, and the results of its plan.
pub struct Simulation {
    pub(super) scheduler: Scheduler,
    pub(super) now: Now,
    /// The published queue, which says since when pending pods wait.
    pub(super) published: Queue,
    /// The requested pods. Several edits may queue the same pod, which is planned once.
    pub(super) asked: BTreeSet<PodKey>,
    /// The pods that are added or made anew, with the order in which they arrived: they queue behind all others.
    pub(super) arrived: BTreeMap<PodKey, usize>,
    /// Number of arrivals so far, and how many of them were put in order.
    pub(super) arrivals: usize,
    pub(super) lined_up: Option<usize>,
    /// The pods that stand before or behind all their equals once something was planned, and which of both.
    pub(super) queue_end: Option<(Vec<PodKey>, QueueEnd)>,
    /// The groups of gangs that are not tried before they are called back.
    pub(super) away: Vec<GangKey>,
    /// Whether backoffs of the published queue go on.
    pub(super) backs_off: bool,
    /// Where requested pods stood whose objects were used up there.
    pub(super) ended: BTreeMap<PodKey, Name>,
    /// The stage that a pod had reached before its Binding was confirmed.
    pub(super) stages: BTreeMap<PodKey, Stage>,
    /// Placed pods that are not confirmed, of which waiting pods were told.
    pub(super) announced: BTreeSet<PodId>,
    /// What time has changed since the publication.
    pub(super) expired: Vec<ClusterEvent>,
    pub(super) evicted: Vec<Evicted>,
    /// Whether controllers replace pods that are deleted.
    pub(super) replaces: bool,
    /// Whether something was deleted of which it is not known whether and how it comes back, or something depends on writes
    /// before Bindings, which are not carried out.
    pub is_unsure: bool,
    steps: Vec<Step>,
    /// Whether the plan was cut off after too many attempts.
    pub truncated: bool,
}

impl Simulation {
    /// Creates a simulation in which nothing is queued and placed pods keep their places.
    pub fn of(snapshot: &Snapshot, now: Now) -> Self {
        cancellation::check();
        Self::with_weights(snapshot, &[], now)
    }

    /// Creates a simulation on another state, which was made from that of the snapshot.
    pub fn on(snapshot: &Snapshot, state: Cluster, now: Now) -> Self {
        let mut scheduler = Scheduler::on_copy(snapshot, snapshot.profiles.clone());
        scheduler.cluster = state;
        Self::with(scheduler, snapshot, now)
    }

    /// Creates a simulation with the score weights that `edits` set. Apply the other edits with [`edit`](Self::edit).
    pub fn with_weights(snapshot: &Snapshot, edits: &[Edit], now: Now) -> Self {
        let is_weight = |edit: &Edit| matches!(edit, Edit::SetWeight { .. });
        let profiles = match edits.iter().any(is_weight) {
            true => snapshot.profiles.iter().map(|profile| Arc::new(reweighed(profile, edits))).collect(),
            false => snapshot.profiles.clone(),
        };
        Self::with(Scheduler::on_copy(snapshot, profiles), snapshot, now)
    }

    fn with(mut scheduler: Scheduler, snapshot: &Snapshot, now: Now) -> Self {
        scheduler.leaves_unqueued = true;
        // Plugins judge edits as of now. What time changed before was published.
        let mut expired = Vec::new();
        scheduler.cluster.expire_plugin_state(now, &mut expired);
        Self {
            scheduler,
            now,
            published: snapshot.queue.fork(),
            asked: BTreeSet::new(),
            arrived: BTreeMap::new(),
            arrivals: 0,
            lined_up: None,
            queue_end: None,
            away: Vec::new(),
            backs_off: false,
            ended: BTreeMap::new(),
            stages: BTreeMap::new(),
            announced: BTreeSet::new(),
            expired,
            evicted: Vec::new(),
            replaces: false,
            is_unsure: false,
            steps: Vec::new(),
            truncated: false,
        }
    }

    /// Creates a simulation in which a pod has neither a place nor a nomination, as if it had never been tried.
    pub fn without(snapshot: &Snapshot, id: PodId, now: Now) -> Self {
        let mut simulation = Self::of(snapshot, now);
        simulation.scheduler.cluster.release(id);
        simulation.scheduler.cluster.nominator_mut().end(id);
        simulation
    }

    /// Returns the simulated scheduler, to read its results.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Returns the state after the plan as a snapshot, so that it can be explained like a real one.
    pub fn snapshot(&mut self) -> Snapshot {
        self.scheduler.publish(self.now)
    }

    /// Records the score tables of the attempts, with this many rows each.
    pub fn record_scores(&mut self, rows: usize) {
        self.scheduler.switches.set_top_n_scores(rows, &Setter::default());
    }

    /// Applies an edit, and requests the pending pods that it adds or changes. Fails if the edit does not fit the
    /// cluster.
    pub fn edit(&mut self, edit: &Edit) -> Result<(), String> {
        self.edit_queued(edit, edit.queues_anew())
    }

    /// Does the same; `anew` says whether the pods that the edit adds or changes queue behind all others.
    pub fn edit_queued(&mut self, edit: &Edit, anew: bool) -> Result<(), String> {
        for input in edit.inputs(&self.scheduler.cluster)? {
            cancellation::check();
            let pending = match &input {
                Input::PodApplied(pod) if pod.node_name.is_none() => {
                    self.asked.insert(pod.key.clone());
                    if anew {
                        self.arrive(pod.key.clone());
                    }
                    Some(pod.key.clone())
                }
                Input::PodDeleted(key) => {
                    self.remove(key);
                    continue;
                }
                _ => None,
            };
            self.scheduler.apply(input, self.now);
            if let Some(key) = pending {
                self.ask(&key);
                if let Some((_, unit)) = self.unit_of(&key).filter(|_| anew) {
                    self.scheduler.queue.renew(unit);
                }
            }
        }
        Ok(())
    }

    /// Brings the plugins' states up to date with the edits, as the next attempt does.
    pub fn settle_plugins(&mut self) {
        self.scheduler.settle_plugin_state(self.now);
    }

    /// Lets controllers replace the pods that are deleted from now on.
    pub fn replace_removed(&mut self) {
        self.replaces = true;
    }

    /// Requests that a pod is planned. Returns false if there is no such pending pod.
    pub fn ask(&mut self, key: &PodKey) -> bool {
        let cluster = &self.scheduler.cluster;
        let Some(id) = cluster.find_pod(key) else { return false };
        if cluster.pod(id).is_none_or(|r| r.node.is_some()) {
            return false;
        }
        self.asked.insert(key.clone());
        self.scheduler.enqueue(id, self.now);
        true
    }

    /// Requests the pending members of a gang. Returns how many there are.
    pub fn ask_gang(&mut self, key: &GangKey) -> usize {
        let keys: Vec<PodKey> = edit::members(&self.scheduler.cluster, &Target::Gang(key.clone()))
            .unwrap_or_default()
            .into_iter()
            .filter_map(|id| self.scheduler.cluster.pod(id).map(|r| r.pod.key.clone()))
            .collect();
        keys.iter().filter(|key| self.ask(key)).count()
    }

    /// Returns what keeps a gang from being planned, if anything does.
    pub fn block(&self, key: &GangKey) -> Option<Block> {
        let cluster = &self.scheduler.cluster;
        let is_ready =
            |id: &&PodId| cluster.pod(**id).is_some_and(|r| r.node.is_none() && r.pod.gates.is_empty());
        let ready = |key: &GangKey| {
            let members = cluster.gangs().get(key).map(|gang| gang.members.keys().filter(is_ready).count());
            members.unwrap_or(0) as u32
        };
        block(cluster.gangs(), key, ready)
    }

    /// Ends all nominations.
    pub fn end_nominations(&mut self) {
        let cluster = &mut self.scheduler.cluster;
        let nominated: Vec<PodId> = cluster.nominator().nodes().flat_map(|(_, p)| p.to_vec()).collect();
        for id in nominated {
            cluster.nominator_mut().end(id);
        }
    }

    /// Takes as gone all pods that can leave but those that `stays` accepts, pending ones too, and ends all nominations.
    pub fn empty_nodes_except(&mut self, stays: impl Fn(PodId, &PodRecord) -> bool) {
        let cluster = &mut self.scheduler.cluster;
        let leaves = |id: PodId, r: &PodRecord| r.pod.can_leave() && !stays(id, r);
        let gone: Vec<PodId> = cluster.pods().filter(|(id, r)| leaves(*id, r)).map(|(id, _)| id).collect();
        cluster.withdraw(&gone);
        self.end_nominations();
    }

    /// Takes their places from the pods that `goes` accepts: they are pending again.
    pub fn release_all(&mut self, goes: impl Fn(&PodRecord) -> bool) {
        let cluster = &mut self.scheduler.cluster;
        let gone: Vec<PodId> = cluster.pods().filter(|(_, r)| goes(r)).map(|(id, _)| id).collect();
        for id in gone {
            cluster.release(id);
        }
    }

    /// Plans the requested pods until nothing changes; may be called again after more edits. If `evict` is true,
    /// victims of preemption are deleted at once, also those whose eviction is under way, and their preemptors are planned
    /// again; what others delete leaves once nothing else changes.
    ///
    /// Backoffs are skipped, and no wait of a gang runs out. Bindings are confirmed, so placements wake the pods that
    /// they help.
    pub fn plan(&mut self, evict: bool) {
        self.complete_gangs();
        self.line_up();
        self.send_away();
        if evict {
            self.carry_out_earlier();
        }
        self.plan_until_still(evict);
        if evict && self.end_terminating() {
            self.plan_until_still(evict);
        }
        self.is_unsure |= self.depends_on_writes();
    }

    /// Plans on after something that was not an edit, evictions carried out.
    pub(super) fn go_on(&mut self) {
        self.plan_until_still(true);
        self.is_unsure |= self.depends_on_writes();
    }

    fn plan_until_still(&mut self, evict: bool) {
        let mut still = 0;
        while still < 2 && !self.truncated {
            let before = self.steps.len();
            let placed = self.step_all();
            let gone = self.settle(evict);
            let told = self.announce();
            // Preemptors are tried as soon as their victims are gone, and others in the order in which their backoffs end.
            let goes_on = self.steps.len() > before && self.scheduler.queue.can_pop();
            still = if placed || gone || told || goes_on { 0 } else { still + 1 };
            if !goes_on {
                self.scheduler.queue.flush(self.now.monotonic + ROUND);
            }
        }
    }

    /// Returns how many pods will be planned: the requested ones and the rest of their gang groups.
    pub fn planned_pods(&self) -> usize {
        let cluster = &self.scheduler.cluster;
        let members =
            self.groups().into_iter().filter_map(|key| edit::members(cluster, &Target::Gang(key)).ok());
        let keys = members.flatten().filter_map(|id| cluster.pod(id).map(|record| &record.pod.key));
        keys.chain(&self.asked).collect::<BTreeSet<_>>().len()
    }

    /// Returns the gangs of the requested pods, and those that are planned together with them.
    fn groups(&self) -> BTreeSet<GangKey> {
        let cluster = &self.scheduler.cluster;
        let record = |key: &PodKey| cluster.pod(cluster.find_pod(key)?).filter(|r| r.node.is_none());
        let gangs: BTreeSet<GangKey> =
            self.asked.iter().filter_map(|key| record(key)?.pod.member_of().cloned()).collect();
        gangs.iter().flat_map(|key| cluster.gangs().group_of(key)).collect()
    }

    /// Requests the other members of the requested pods' gang groups, because a group is planned as a whole.
    fn complete_gangs(&mut self) {
        for key in self.groups() {
            self.ask_gang(&key);
        }
        self.scheduler.review_gangs(self.now);
        // Verdicts made while the members arrived one by one no longer hold.
        let cluster = &self.scheduler.cluster;
        let members = self.asked.iter().filter_map(|key| cluster.find_pod(key));
        let is_held_by_gang = |r: &PodRecord| r.pod.member_of().is_some() && r.pod.gates.is_empty();
        let members = members.filter(|id| cluster.pod(*id).is_some_and(is_held_by_gang));
        for id in members.collect::<Vec<_>>() {
            self.scheduler.set_last_attempt(id, LastAttempt::Nothing);
        }
    }

    /// Plans active units until none is left or the plan is cut off. Returns whether a pod was placed.
    fn step_all(&mut self) -> bool {
        let most = self.asked.len() * STEPS_PER_POD + LEAST_STEPS;
        let mut placed = false;
        while let Some(step) = self.scheduler.step(self.now, &NoProbe) {
            cancellation::check();
            self.now.monotonic += BETWEEN_STEPS;
            placed |= step.all().any(|s| s.verdict.placement().is_some());
            self.steps.push(step);
            if self.steps.len() >= most {
                self.truncated = true;
                break;
            }
        }
        placed
    }

    /// Iterates over the requested pods by name, with the result of each.
    pub fn outcomes(&self) -> impl Iterator<Item = (&PodKey, Fate<'_>)> {
        self.asked.iter().map(|key| (key, self.fate(key)))
    }

    /// Returns the result for a pod.
    pub fn fate(&self, key: &PodKey) -> Fate<'_> {
        let cluster = &self.scheduler.cluster;
        let Some((id, record)) = cluster.find_pod(key).and_then(|id| Some((id, cluster.pod(id)?))) else {
            let placed = |node| Fate::Placed { node, stage: Stage::Bound, placement: None };
            return self.ended.get(key).map_or(Fate::Gone, placed);
        };
        match (record.node, self.scheduler.last_attempt(id).refusal()) {
            (Some(node), _) => Fate::Placed {
                node: cluster.node_name(node),
                stage: self.stages.get(key).copied().unwrap_or(record.stage),
                placement: self.scheduler.verdict(id).and_then(|verdict| verdict.placement()),
            },
            (None, Some(refusal)) => Fate::Refused(refusal),
            (None, None) => Fate::NotTried,
        }
    }

    /// Whether a pod is placed.
    pub fn is_placed(&self, key: &PodKey) -> bool {
        matches!(self.fate(key), Fate::Placed { .. })
    }

    /// Whether a pod is held at Permit, which gives its place up when its wait runs out.
    pub fn is_waiting(&self) -> bool {
        self.scheduler.cluster.pods().any(|(_, record)| record.stage == Stage::Waiting)
    }

    /// Whether a pod is held at Permit.
    pub fn is_waiting_pod(&self, key: &PodKey) -> bool {
        let cluster = &self.scheduler.cluster;
        let record = cluster.find_pod(key).and_then(|id| cluster.pod(id));
        record.is_some_and(|record| record.stage == Stage::Waiting)
    }

    /// Whether the plan was cut off, or something of it is not known.
    pub fn is_cut(&self) -> bool {
        self.truncated || self.is_unsure
    }

    /// Returns the pods that were placed and still have their place, with their nodes, in the order of the decisions.
    pub fn placed(&self) -> Vec<(&PodKey, &Name)> {
        let mut known = BTreeSet::new();
        let steps = self.steps.iter().flat_map(Step::all);
        let placed = steps.filter(|step| step.verdict.placement().is_some()).map(|step| &step.pod.key);
        let mut last: Vec<&PodKey> = placed.collect();
        // Of a pod that was placed twice, the last time counts.
        last.reverse();
        last.retain(|key| known.insert(*key));
        last.reverse();
        let place = |key| match self.fate(key) {
            Fate::Placed { node, .. } => Some((key, node)),
            _ => None,
        };
        last.into_iter().filter_map(place).collect()
    }

    /// Returns the pods that were evicted or would be.
    pub fn evicted(&self) -> &[Evicted] {
        &self.evicted
    }

    /// Returns all steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the verdict of the last attempt at a gang.
    pub fn gang_verdict(&self, key: &GangKey) -> Option<Arc<GangVerdict>> {
        self.scheduler.gangs.verdicts.get(key).cloned()
    }

    /// Places copies of a pod until one is refused or there are `most`. Returns how many were placed.
    pub fn fill(&mut self, pod: &Pod, most: usize) -> usize {
        (0..most).find(|number| self.place_number(pod, *number).is_none()).unwrap_or(most)
    }

    /// Places one copy of a pod; the copy of a gang's member has no gang. Returns its node.
    pub fn place_copy(&mut self, pod: &Pod) -> Option<Name> {
        self.place_number(pod, 0)
    }

    fn place_number(&mut self, pod: &Pod, number: usize) -> Option<Name> {
        // No object at an API server can have such a name.
        let name = format!("\u{1}{}-copy-{number}", pod.key.name);
        let copy = Pod {
            key: PodKey { namespace: pod.key.namespace.clone(), name: name.into() },
            uid: format!("copy-{number}").into(),
            gang: None,
            gang_warning: None,
            node_name: None,
            nominated_node: None,
            gates: Box::default(),
            never_preempts: true,
            ..pod.clone()
        };
        let key = copy.key.clone();
        self.scheduler.apply(Input::PodApplied(Arc::new(copy)), self.now);
        self.step_all();
        self.steps.clear();
        // What it uses up ends before the next copy is tried.
        self.settle(false);
        match self.fate(&key) {
            Fate::Placed { node, .. } => Some(node.clone()),
            _ => None,
        }
    }
}

/// The result for a requested pod.
pub enum Fate<'a> {
    /// The pod has a place.
    Placed {
        /// Name of its node.
        node: &'a Name,
        /// How far its binding is.
        stage: Stage,
        /// The decision that chose the node, if the simulation made it.
        placement: Option<pellucid_recording::Placement>,
    },
    /// The pod was refused or is gated.
    Refused(&'a Arc<pellucid_recording::Refusal>),
    /// The pod was not tried: its gang was not planned, or the plan was cut off.
    NotTried,
    /// The pod does not exist, or is not ours.
    Gone,
}

fn reweighed(profile: &Profile, edits: &[Edit]) -> Profile {
    let mut profile = profile.clone();
    for edit in edits {
        let Edit::SetWeight { plugin, weight } = edit else { continue };
        for enabled in profile.score.iter_mut().filter(|e| e.plugin.name() == &**plugin) {
            enabled.weight = *weight;
        }
    }
    profile
}
