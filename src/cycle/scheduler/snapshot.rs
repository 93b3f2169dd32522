//! The snapshot: everything that readers can see at one generation, published as one `Arc`.

use std::any::Any;
use std::sync::{Arc, OnceLock};

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

use crate::scheduler::records::last_attempt::LastAttempt;
use crate::scheduler::shadow::ShadowTally;
use crate::scheduler::{Counters, PermitWait, PluginTally};

/// The plugins that this process knows. Immutable.
pub type Registry = Arc<Vec<Box<dyn PluginFactory>>>;

/// What readers work out of a snapshot once for all of them. No decision reads it.
#[derive(Default)]
pub struct Memo(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Memo {
    /// Returns the value, worked out by the first reader that asks. A later reader with another type gets its own.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut make = Some(make);
        let kept = self.0.get_or_init(|| match make.take() {
            Some(make) => Arc::new(make()),
            None => Arc::new(()),
        });
        match (kept.clone().downcast::<T>(), make) {
            (Ok(value), _) => value,
            (Err(_), Some(make)) => Arc::new(make()),
            (Err(_), None) => unreachable!("the value was made with this type"),
        }
    }
}

/// A published snapshot. Immutable; shares every unchanged page with earlier and later snapshots.
pub struct Snapshot {
    /// Number of the publication, from 1.
    pub generation: u64,
    /// Time of the publication.
    pub published: Now,
    /// Nodes, pods and other objects, including nominations, preemptions and gangs.
    pub cluster: Cluster,
    /// Node-change counter at publication. A verdict with a smaller value may be stale.
    pub changes: u64,
    /// The units that wait for a node.
    pub queue: Queue,
    /// The last attempt at each pod, by pod slot.
    pub last_attempts: Pages<LastAttempt>,
    /// For placed pods that an event had woken: the profile and the wake-up, by pod slot.
    pub wakeups: Pages<Option<(usize, Arc<Wakeup>)>>,
    /// Profiles in the order of the configuration.
    pub profiles: Arc<[Arc<Profile>]>,
    /// The plugins that this process knows.
    pub registry: Registry,
    /// Counters of each plugin, per profile.
    pub tally: Vec<Vec<PluginTally>>,
    /// Position in tie order at which the next sampled search of each profile begins.
    pub starts: Vec<usize>,
    /// Number of the last scheduling cycle.
    pub cycle: u64,
    /// Recorded score tables and refused nodes.
    pub recorder: Recorder,
    /// Entries of the flight recorder.
    pub flight: FlightLog,
    /// The live switches: readers see their current values, not those at publication.
    pub switches: Arc<Switches>,
    /// Time spent on diagnosis.
    pub costs: Costs,
    /// Counters since the start.
    pub counters: Counters,
    /// Verdict of the last attempt at each gang.
    pub gang_verdicts: CowMap<GangKey, Arc<GangVerdict>>,
    /// Agreement with the shadowed scheduler; `None` outside shadow mode.
    pub shadow: Option<ShadowTally>,
    /// Whether attempts are made; a standby has a state but decides nothing.
    pub is_leading: bool,
    /// The placed pods that wait at Permit.
    pub permit_waits: CowMap<PodId, PermitWait>,
    /// The verdicts on pending pods, once a reader has asked for them.
    pub memo: Memo,
}

impl Published for Snapshot {
    fn generation(&self) -> u64 {
        self.generation
    }
}

impl Snapshot {
    /// Returns the last verdict on a pod, or `None` if there was no attempt or the flight recorder has dropped it.
    pub fn verdict(&self, pod: PodId) -> Option<Verdict> {
        self.last_attempts.get(pod.index())?.verdict(|id| self.flight.get(id), self.changes)
    }

    /// Returns why the last attempt at a pod was refused, or why the pod is gated.
    pub fn refusal(&self, pod: PodId) -> Option<&Arc<Refusal>> {
        self.last_attempts.get(pod.index())?.refusal()
    }

    /// Finds a pod by namespace and name.
    pub fn find_pod(&self, key: &PodKey) -> Option<(PodId, &PodRecord)> {
        self.cluster.find_pod(key).and_then(|id| Some((id, self.cluster.pod(id)?)))
    }

    /// Finds a pod that was quarantined because it cannot be read.
    pub fn find_quarantined(&self, key: &PodKey) -> Option<&Quarantined> {
        let is_it =
            |q: &&Quarantined| q.kind == "Pod" && q.namespace == key.namespace && *q.name == *key.name;
        self.cluster.quarantined().find(is_it)
    }

    /// Returns a pod's profile and its index, or `None` if the pod is not ours. In shadow mode other pods use the first
    /// profile.
    pub fn profile_of(&self, record: &PodRecord) -> Option<(usize, &Profile)> {
        let own = self.profiles.iter().position(|p| p.scheduler_name == record.pod.scheduler_name);
        let at = own.or(self.shadow.is_some().then_some(0))?;
        Some((at, self.profiles.get(at)?))
    }
}
