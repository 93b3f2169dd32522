//! The one order of all units: rank, then last entry into the queue, then creation, then key.

use std::cmp::Reverse;
use std::time::Duration;

use pellucid_model::PodKey;

/// What orders a unit. Smaller goes first; no two units have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey {
    /// What QueueSort gave (the priority), greater first.
    pub rank: Reverse<i64>,
    /// When the unit last entered the queue, earlier first.
    pub queued_at: Duration,
    /// Creation of the unit's first pod, seconds since 1970, older first.
    pub created: i64,
    /// Key.
    pub key: PodKey,
}
