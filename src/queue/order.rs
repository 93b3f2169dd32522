//! The order of all units: rank, then last entry into the queue, then creation, then key.

use std::cmp::Reverse;
use std::time::Duration;

use pellucid_model::PodKey;

/// The order key of a unit. The smaller key is taken first; no two units have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey {
    /// The rank that QueueSort gave (the priority); the greater first.
    pub rank: Reverse<i64>,
    /// When the unit last entered the queue; the earlier first.
    pub queued_at: Duration,
    /// Creation of the unit's first pod, in seconds since 1970; the older first.
    pub created: i64,
    /// Key of the unit, which breaks remaining ties.
    pub key: PodKey,
}
