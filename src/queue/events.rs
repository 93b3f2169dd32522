//! The queue's event log: the newest events of each kind that refused units listen to.
//!
//! Invariant: every plugin that refused a waiting group has answered Skip to all events that it listens to since the
//! refusal, because a group leaves as soon as one plugin answers Queue. So the answers are not stored: the log holds
//! the newest events of each kind once for all units, and each unit holds when it began to wait and what woke it. A
//! snapshot shares the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::EventKinds;
use pellucid_model::{Name, PodKey};

use super::groups::bits;
use super::{QueueEvent, RefusedBy};

/// Number of events kept of each kind.
pub const EVENTS_KEPT: usize = 16;
const KINDS: usize = 64;

/// The object of an event, by the name it had when the event happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventObject {
    /// A node, by name.
    Node(Name),
    /// A pod, by namespace and name.
    Pod(PodKey),
    /// Another object: kind, namespace (empty for cluster-scoped kinds), name.
    Other(&'static str, Name, Name),
    /// No object, such as when time has passed.
    Nothing,
}

/// An event as the queue saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEvent {
    /// Number of the event, counted from 1.
    pub number: u64,
    /// When it happened, on the monotonic clock.
    pub at: Duration,
    /// Kinds of the event; a node may change in several ways at once.
    pub kinds: EventKinds,
    /// The object that changed.
    pub object: EventObject,
}

/// Why a unit was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeupReason {
    /// Plugins answered Queue. Both sets are empty when no plugin had refused the unit.
    Hints {
        /// Plugins that were asked.
        asked: RefusedBy,
        /// Plugins that answered Queue.
        queue: RefusedBy,
    },
    /// The pod itself changed in a field that decides where it fits.
    Changed,
    /// While the attempt was paused, an event happened that the plugins of the unit listen to, so their answers may be
    /// outdated.
    Meanwhile,
    /// The unit had waited for [`max_unschedulable`](super::QueueLimits::max_unschedulable).
    Timeout,
    /// A plugin activated it.
    Activated,
    /// Its nomination ended, or an eviction for it was refused.
    Preemption,
}

/// A wake-up of a unit: the event, and why it woke the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The event that woke the unit.
    pub event: SeenEvent,
    /// Why the event woke the unit.
    pub reason: WakeupReason,
}

/// The newest events of each kind, with counts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EventLog {
    number: u64,
    /// Number of the newest event, by kind.
    newest: [u64; KINDS],
    /// Number of events that no group listened to, by kind.
    skipped: [u64; KINDS],
    recent: Arc<Vec<Arc<VecDeque<Arc<SeenEvent>>>>>,
}

impl Default for EventLog {
    fn default() -> Self {
        let recent = Arc::new(vec![Arc::default(); KINDS]);
        Self { number: 0, newest: [0; KINDS], skipped: [0; KINDS], recent }
    }
}

impl EventLog {
    /// Counts an event, and keeps it when some group listens to it. Returns the event if it was kept.
    pub(super) fn push(&mut self, event: QueueEvent<'_>, has_listener: bool) -> Option<Arc<SeenEvent>> {
        let QueueEvent { kinds, at, object, .. } = event;
        self.number += 1;
        for kind in bits(kinds.0) {
            self.newest[kind] = self.number;
            self.skipped[kind] += u64::from(!has_listener);
        }
        if !has_listener {
            return None;
        }
        let event = Arc::new(SeenEvent { number: self.number, at, kinds, object: object() });
        let recent = Arc::make_mut(&mut self.recent);
        for kind in bits(kinds.0) {
            let ring = Arc::make_mut(&mut recent[kind]);
            if ring.len() == EVENTS_KEPT {
                ring.pop_front();
            }
            ring.push_back(event.clone());
        }
        Some(event)
    }

    /// Returns the number of the newest event.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether an event of one of these kinds happened after event `number`.
    pub(super) fn has_any_since(&self, kinds: EventKinds, number: u64) -> bool {
        bits(kinds.0).any(|kind| self.newest.get(kind).is_some_and(|newest| *newest > number))
    }

    /// Returns the kept events of these kinds after event `number`, newest first.
    pub fn since(&self, kinds: EventKinds, number: u64) -> Vec<&Arc<SeenEvent>> {
        let mut all: Vec<&Arc<SeenEvent>> =
            bits(kinds.0).flat_map(|kind| self.recent[kind].iter()).filter(|e| e.number > number).collect();
        all.sort_by_key(|e| std::cmp::Reverse(e.number));
        all.dedup_by_key(|e| e.number);
        all
    }

    /// Iterates over the kinds with events that no group listened to, and their number.
    pub fn skipped(&self) -> impl Iterator<Item = (EventKinds, u64)> {
        let counts = self.skipped.iter().enumerate().filter(|(_, n)| **n > 0);
        counts.map(|(kind, n)| (EventKinds(1 << kind), *n))
    }
}
