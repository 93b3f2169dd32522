//! The root: everything readable at one generation, published as one `Arc`.

use std::sync::Arc;

use crate::cluster::input::Quarantined;
use crate::cluster::{Cluster, PodRecord};
use crate::cycle::kept::Kept;
use crate::cycle::scheduler::{Counters, PluginTally};
use crate::cycle::shadow::ShadowTally;
use crate::framework::PluginFactory;
use crate::framework::profile::Profile;
use crate::model::{CowMap, GangKey, Now, Pages, PodId, PodKey};
use crate::queue::{Queue, WokenBy};
use crate::recording::GangVerdict;
use crate::recording::flight::FlightLog;
use crate::recording::meter::Costs;
use crate::recording::recorder::Recorder;
use crate::recording::switches::Switches;
use crate::recording::{Refusal, Verdict};

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
    /// How many changes of nodes there were.
    pub changes: u64,
    /// Queue.
    pub queue: Queue,
    /// What is kept of the last attempt, per pod slot.
    pub kept: Pages<Kept>,
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

impl Root {
    /// Returns the last verdict on a pod; `None` too when the flight recorder has pushed it out.
    pub fn verdict(&self, pod: PodId) -> Option<Verdict> {
        self.kept.get(pod.index())?.verdict(|id| self.flight.get(id), self.changes)
    }

    /// Returns why the last attempt at a pod was refused, or what holds it before the queue.
    pub fn refusal(&self, pod: PodId) -> Option<&Arc<Refusal>> {
        self.kept.get(pod.index())?.refusal()
    }

    /// Finds a pod.
    pub fn find_pod(&self, key: &PodKey) -> Option<(PodId, &PodRecord)> {
        self.cluster.find_pod(key).and_then(|id| Some((id, self.cluster.pod(id)?)))
    }

    /// Finds a pod that cannot be read.
    pub fn find_quarantined(&self, key: &PodKey) -> Option<&Quarantined> {
        let is_it =
            |q: &&Quarantined| q.kind == "Pod" && q.namespace == key.namespace && *q.name == *key.name;
        self.cluster.quarantined().find(is_it)
    }

    /// Returns the profile of a pod, with its number; in shadow mode all go by the first. `None`: the pod is not ours.
    pub fn profile_of(&self, record: &PodRecord) -> Option<(usize, &Profile)> {
        let own = self.profiles.iter().position(|p| p.scheduler_name == record.pod.scheduler_name);
        let at = own.or(self.shadow.is_some().then_some(0))?;
        Some((at, self.profiles.get(at)?))
    }
}
