//! A unit: a single pod or the unplaced members of a gang group, queued and scheduled as one.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::ShapeId;
use pellucid_model::{GangKey, PodId, PodKey};
use smallvec::SmallVec;

use super::{WakeGroup, Wakeup};

/// The order key of a unit. The smaller key is taken first; no two units have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey {
    /// The rank that QueueSort gave (the priority); the greater first.
    pub rank: Reverse<i64>,
    /// When the window began in which the unit last entered the queue; the earlier first.
    pub window: Duration,
    /// Size of the unit; the larger first. 0 for all where there are no windows.
    pub size: Reverse<i64>,
    /// When the unit last entered the queue; the earlier first.
    pub queued_at: Duration,
    /// Creation of the unit's first pod, in seconds since 1970; the older first.
    pub created: i64,
    /// Key of the unit, which breaks remaining ties.
    pub key: PodKey,
}

/// The number of a unit slot, reused after the unit is gone. Its value never decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub u32);

impl UnitId {
    /// Returns the number as an array index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of plugins, by their index in the profile's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefusedBy(pub u64);

impl RefusedBy {
    /// Adds a plugin. Plugins beyond the 63rd share a bit, so they wake each other's pods.
    #[inline]
    pub fn insert(&mut self, plugin: usize) {
        self.0 |= 1 << plugin.min(63);
    }

    /// Returns whether the plugin is in the set.
    #[inline]
    pub fn contains(self, plugin: usize) -> bool {
        self.0 & (1 << plugin.min(63)) != 0
    }

    /// Returns whether no plugin is in the set.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the indexes of the plugins in the set, in ascending order.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = usize> {
        super::groups::bits(self.0)
    }
}

pellucid_model::named! {
    /// The stage of a unit in the queue; named as in the REST API.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum QueueStage {
        /// Ready to be tried.
        Active = "active",
        /// Waiting for its backoff to end, after a refusal.
        Backoff = "backoff",
        /// Waiting for its backoff to end, after an error or as a gang that is held back; not taken early.
        ErrorBackoff = "backoff",
        /// Refused, and waiting for an event.
        Unschedulable = "unschedulable",
        /// Held back until its gates open.
        Gated = "gated",
        /// Being scheduled, or placed and not confirmed yet; not waiting in the queue.
        InFlight = "in-flight",
        /// Not in any stage yet.
        #[default]
        New = "in-flight",
    }
}

/// A single pod or a gang group in the queue.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// Pods of the unit in no particular order: one, or the members of a gang group that are not placed.
    pub pods: SmallVec<[PodId; 1]>,
    /// The first gang of the group, by key; `None` for a single pod.
    pub gang: Option<GangKey>,
    /// Key of the pod, or of the first gang.
    pub key: PodKey,
    /// Index of the unit's profile.
    pub profile: usize,
    /// Shape of the pod when the unit was last refused.
    pub shape: ShapeId,
    /// The rank that QueueSort gave.
    pub rank: i64,
    /// Length of the windows in which units of equal rank are ordered by size; zero for none.
    pub window: Duration,
    /// Size that QueueSort gave, for the order within a window.
    pub size: i64,
    /// Creation of the unit's first pod, in seconds since 1970.
    pub created: i64,
    /// Stage of the unit; only the queue sets it.
    pub stage: QueueStage,
    /// Attempts so far.
    pub attempts: u32,
    /// Attempts that plugins refused.
    pub refusals: u32,
    /// Errors since the last verdict.
    pub errors: u32,
    /// When it last entered the queue: when it was added, left its gates, or came back from an attempt.
    pub queued_at: Duration,
    /// When it first entered the queue.
    pub first_queued_at: Duration,
    /// When its backoff ends.
    pub backoff_until: Duration,
    /// Until when even an idle queue does not take the unit: a gang that was rejected or gave its places up.
    pub held_until: Duration,
    /// When it is tried again even if no event wakes it, while unschedulable.
    pub expires_at: Duration,
    /// The plugins that last refused it.
    pub refused_by: RefusedBy,
    /// For a gang, the distinct ways in which its members were refused or gave up their places, with one pod for each.
    /// Empty for a single pod.
    pub waits: SmallVec<[(WakeGroup, PodId); 0]>,
    /// Number of the newest event when it was last taken.
    pub popped_at_event: u64,
    /// Number of the newest event when it began to wait for one.
    pub refused_at_event: u64,
    /// The wake-up before the last or next attempt, if there was one.
    pub wakeup: Option<Arc<Wakeup>>,
    /// Whether it is tried at once when it comes back from flight.
    pub activate_on_return: bool,
    /// Whether its current attempt was paused, even if it continues now.
    pub is_paused: bool,
}

impl Unit {
    /// Makes the unit of a single pod.
    pub fn single(pod: PodId, key: PodKey, profile: usize, rank: i64, created: i64, now: Duration) -> Self {
        Self {
            pods: smallvec::smallvec![pod],
            key,
            profile,
            rank,
            created,
            queued_at: now,
            first_queued_at: now,
            ..Self::default()
        }
    }

    /// Orders the unit by its size among those of equal rank that enter the queue in the same window.
    #[must_use]
    pub fn sized(self, size: i64, window: Duration) -> Self {
        Self { size, window, ..self }
    }

    /// Returns the key by which units are ordered.
    #[inline]
    pub fn order_key(&self) -> OrderKey {
        self.order_key_at(self.queued_at)
    }

    /// Returns the key that the unit would have if it had entered the queue at another time.
    #[inline]
    pub fn order_key_at(&self, queued_at: Duration) -> OrderKey {
        OrderKey {
            rank: Reverse(self.rank),
            window: self.window_at(queued_at),
            size: Reverse(self.size),
            queued_at,
            created: self.created,
            key: self.key.clone(),
        }
    }

    /// Returns when the window of a time begins.
    fn window_at(&self, time: Duration) -> Duration {
        match self.window.as_nanos() {
            0 => time,
            length => time - Duration::from_nanos((time.as_nanos() % length) as u64),
        }
    }

    /// Compares the order keys of two units without making them.
    pub fn order(&self, other: &Self) -> Ordering {
        let numbers = |unit: &Self| {
            let window = unit.window_at(unit.queued_at);
            (Reverse(unit.rank), window, Reverse(unit.size), unit.queued_at, unit.created)
        };
        numbers(self).cmp(&numbers(other)).then_with(|| self.key.cmp(&other.key))
    }

    /// Returns whether a plugin refused the unit or one of its members.
    #[inline]
    pub fn is_refused_by(&self, plugin: usize) -> bool {
        let refuses = |way: &WakeGroup| !way.has_place && way.plugins.contains(plugin);
        self.refused_by.contains(plugin) || self.waits.iter().any(|(way, _)| refuses(way))
    }

    /// Returns the plugins that are asked whether an event could help the unit; if none, any event could.
    pub fn asked(&self) -> RefusedBy {
        let any = self.waits.iter().any(|(way, _)| way.plugins.is_empty());
        let all = self.waits.iter().fold(self.refused_by.0, |all, (way, _)| all | way.plugins.0);
        RefusedBy(if any { 0 } else { all })
    }

    /// Returns the wake-up groups that it waits in while unschedulable, each with the pod that plugins are asked about.
    pub(super) fn wake_groups(&self) -> SmallVec<[(WakeGroup, PodId); 1]> {
        if self.waits.is_empty() {
            let group = WakeGroup::new(self.shape, self.profile, self.refused_by);
            return self.pods.first().map(|pod| (group, *pod)).into_iter().collect();
        }
        self.waits.iter().copied().collect()
    }
}
