//! The root: everything readable at one generation, published as one `Arc`.

use std::sync::Arc;

use super::flight::FlightLog;
use super::meter::Costs;
use super::recorder::Recorder;
use super::switches::Switches;
use crate::cluster::Cluster;
use crate::cycle::Verdict;
use crate::cycle::gangs::GangVerdict;
use crate::cycle::scheduler::{Counters, PluginTally};
use crate::cycle::shadow::ShadowTally;
use crate::framework::PluginFactory;
use crate::framework::profile::Profile;
use crate::model::{CowMap, GangKey, Now, Pages};
use crate::queue::{Queue, WokenBy};

/// The plugins this process knows. Never changes.
pub type Registry = Arc<Vec<Box<dyn PluginFactory>>>;

/// A published root. Immutable; shares every page that did not change with its neighbours in time.
pub struct Root {
    /// Number of the publication.
    pub generation: u64,
    /// When.
    pub published: Now,
    /// Nodes and pods.
    pub cluster: Cluster,
    /// Where the log of changed nodes stands.
    pub changes: (u64, u64),
    /// Queue.
    pub queue: Queue,
    /// Last verdict per pod slot.
    pub verdicts: Pages<Option<Verdict>>,
    /// What woke a pod that has its place by now, and its profile.
    pub woken: Pages<Option<(usize, Arc<WokenBy>)>>,
    /// Profiles.
    pub profiles: Arc<[Arc<Profile>]>,
    /// Plugins.
    pub registry: Registry,
    /// What plugins did, per profile and plugin.
    pub tally: Vec<Vec<PluginTally>>,
    /// Where the next sampled search of each profile begins.
    pub starts: Vec<usize>,
    /// Attempts so far.
    pub cycle: u64,
    /// Recorded tables and failures.
    pub recorder: Recorder,
    /// What the flight recorder holds.
    pub flight: FlightLog,
    /// The switches themselves: they are read as they are now.
    pub switches: Arc<Switches>,
    /// What the diagnosis has cost.
    pub costs: Costs,
    /// Counters.
    pub counters: Counters,
    /// What became of the last attempt at each gang.
    pub gang_verdicts: CowMap<GangKey, Arc<GangVerdict>>,
    /// Agreement with another scheduler, in shadow mode.
    pub shadow: Option<ShadowTally>,
}
