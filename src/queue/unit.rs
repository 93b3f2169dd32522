//! A unit: what the queue holds and the cycle plans.

use std::cmp::Reverse;
use std::time::Duration;

use smallvec::SmallVec;

use super::{OrderKey, WakeGroup};
use crate::cluster::ShapeId;
use crate::model::{PodId, PodKey};

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
}

/// Where a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueStage {
    /// Being tried next.
    Active,
    /// Waiting for its backoff to end.
    Backoff,
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
            Self::Backoff => "backoff",
            Self::Unschedulable => "unschedulable",
            Self::Gated => "gated",
            Self::InFlight | Self::New => "in-flight",
        }
    }
}

/// A unit.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its pods; one, until there are gangs.
    pub pods: SmallVec<[PodId; 1]>,
    /// Key of its first pod.
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
    /// When it last entered the queue.
    pub queued_at: Duration,
    /// When it first entered.
    pub first_queued_at: Duration,
    /// When its backoff ends.
    pub backoff_until: Duration,
    /// When it is tried again in any case, while unschedulable.
    pub expires_at: Duration,
    /// The plugins that refused it last.
    pub refused_by: RefusedBy,
}

impl Unit {
    /// Makes the unit of a single pod.
    pub fn single(pod: PodId, key: PodKey, profile: usize, rank: i64, created: i64, now: Duration) -> Self {
        Self {
            pods: smallvec::smallvec![pod],
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
            expires_at: Duration::ZERO,
            refused_by: RefusedBy::default(),
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

    /// Returns the group it waits in while unschedulable.
    pub fn wake_group(&self) -> WakeGroup {
        WakeGroup { shape: self.shape, profile: self.profile, refused_by: self.refused_by }
    }
}
