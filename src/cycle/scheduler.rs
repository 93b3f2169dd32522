//! The scheduler's core: the one writer of all state.
//!
//! Driven from outside: [`Scheduler::apply`] takes inputs, [`Scheduler::step`] plans one unit,
//! [`Scheduler::tick`] moves what is due, [`Scheduler::take_effects`] hands out orders,
//! [`Scheduler::publish`] makes a snapshot. It never waits, reads no clock and does no I/O. What inputs do is in
//! `inputs`, what comes of bind orders in `bind`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use super::chain::PluginTally;
use pellucid_cluster::{Cluster, Hold, ShapeId, Stage};
use pellucid_framework::post_filter::PostFiltered;
use pellucid_framework::profile::Profile;
use pellucid_framework::{Cause, Permitted, View};
use pellucid_model::collections::FxHashMap;
use pellucid_model::effect::{Effect, EffectId};
use pellucid_model::time::Probe;
use pellucid_model::{GangKey, Mirror, Name, NodeIdx, Now, Pages, Pod, PodId, patience};
use pellucid_queue::{Queue, QueueLimits, UnitId, Wakeup};
use pellucid_recording::flight::Flight;
use pellucid_recording::meter::Meter;
use pellucid_recording::recorder::{RecordedFailure, RecordedTable, Recorder};
use pellucid_recording::switches::Switches;
use pellucid_recording::{Decision, Outcome, Placement, Refusal, Verdict};

use super::cache_by_shape::CacheByShape;
use super::gangs::GangBook;
use super::last_attempt::LastAttempt;
use super::leaving::Leaving;
use super::metering::Timer;
use super::node_result_cache::CycleContext;
use super::nominations::{AttemptContext, AttemptKind, NominationFilter};
use super::pre_bind::PreBinding;
use super::record::Draft;
use super::shadow::ShadowTally;
use super::work;
use crate::{Registry, Snapshot};

/// What a scheduler is made of.
pub struct Settings {
    /// Profiles; their names are the scheduler names whose pods are ours.
    pub profiles: Vec<Profile>,
    /// Plugins.
    pub registry: Registry,
    /// Queue limits.
    pub limits: QueueLimits,
    /// Seed of the tie order.
    pub seed: u64,
    /// Switches.
    pub switches: Arc<Switches>,
    /// Decides for the pods of this scheduler by the first profile, and writes nothing.
    pub shadow_of: Option<Name>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Attempts.
    pub attempts: u64,
    /// Attempts that placed a pod.
    pub placed: u64,
    /// Attempts that plugins refused.
    pub refused: u64,
    /// Attempts that failed otherwise.
    pub errors: u64,
    /// Bindings the API server confirmed.
    pub bound: u64,
    /// Bindings that did not come about.
    pub bind_failures: u64,
    /// Waits of gangs that ran out.
    pub gang_timeouts: u64,
}

/// What a step did, for logs and histograms.
#[derive(Clone, Debug)]
pub struct Step {
    /// Pod.
    pub pod: Arc<Pod>,
    /// Index of the profile.
    pub profile: usize,
    /// Attempts at this unit, this one included.
    pub attempts: u32,
    /// When the unit first entered the queue.
    pub first_queued_at: Duration,
    /// The verdict.
    pub verdict: Verdict,
    /// The recorded score table, when flag `s` is on.
    pub table: Option<Arc<RecordedTable>>,
    /// The recorded refused nodes, when flag `f` is on.
    pub failure: Option<Arc<RecordedFailure>>,
    /// The first gang of the group, when the unit was one.
    pub gang: Option<GangKey>,
    /// The other members of the group that were judged in this step.
    pub others: Vec<Step>,
}

impl Step {
    /// Iterates over all pods that were judged.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }
}

/// What an attempt came to, before anything is done about it.
pub(super) struct Decided {
    pub(super) decision: Decision,
    /// What PostFilter found for a refused pod.
    pub(super) found: Option<PostFiltered>,
    /// What is to be recorded of it when it stands.
    pub(super) draft: Option<Arc<Draft>>,
    /// Whether more than the nodes themselves decided: a plugin that may read anything.
    pub(super) reads_others: bool,
}

/// A bind order that is not yet settled.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) pod: PodId,
    pub(super) unit: UnitId,
}

/// The core. See the module.
pub struct Scheduler {
    pub(super) cluster: Cluster,
    pub(super) queue: Queue,
    pub(super) profiles: Arc<[Arc<Profile>]>,
    pub(super) profile_of: FxHashMap<Name, usize>,
    registry: Registry,
    pub(super) results: CacheByShape,
    pub(super) tally: Vec<Vec<PluginTally>>,
    pub(super) starts: Vec<usize>,
    pub(super) last_attempts: Mirror<LastAttempt>,
    /// What woke a pod that has its place by now, with its profile; of those that something woke.
    pub(super) wakeups: Pages<Option<(usize, Arc<Wakeup>)>>,
    pub(super) in_flight: FxHashMap<EffectId, InFlight>,
    pub(super) effect_of: FxHashMap<PodId, EffectId>,
    /// Placed pods whose PreBind is under way.
    pub(super) pre_binding: FxHashMap<PodId, PreBinding>,
    /// Writes of PreBind that are not yet settled, and the pods they are for.
    pub(super) writes: FxHashMap<EffectId, PodId>,
    /// Victims whose eviction is not yet settled, and their uids.
    pub(super) evictions: FxHashMap<EffectId, (PodId, Arc<str>)>,
    /// The uids of these victims.
    pub(super) evicting: FxHashMap<PodId, Arc<str>>,
    /// A refusal and the same with PostFilter's note, made last.
    pub(super) last_noted: Option<(Arc<Refusal>, Arc<Refusal>)>,
    /// Places that shadow mode holds, by when it gives them up.
    pub(super) held: BTreeSet<(Duration, PodId)>,
    /// Gangs.
    pub(super) gangs: GangBook,
    pub(super) effects: Vec<Effect>,
    pub(super) recorder: Recorder,
    pub(super) flight: Flight,
    pub(super) leaving: Leaving,
    pub(super) switches: Arc<Switches>,
    pub(super) meter: Meter,
    pub(super) shadow: Option<ShadowTally>,
    pub(super) counters: Counters,
    next_effect: u64,
    pub(super) cycle: u64,
    pub(super) generation: u64,
    /// Work done; see `work`.
    pub(super) work: u64,
    /// Work done for units in front of which a paused one stands, since that went on.
    pub(super) since_slice: u64,
    /// Work of one slice of an attempt at a gang.
    pub(super) slice: u64,
}

/// AttemptKind long shadow mode holds a place for a pod that the other scheduler does not bind.
pub(super) const SHADOW_HOLD: Duration = Duration::from_secs(30);

impl Scheduler {
    /// Makes a scheduler that knows nothing of the cluster yet.
    pub fn new(settings: Settings) -> Self {
        let Settings { profiles, registry, limits, seed, switches, shadow_of } = settings;
        let profiles: Arc<[Arc<Profile>]> = profiles.into_iter().map(Arc::new).collect();
        let mut profile_of: FxHashMap<Name, usize> = FxHashMap::default();
        for (i, profile) in profiles.iter().enumerate() {
            profile_of.insert(profile.scheduler_name.clone(), i);
        }
        if let Some(name) = &shadow_of {
            profile_of = FxHashMap::from_iter([(name.clone(), 0)]);
        }
        let derived = registry.iter().filter_map(|f| f.derived_state()).collect();
        let gangs = GangBook::new(&profiles);
        let mut cluster = Cluster::new(seed, profile_of.keys().cloned(), derived);
        cluster.gangs_mut().set_limits(gangs.group_limits());
        Self {
            cluster,
            queue: Queue::new(limits, super::wakeups::listening(&profiles)),
            gangs,
            tally: profiles.iter().map(|p| vec![PluginTally::default(); p.plugins.len()]).collect(),
            starts: vec![0; profiles.len()],
            profiles,
            profile_of,
            registry,
            results: CacheByShape::default(),
            last_attempts: Mirror::default(),
            wakeups: Pages::default(),
            in_flight: FxHashMap::default(),
            effect_of: FxHashMap::default(),
            evictions: FxHashMap::default(),
            evicting: FxHashMap::default(),
            pre_binding: FxHashMap::default(),
            writes: FxHashMap::default(),
            last_noted: None,
            held: BTreeSet::new(),
            effects: Vec::new(),
            recorder: Recorder::default(),
            flight: Flight::new(switches.recorder_bytes()).numbered_from(switches.recorder_first()),
            leaving: Leaving::default(),
            switches,
            meter: Meter::default(),
            shadow: shadow_of.map(|of| ShadowTally { of, ..ShadowTally::default() }),
            counters: Counters::default(),
            next_effect: 1,
            cycle: 0,
            generation: 0,
            work: 0,
            since_slice: 0,
            slice: super::work::SLICE,
        }
    }

    /// Returns the state, for tests and for checks of invariants.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the switches of the diagnosis.
    pub fn switches(&self) -> &Switches {
        &self.switches
    }

    /// Returns the work done so far: about the number of times that a node was filtered or scored.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Sets how much work an attempt at a gang does before others have their turn. What is decided does not depend on
    /// it as long as nothing happens in between.
    pub fn set_slice(&mut self, work: u64) {
        self.slice = work;
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the number of placements that are not yet confirmed.
    pub fn n_in_flight(&self) -> usize {
        self.in_flight.len() + self.pre_binding.len() + self.held.len()
    }

    /// Returns the number of orders whose report is awaited: bindings, evictions, writes to volumes.
    pub fn n_unsettled(&self) -> usize {
        self.in_flight.len() + self.evictions.len() + self.writes.len()
    }

    /// Returns the last verdict on a pod.
    pub fn verdict(&self, pod: PodId) -> Option<Verdict> {
        self.last_attempt(pod).verdict(|id| self.flight.get(id), self.cluster.changes().count())
    }

    /// Returns what is kept of the last attempt at a pod.
    pub fn last_attempt(&self, pod: PodId) -> &LastAttempt {
        self.last_attempts.get(pod.index()).unwrap_or(&LastAttempt::Nothing)
    }

    /// Returns the name of the node that an attempt chose.
    pub fn chosen(&self, verdict: &Verdict) -> Option<&Name> {
        match verdict.outcome {
            Outcome::Placed(placement) => Some(&self.cluster.slot(placement.node).name),
            Outcome::Refused(_) | Outcome::Gated(_) => None,
        }
    }

    /// Whether [`step`](Self::step) has something to do.
    pub fn has_work(&self) -> bool {
        self.queue.can_pop()
    }

    /// Returns when something falls due; the loop may sleep until then.
    pub fn next_deadline(&self) -> Option<Duration> {
        let held = self.held.first().map(|(at, _)| *at);
        let placed = held.into_iter().chain(self.pre_binding_deadline());
        self.queue.next_deadline().into_iter().chain(placed).chain(self.gang_deadline()).min()
    }

    /// Moves what is due. Returns whether anything was.
    pub fn tick(&mut self, now: Now) -> bool {
        let before = self.queue.counts();
        self.queue.flush(now.monotonic);
        self.switches.expire(now);
        let expired = self.expire_held(now) | self.expire_pre_binding(now) | self.tick_gangs(now);
        self.review_gangs(now);
        expired || before != self.queue.counts()
    }

    /// Takes the orders made since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.write_statuses();
        std::mem::take(&mut self.effects)
    }

    /// Makes a snapshot of the state as it is.
    pub fn publish(&mut self, now: Now) -> Snapshot {
        self.generation += 1;
        Snapshot {
            generation: self.generation,
            published: now,
            cluster: self.cluster.fork(),
            changes: self.cluster.changes().count(),
            queue: self.queue.fork(),
            last_attempts: self.last_attempts.publish(),
            wakeups: self.wakeups.clone(),
            profiles: self.profiles.clone(),
            registry: self.registry.clone(),
            tally: self.tally.clone(),
            starts: self.starts.clone(),
            cycle: self.cycle,
            recorder: self.recorder.clone(),
            flight: self.flight.publish(),
            switches: self.switches.clone(),
            counters: self.counters,
            costs: self.meter.costs(),
            gang_verdicts: self.gangs.verdicts(),
            shadow: self.shadow.clone(),
        }
    }

    /// Decides about a pod; nothing is placed.
    #[expect(clippy::too_many_arguments, reason = "the subject of an attempt, and how to look at it")]
    pub(super) fn decide(
        &mut self,
        id: PodId,
        pod: &Pod,
        profile: usize,
        shape: ShapeId,
        kind: AttemptKind<'_>,
        now: Now,
        probe: &dyn Probe,
    ) -> Decided {
        patience::check();
        let clock = probe;
        let stands_for = match self.switches.accounts() {
            true => self.meter.times_plugins(self.cycle, now.monotonic.as_secs()),
            false => 0,
        };
        let probe: &dyn Probe = &Timer::new(clock, stands_for);
        let generation = self.cluster.shapes().generation(shape);
        let results = self.results.of((profile, shape), generation, self.cycle);
        let tally = &mut self.tally[profile];
        let start = &mut self.starts[profile];
        let profile = &self.profiles[profile];
        let spec = &pod.spec;
        {
            let ctx = CycleContext { profile, view: View::new(&self.cluster), spec, probe };
            results.sync(&ctx, self.switches.reuse(), tally);
            results.begin_attempt(&ctx, tally);
        }
        let attempt = AttemptContext { profile, id, pod, kind, probe };
        let own =
            NominationFilter::new(attempt, &mut self.cluster, tally).filter_with_nominated_pods(results);
        let ctx = CycleContext { profile, view: View::new(&self.cluster), spec, probe };
        let decision = match own {
            Some(node) => Decision::Place(Placement::nominated(node, ctx.view.nodes().len())),
            None => results.decide(&ctx, start, tally),
        };
        let draft = match self.switches.is_recording() && kind.is_real() {
            true => {
                let at = (pod, self.cycle, now);
                Draft::measured(
                    &self.switches,
                    (&mut self.meter, clock),
                    results,
                    &ctx,
                    at,
                    (&decision, own.is_some()),
                    tally,
                )
            }
            false => None,
        };
        let found = match &decision {
            // Without any node there is nobody to evict.
            Decision::Refuse(_) if kind.may_preempt() && !self.cluster.present().is_empty() => {
                let filter = NominationFilter::new(attempt, &mut self.cluster, tally);
                let (found, work) = super::post_filter::post_filter(filter, results);
                results.work += work;
                found
            }
            _ => None,
        };
        results.end_attempt();
        self.work += work::DECISION + std::mem::take(&mut results.work);
        Decided { decision, found, draft, reads_others: results.reads_others }
    }

    /// Reserves, asks Permit, and orders the binding, as one overlay: a refusal leaves nothing behind.
    pub(super) fn place(
        &mut self,
        unit: UnitId,
        pod_id: PodId,
        pod: &Arc<Pod>,
        shape: ShapeId,
        placement: Placement,
        now: Now,
    ) -> Outcome {
        let profile = self.profiles[self.queue.unit(unit).map_or(0, |u| u.profile)].clone();
        let overlay = self.cluster.begin();
        self.cluster.place(pod_id, placement.node, Stage::Reserved);
        if let Err(cause) = self.reserve_and_permit(&profile, (pod_id, pod), placement.node) {
            self.cluster.rollback(overlay);
            let by = super::search::refused_by(&profile, std::iter::once(&cause));
            let refusal = Refusal::of_pod(cause, placement.total as usize, by);
            return self.refuse(unit, pod, shape, Arc::new(refusal), None, now);
        }
        self.cluster.commit(overlay);
        let node = self.cluster.slot(placement.node).name.clone();
        self.take_up_nomination(pod_id, pod, &node, now);
        self.counters.placed += 1;
        if self.shadow.is_some() {
            self.hold_in_shadow(pod_id, now);
            return Outcome::Placed(placement);
        }
        let mut events = Vec::new();
        let failed = self.start_binding(pod_id, unit, now, &mut events);
        for event in &events {
            self.wake(event, now);
        }
        if let Some(refusal) = failed {
            return Outcome::Refused(refusal);
        }
        Outcome::Placed(placement)
    }

    pub(super) fn hold_in_shadow(&mut self, id: PodId, now: Now) {
        self.held.insert((now.monotonic + SHADOW_HOLD, id));
    }

    pub(super) fn next_effect_id(&mut self) -> EffectId {
        let id = EffectId(self.next_effect);
        self.next_effect += 1;
        id
    }

    pub(super) fn reserve_and_permit(
        &mut self,
        profile: &Profile,
        (id, pod): (PodId, &Pod),
        node: NodeIdx,
    ) -> Result<(), Cause> {
        for enabled in &profile.reserve {
            let Some(plugin) = enabled.plugin.reserve() else { continue };
            if let Some(what) = plugin.reserve(View::new(&self.cluster), pod, node)? {
                self.cluster.reserve(id, Hold { plugin: enabled.plugin.name(), what });
            }
        }
        for enabled in &profile.permit {
            let view = View::new(&self.cluster);
            match enabled.plugin.permit().map(|p| p.permit(view, pod, node)) {
                None | Some(Permitted::Yes) => {}
                Some(Permitted::No(cause)) => return Err(cause),
            }
        }
        Ok(())
    }
}
