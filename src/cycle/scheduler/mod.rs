//! The scheduler's core, the only writer of all state. Start at [`Scheduler`].
//!
//! The caller drives it: [`Scheduler::apply`] applies inputs, [`Scheduler::step`] plans one unit, [`Scheduler::tick`]
//! handles what is due, [`Scheduler::take_effects`] hands out orders and [`Scheduler::publish`] makes a snapshot. The
//! scheduler never waits, reads no clock and does no I/O.
//!
//! Read `turn` and `schedule_one` first, then `pre_bind`, `object_orders` and `bind` (from the placement to the settled
//! Binding), `preempt`, `inputs`, `wakeups` and `leading`. [`gangs`] plans groups of pods as one unit.

mod bind;
pub mod gangs;
mod in_flight;
pub(crate) mod inputs;
mod leading;
mod object_orders;
mod pre_bind;
mod preempt;
mod profiles;
pub mod records;
mod report;
mod restore;
pub(crate) mod schedule_one;
pub mod shadow;
mod snapshot;
pub mod turn;
mod wakeups;

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::Cluster;
use pellucid_cluster::shapes::NodeKeys;
use pellucid_framework::Controller;
use pellucid_framework::plugin::{DeclaredKeys, derived_states};
use pellucid_framework::profile::Profile;
use pellucid_model::effect::Effect;
use pellucid_model::{GangKey, Name, Now, Pod, PodId};
use pellucid_queue::{Queue, QueueLimits};
use pellucid_recording::Verdict;
use pellucid_recording::recorder::{RecordedFailure, RecordedTable};
use pellucid_recording::switches::Switches;

pub use crate::attempt::chain::PluginTally;
pub use inputs::quarantine_message;
pub use pre_bind::PermitWait;
pub use snapshot::{Memo, Registry, Snapshot};

use crate::attempt::work::SLICE;
use gangs::GangBook;
use in_flight::InFlight;
use profiles::Profiles;
use records::Records;
use records::last_attempt::LastAttempt;
use shadow::peer::Peer;
use shadow::{Shadow, ShadowTally};
use turn::Turns;

/// Configuration for [`Scheduler::new`].
pub struct Settings {
    /// Profiles. Each serves the pods whose `spec.schedulerName` is its name.
    pub profiles: Vec<Profile>,
    /// The plugin factories that this process knows.
    pub registry: Registry,
    /// Limits of the queue, such as its backoffs.
    pub limits: QueueLimits,
    /// Seed of the order among nodes with equal scores.
    pub seed: u64,
    /// Switches for recording, shared with every snapshot.
    pub switches: Arc<Switches>,
    /// The controllers that write objects.
    pub controllers: Vec<&'static Controller>,
    /// Name of the scheduler to shadow. The first profile decides for that scheduler's pods, and nothing is written.
    pub shadow_of: Option<Name>,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Attempts at units.
    pub attempts: u64,
    /// Pods that were placed.
    pub placed: u64,
    /// Attempts that plugins refused.
    pub refused: u64,
    /// Placements that were given up because PreBind or the Binding failed.
    pub errors: u64,
    /// Bindings that the API server confirmed.
    pub bound: u64,
    /// Bindings that failed, including pods that another scheduler bound or that were deleted first.
    pub bind_failures: u64,
    /// Gangs that did not complete within their wait.
    pub gang_timeouts: u64,
}

/// The result of one step, for logs and histograms.
#[derive(Clone, Debug)]
pub struct Step {
    /// The pod that was judged; for a gang group, the first of its judged members.
    pub pod: Arc<Pod>,
    /// Index in [`Settings::profiles`].
    pub profile: usize,
    /// Attempts at this unit, this one included.
    pub attempts: u32,
    /// Monotonic time at which the unit first entered the queue.
    pub first_queued_at: Duration,
    /// Verdict of the attempt.
    pub verdict: Verdict,
    /// The recorded score table, if a recording with flag `s` wanted it.
    pub table: Option<Arc<RecordedTable>>,
    /// The recorded refused nodes, if a recording with flag `f` wanted them.
    pub failure: Option<Arc<RecordedFailure>>,
    /// The first gang of the group, if the unit was a gang group.
    pub gang: Option<GangKey>,
    /// The other members of the group that this step judged.
    pub others: Vec<Step>,
}

impl Step {
    /// Iterates over the steps of all pods that were judged, this one first.
    pub fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.others)
    }
}

/// The scheduling state machine: owns the cluster state, the queue, the gangs and the records.
pub struct Scheduler {
    pub(crate) cluster: Cluster,
    pub(crate) queue: Queue,
    pub(crate) profiles: Profiles,
    pub(crate) gangs: GangBook,
    pub(crate) in_flight: InFlight,
    pub(crate) records: Records,
    pub(crate) turns: Turns,
    pub(crate) switches: Arc<Switches>,
    /// Agreement with the shadowed scheduler; `None` outside shadow mode.
    pub(crate) shadow: Option<Shadow>,
    registry: Registry,
    /// Whether an update of a pending pod without a unit leaves it so. A simulation plans only the pods that it is asked
    /// about, and the state updates pods by itself when it begins or ceases to read a label.
    pub(crate) leaves_unqueued: bool,
    /// Whether attempts are made and effects ordered; see `leading`.
    is_leading: bool,
    /// Number of the last scheduling cycle, from 1. Each slice of an attempt at a gang has its own.
    pub(crate) cycle: u64,
    /// Number of the last published snapshot.
    generation: u64,
}

impl Scheduler {
    /// Creates a scheduler with an empty cluster state.
    pub fn new(settings: Settings) -> Self {
        let Settings { profiles, registry, limits, seed, switches, controllers, shadow_of } = settings;
        let profiles = Profiles::new(profiles.into_iter().map(Arc::new).collect(), shadow_of.as_ref());
        let cluster = empty_cluster(seed, &profiles, &registry, &controllers);
        let peer = shadow_of.clone().zip(profiles.all.first().cloned());
        let peer =
            peer.map(|(of, profile)| Peer::new(of, profile, empty_cluster(seed, &profiles, &registry, &[])));
        let queue = Queue::new(limits, wakeups::listening(&profiles.all));
        let mut scheduler = Self::with(cluster, queue, profiles, registry, switches);
        let limits = scheduler.gangs.group_limits();
        scheduler.cluster.gangs_mut().set_limits(limits);
        scheduler.shadow =
            shadow_of.map(|of| Shadow { tally: ShadowTally { of, ..ShadowTally::default() }, peer });
        scheduler
    }

    /// Creates a scheduler on a copy of a published state, with an empty queue.
    pub(crate) fn on_copy(snapshot: &Snapshot, profiles: Arc<[Arc<Profile>]>) -> Self {
        let shadow_of = snapshot.shadow.as_ref().map(|shadow| shadow.of.clone());
        let profiles = Profiles::new(profiles, shadow_of.as_ref());
        let queue = Queue::new(QueueLimits::default(), snapshot.queue.listening().clone());
        let (registry, switches) = (snapshot.registry.clone(), Arc::new(Switches::default()));
        let mut scheduler = Self::with(snapshot.cluster.fork(), queue, profiles, registry, switches);
        scheduler.profiles.starts.clone_from(&snapshot.starts);
        let tally = |of| ShadowTally { of, ..ShadowTally::default() };
        scheduler.shadow = shadow_of.map(|of| Shadow { tally: tally(of), peer: None });
        scheduler
    }

    fn with(
        cluster: Cluster,
        queue: Queue,
        profiles: Profiles,
        registry: Registry,
        switches: Arc<Switches>,
    ) -> Self {
        Self {
            cluster,
            queue,
            gangs: GangBook::new(&profiles.all),
            profiles,
            in_flight: InFlight::default(),
            records: Records::new(&switches),
            turns: Turns { work: 0, since_slice: 0, slice: SLICE },
            switches,
            shadow: None,
            registry,
            leaves_unqueued: false,
            is_leading: true,
            cycle: 0,
            generation: 0,
        }
    }

    /// Returns the cluster state, for tests and invariant checks.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the work done since the start, in units of about one node filtered or scored.
    pub fn work(&self) -> u64 {
        self.turns.work
    }

    /// Sets how much work an attempt at a gang does before other units have their turn. The slice does not change a
    /// decision as long as no input arrives in between.
    pub fn set_slice(&mut self, work: u64) {
        self.turns.slice = work;
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the number of placements that the API server has not confirmed yet.
    pub fn n_in_flight(&self) -> usize {
        let InFlight { bindings, pre_binding, shadow_holds, .. } = &self.in_flight;
        bindings.len() + pre_binding.len() + shadow_holds.len()
    }

    /// Returns the number of bindings, evictions and writes of objects whose report is outstanding.
    pub fn n_unsettled(&self) -> usize {
        let InFlight { bindings, evictions, writes, .. } = &self.in_flight;
        bindings.len() + evictions.len() + writes.len()
    }

    /// Returns the last verdict on a pod, or `None` if there was no attempt or the flight recorder has dropped it.
    pub fn verdict(&self, pod: PodId) -> Option<Verdict> {
        self.last_attempt(pod).verdict(|id| self.records.flight.get(id), self.cluster.changes().count())
    }

    /// Returns the last attempt at a pod.
    pub fn last_attempt(&self, pod: PodId) -> &LastAttempt {
        self.records.last_attempts.get(pod.index()).unwrap_or(&LastAttempt::Nothing)
    }

    /// Returns the name of the node that a verdict chose.
    pub fn chosen(&self, verdict: &Verdict) -> Option<&Name> {
        verdict.placement().map(|placement| self.cluster.node_name(placement.node))
    }

    /// Whether [`step`](Self::step) has something to do.
    pub fn has_work(&self) -> bool {
        self.is_leading && self.queue.can_pop()
    }

    /// Returns the monotonic time of the next deadline; the loop may sleep until then.
    pub fn next_deadline(&self) -> Option<Duration> {
        let held = self.in_flight.shadow_holds.first().map(|(at, _)| *at);
        let placed = held.into_iter().chain(self.pre_binding_deadline());
        let placed = placed.chain(self.cluster.next_plugin_deadline(self.cluster.now()));
        self.queue.next_deadline().into_iter().chain(placed).chain(self.gang_deadline()).min()
    }

    /// Handles everything that is due: backoffs, waits and timeouts. Returns whether anything changed.
    pub fn tick(&mut self, now: Now) -> bool {
        let before = self.queue.counts();
        self.queue.flush(now.monotonic);
        let touched = self.expire_plugin_state(now);
        self.switches.expire(now);
        let expired = self.expire_held(now) | self.expire_pre_binding(now) | self.tick_gangs(now);
        self.review_gangs(now);
        touched || expired || before != self.queue.counts()
    }

    /// Handles the deadlines of plugins, asks again about the pods that wait for plugins, and wakes the pods that this
    /// helps. Returns whether anything changed or pods were asked about.
    fn expire_plugin_state(&mut self, now: Now) -> bool {
        let is_due = self.cluster.next_plugin_deadline(now).is_some_and(|at| at <= now.monotonic);
        let (mut events, mut followed) = (Vec::new(), Vec::new());
        self.cluster.expire_plugin_state(now, &mut events);
        for event in &events {
            self.recheck_pre_bind(event, now, &mut followed);
        }
        let asked = is_due && self.recheck_permit(now, &mut followed);
        events.append(&mut followed);
        self.wake_all(&events, now);
        asked || !events.is_empty()
    }

    /// Handles the deadlines of plugins that have come, so that what is decided or published next reads states that are
    /// up to date.
    pub(crate) fn settle_plugin_state(&mut self, now: Now) {
        if self.cluster.next_plugin_deadline(now).is_some_and(|at| at <= now.monotonic) {
            self.expire_plugin_state(now);
        }
    }

    /// Takes the effects ordered since the last call, including updates of PodGroups. A standby has none.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        if self.is_leading {
            self.write_statuses();
        }
        self.in_flight.take_effects()
    }

    /// Makes a snapshot of the current state.
    pub fn publish(&mut self, now: Now) -> Snapshot {
        self.settle_plugin_state(now);
        self.generation += 1;
        Snapshot {
            generation: self.generation,
            published: now,
            cluster: self.cluster.fork(),
            changes: self.cluster.changes().count(),
            queue: self.queue.fork(),
            last_attempts: self.records.last_attempts.publish(),
            wakeups: self.records.wakeups.clone(),
            profiles: self.profiles.all.clone(),
            registry: self.registry.clone(),
            tally: self.profiles.tally.clone(),
            starts: self.profiles.starts.clone(),
            cycle: self.cycle,
            recorder: self.records.recorder.clone(),
            flight: self.records.flight.publish(),
            switches: self.switches.clone(),
            counters: self.records.counters,
            costs: self.records.meter.costs(),
            gang_verdicts: self.gangs.verdicts.clone(),
            shadow: self.shadow.as_ref().map(|shadow| shadow.tally.clone()),
            is_leading: self.is_leading,
            permit_waits: self.in_flight.permit_waits.clone(),
            memo: Memo::default(),
        }
    }
}

/// Returns a state without objects for the enabled plugins and controllers.
fn empty_cluster(
    seed: u64,
    profiles: &Profiles,
    registry: &Registry,
    controllers: &[&'static Controller],
) -> Cluster {
    let plugins = || profiles.all.iter().flat_map(|profile| &profile.plugins);
    let mut states = derived_states(plugins());
    states.extend(controllers.iter().map(|controller| (controller.state)()));
    let mut cluster = Cluster::new(seed, profiles.by_name.keys().cloned(), states);
    let used = registry.iter().filter(|f| plugins().any(|plugin| plugin.name() == f.name()));
    let keys: Vec<DeclaredKeys> = used.map(|factory| factory.keys()).collect();
    let of_nodes = NodeKeys {
        labels: keys.iter().flat_map(|keys| keys.pod_labels).copied().collect(),
        annotations: keys.iter().flat_map(|keys| keys.pod_annotations).copied().collect(),
    };
    let wide: Vec<&str> = keys.iter().flat_map(|keys| keys.pod_wide_labels).copied().collect();
    cluster.declare_keys(of_nodes, &wide);
    cluster
}
