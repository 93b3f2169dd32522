//! The scheduler's core: the one writer of all state.
//!
//! Driven from outside: [`Scheduler::apply`] takes inputs, [`Scheduler::step`] plans one unit,
//! [`Scheduler::tick`] moves what is due, [`Scheduler::take_effects`] hands out orders,
//! [`Scheduler::publish`] makes a snapshot. It never waits, reads no clock and does no I/O. What inputs do is in
//! `inputs`, what comes of bind orders in `bind`.

mod bind;
pub mod gangs;
mod in_flight;
pub(crate) mod inputs;
pub mod last_attempt;
mod leaving;
mod metering;
mod pre_bind;
mod preempt;
mod profiles;
mod record;
mod record_events;
mod records;
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
use pellucid_framework::profile::Profile;
use pellucid_model::effect::Effect;
use pellucid_model::{GangKey, Name, Now, Pod, PodId};
use pellucid_queue::{Queue, QueueLimits};
use pellucid_recording::recorder::{RecordedFailure, RecordedTable};
use pellucid_recording::switches::Switches;
use pellucid_recording::{Outcome, Verdict};

pub use crate::attempt::chain::PluginTally;
pub use inputs::quarantine_message;
pub use snapshot::{Registry, Snapshot};

use gangs::GangBook;
use in_flight::InFlight;
use last_attempt::LastAttempt;
use profiles::Profiles;
use records::Records;
use shadow::ShadowTally;
use turn::Turns;

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

/// The core. See the module.
pub struct Scheduler {
    pub(crate) cluster: Cluster,
    pub(crate) queue: Queue,
    pub(crate) profiles: Profiles,
    pub(crate) gangs: GangBook,
    pub(crate) in_flight: InFlight,
    pub(crate) records: Records,
    pub(crate) turns: Turns,
    pub(crate) switches: Arc<Switches>,
    /// Agreement with another scheduler, in shadow mode.
    pub(crate) shadow: Option<ShadowTally>,
    registry: Registry,
    /// Number of the attempt, from 1.
    pub(crate) cycle: u64,
    /// Number of the last published snapshot.
    generation: u64,
}

impl Scheduler {
    /// Makes a scheduler that knows nothing of the cluster yet.
    pub fn new(settings: Settings) -> Self {
        let Settings { profiles, registry, limits, seed, switches, shadow_of } = settings;
        let profiles = Profiles::new(profiles, shadow_of.as_ref());
        let derived = registry.iter().filter_map(|f| f.derived_state()).collect();
        let gangs = GangBook::new(&profiles.all);
        let mut cluster = Cluster::new(seed, profiles.by_name.keys().cloned(), derived);
        cluster.gangs_mut().set_limits(gangs.group_limits());
        Self {
            cluster,
            queue: Queue::new(limits, wakeups::listening(&profiles.all)),
            profiles,
            gangs,
            in_flight: InFlight::default(),
            records: Records::new(&switches),
            turns: Turns::default(),
            switches,
            shadow: shadow_of.map(|of| ShadowTally { of, ..ShadowTally::default() }),
            registry,
            cycle: 0,
            generation: 0,
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
        self.turns.work
    }

    /// Sets how much work an attempt at a gang does before others have their turn. What is decided does not depend on
    /// it as long as nothing happens in between.
    pub fn set_slice(&mut self, work: u64) {
        self.turns.slice = work;
    }

    /// Returns the queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns the number of placements that are not yet confirmed.
    pub fn n_in_flight(&self) -> usize {
        self.in_flight.n_placements()
    }

    /// Returns the number of orders whose report is awaited: bindings, evictions, writes to volumes.
    pub fn n_unsettled(&self) -> usize {
        self.in_flight.n_unsettled()
    }

    /// Returns the last verdict on a pod.
    pub fn verdict(&self, pod: PodId) -> Option<Verdict> {
        self.last_attempt(pod).verdict(|id| self.records.flight.get(id), self.cluster.changes().count())
    }

    /// Returns what is kept of the last attempt at a pod.
    pub fn last_attempt(&self, pod: PodId) -> &LastAttempt {
        self.records.last_attempts.get(pod.index()).unwrap_or(&LastAttempt::Nothing)
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
        let held = self.in_flight.shadow_holds.first().map(|(at, _)| *at);
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
        std::mem::take(&mut self.in_flight.effects)
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
            gang_verdicts: self.gangs.verdicts(),
            shadow: self.shadow.clone(),
        }
    }
}
