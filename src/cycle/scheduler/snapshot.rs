//! The snapshot: everything readable at one generation, published as one `Arc`.

use std::sync::Arc;

use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{Cluster, PodRecord};
use pellucid_framework::PluginFactory;
use pellucid_framework::profile::Profile;
use pellucid_model::{CowMap, GangKey, Now, Pages, PodId, PodKey, Published};
use pellucid_queue::{Queue, Wakeup};
use pellucid_recording::GangVerdict;
use pellucid_recording::flight::FlightLog;
use pellucid_recording::meter::Costs;
use pellucid_recording::recorder::Recorder;
use pellucid_recording::switches::Switches;
use pellucid_recording::{Refusal, Verdict};

use crate::scheduler::last_attempt::LastAttempt;
use crate::scheduler::shadow::ShadowTally;
use crate::scheduler::{Counters, PluginTally};

/// The plugins this process knows. Never changes.
pub type Registry = Arc<Vec<Box<dyn PluginFactory>>>;

/// A published snapshot. Immutable; shares every page that did not change with its neighbours in time.
pub struct Snapshot {
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
    pub last_attempts: Pages<LastAttempt>,
    /// What woke a pod that has its place by now, and its profile.
    pub wakeups: Pages<Option<(usize, Arc<Wakeup>)>>,
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

impl Published for Snapshot {
    fn generation(&self) -> u64 {
        self.generation
    }
}

impl Snapshot {
    /// Returns the last verdict on a pod; `None` too when the flight recorder has pushed it out.
    pub fn verdict(&self, pod: PodId) -> Option<Verdict> {
        self.last_attempts.get(pod.index())?.verdict(|id| self.flight.get(id), self.changes)
    }

    /// Returns why the last attempt at a pod was refused, or what holds it before the queue.
    pub fn refusal(&self, pod: PodId) -> Option<&Arc<Refusal>> {
        self.last_attempts.get(pod.index())?.refusal()
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
