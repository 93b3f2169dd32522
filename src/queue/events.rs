//! The events that waiting units were asked about.
//!
//! A group leaves as soon as one plugin says Queue, so about a group that still waits every plugin has said
//! Skip, to every event it listens to since it was refused. What has to be kept is therefore the newest
//! events of each kind, once for everybody, and for each unit where it began to wait and what woke it: asking
//! costs no memory, and a snapshot shares all of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::EventKinds;
use pellucid_model::{Name, ObjectKind, PodKey};

use super::RefusedBy;
use super::groups::bits;

/// Events kept of each kind.
pub const EVENTS_KEPT: usize = 16;
const KINDS: usize = 64;

/// What an event is about, by the name it had when it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventObject {
    /// A node.
    Node(Name),
    /// A pod.
    Pod(PodKey),
    /// Something else: kind, namespace (empty for cluster-wide kinds), name.
    Other(ObjectKind, Name, Name),
    /// Nothing in particular, such as time.
    Nothing,
}

/// An event as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenEvent {
    /// Counts events from 1.
    pub number: u64,
    /// When, on the monotonic clock.
    pub at: Duration,
    /// Its kinds; a node may change in several ways at once.
    pub kinds: EventKinds,
    /// What it is about.
    pub object: EventObject,
}

/// Why a unit was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeupReason {
    /// Plugins were asked, and some said Queue; no plugin was when none had refused it.
    Hints {
        /// Those who were asked.
        asked: RefusedBy,
        /// Those who said Queue.
        queue: RefusedBy,
    },
    /// The pod itself changed in what decides where it fits.
    Changed,
    /// Something happened while it was planned, in several goes, that its plugins listen to: what they had seen by then
    /// may be different now.
    Meanwhile,
    /// It had waited for as long as a unit may.
    Timeout,
    /// A plugin asked for it.
    Activated,
    /// Its nomination was taken away, or an eviction for it was refused.
    Preemption,
}

/// What woke a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The event.
    pub event: SeenEvent,
    /// Why.
    pub reason: WakeupReason,
}

/// The newest events of each kind, and counts.
#[derive(Clone, Debug)]
pub struct EventLog {
    number: u64,
    /// Number of the newest event per kind.
    newest: [u64; KINDS],
    /// Events per kind that nobody waited for.
    unheard: [u64; KINDS],
    recent: Arc<Vec<Arc<VecDeque<Arc<SeenEvent>>>>>,
}

impl Default for EventLog {
    fn default() -> Self {
        let recent = Arc::new(vec![Arc::default(); KINDS]);
        Self { number: 0, newest: [0; KINDS], unheard: [0; KINDS], recent }
    }
}

impl EventLog {
    /// Counts an event; it is kept when somebody listens to it.
    pub(super) fn push(
        &mut self,
        kinds: EventKinds,
        at: Duration,
        object: impl FnOnce() -> EventObject,
        is_heard: bool,
    ) -> Option<Arc<SeenEvent>> {
        self.number += 1;
        for kind in bits(kinds.0) {
            self.newest[kind] = self.number;
            self.unheard[kind] += u64::from(!is_heard);
        }
        if !is_heard {
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

    /// Whether there was an event of some kinds after the numbered one.
    pub(super) fn has_any_since(&self, kinds: EventKinds, number: u64) -> bool {
        bits(kinds.0).any(|kind| self.newest.get(kind).is_some_and(|newest| *newest > number))
    }

    /// Returns the kept events of some kinds after the numbered one, the newest first.
    pub fn since(&self, kinds: EventKinds, number: u64) -> Vec<&Arc<SeenEvent>> {
        let mut all: Vec<&Arc<SeenEvent>> =
            bits(kinds.0).flat_map(|kind| self.recent[kind].iter()).filter(|e| e.number > number).collect();
        all.sort_by_key(|e| std::cmp::Reverse(e.number));
        all.dedup_by_key(|e| e.number);
        all
    }

    /// Iterates over the kinds of which events came while nobody waited for them, with how many.
    pub fn unheard(&self) -> impl Iterator<Item = (EventKinds, u64)> {
        let counts = self.unheard.iter().enumerate().filter(|(_, n)| **n > 0);
        counts.map(|(kind, n)| (EventKinds(1 << kind), *n))
    }
}
