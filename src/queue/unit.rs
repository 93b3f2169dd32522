//! A unit: what the queue holds and the cycle plans.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::ShapeId;
use pellucid_model::{GangKey, PodId, PodKey};
use smallvec::SmallVec;

use super::{OrderKey, WakeGroup, Wakeup};

/// The number of a unit slot. Reused; it never decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub u32);

impl UnitId {
    /// Returns it as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of plugins, by their place in the profile's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefusedBy(pub u64);

impl RefusedBy {
    /// Adds a plugin. Plugins beyond the 63rd share a bit, so they wake each other's pods.
    pub fn insert(&mut self, plugin: usize) {
        self.0 |= 1 << plugin.min(63);
    }

    /// Whether the plugin is in the set.
    pub fn contains(self, plugin: usize) -> bool {
        self.0 & (1 << plugin.min(63)) != 0
    }

    /// Whether no plugin is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the places of the plugins in the set, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        super::groups::bits(self.0)
    }
}

/// Where a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueStage {
    /// Being tried next.
    Active,
    /// Waiting for its backoff to end, after a refusal.
    Backoff,
    /// The same after an error, or of a gang that is held: it is not taken earlier.
    ErrorBackoff,
    /// Waiting for an event.
    Unschedulable,
    /// Held before the queue.
    Gated,
    /// Being planned, or placed and not yet confirmed: not waiting in the queue.
    InFlight,
    /// Not yet in any stage.
    #[default]
    New,
}

impl QueueStage {
    /// Returns the word used in bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Backoff | Self::ErrorBackoff => "backoff",
            Self::Unschedulable => "unschedulable",
            Self::Gated => "gated",
            Self::InFlight | Self::New => "in-flight",
        }
    }
}

/// A unit.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its pods: one, or the members of a gang group that are not placed, in no order.
    pub pods: SmallVec<[PodId; 1]>,
    /// The first gang of the group, by key.
    pub gang: Option<GangKey>,
    /// Key of its pod, or of that gang.
    pub key: PodKey,
    /// Index of its profile.
    pub profile: usize,
    /// Shape of its pods when they were last refused.
    pub shape: ShapeId,
    /// What QueueSort gave.
    pub rank: i64,
    /// Creation of its first pod, seconds since 1970.
    pub created: i64,
    /// Stage.
    pub stage: QueueStage,
    /// Attempts so far.
    pub attempts: u32,
    /// Attempts that plugins refused.
    pub refusals: u32,
    /// Errors since the last verdict.
    pub errors: u32,
    /// When it last entered the queue: at first, after its gates, or after an attempt.
    pub queued_at: Duration,
    /// When it first entered.
    pub first_queued_at: Duration,
    /// When its backoff ends.
    pub backoff_until: Duration,
    /// Until when it is not taken early either: a gang that was rejected or gave its places up.
    pub held_until: Duration,
    /// When it is tried again in any case, while unschedulable.
    pub expires_at: Duration,
    /// The plugins that refused it last.
    pub refused_by: RefusedBy,
    /// For a gang: how its members were refused, one pod for each way. Empty for a single pod.
    pub waits: SmallVec<[(WakeGroup, PodId); 0]>,
    /// Number of the newest event when it was taken last.
    pub popped_at_event: u64,
    /// Number of the newest event when it began to wait for one.
    pub refused_at_event: u64,
    /// What led to its last or next attempt, when something woke it.
    pub wakeup: Option<Arc<Wakeup>>,
    /// Whether it is to be tried at once when it comes back from flight.
    pub activate_on_return: bool,
    /// Whether an attempt at it is under way that was paused, or goes on.
    pub is_paused: bool,
}

impl Unit {
    /// Makes the unit of a single pod.
    pub fn single(pod: PodId, key: PodKey, profile: usize, rank: i64, created: i64, now: Duration) -> Self {
        Self {
            pods: smallvec::smallvec![pod],
            gang: None,
            key,
            profile,
            shape: ShapeId::default(),
            rank,
            created,
            stage: QueueStage::New,
            attempts: 0,
            refusals: 0,
            errors: 0,
            queued_at: now,
            first_queued_at: now,
            backoff_until: Duration::ZERO,
            held_until: Duration::ZERO,
            expires_at: Duration::ZERO,
            refused_by: RefusedBy::default(),
            waits: SmallVec::new(),
            popped_at_event: 0,
            refused_at_event: 0,
            wakeup: None,
            activate_on_return: false,
            is_paused: false,
        }
    }

    /// Returns what orders it.
    pub fn order_key(&self) -> OrderKey {
        OrderKey {
            rank: Reverse(self.rank),
            queued_at: self.queued_at,
            created: self.created,
            key: self.key.clone(),
        }
    }

    /// Whether a plugin refused it, or a member of it.
    pub fn is_refused_by(&self, plugin: usize) -> bool {
        self.refused_by.contains(plugin) || self.waits.iter().any(|(way, _)| way.refused_by.contains(plugin))
    }

    /// Returns the groups it waits in while unschedulable, and the pod that is asked about in each.
    pub(super) fn wake_groups(&self) -> SmallVec<[(WakeGroup, PodId); 1]> {
        if self.waits.is_empty() {
            let group = WakeGroup::new(self.shape, self.profile, self.refused_by);
            return self.pods.first().map(|pod| (group, *pod)).into_iter().collect();
        }
        self.waits.iter().copied().collect()
    }
}
