//! Parameters of a run: how much fails, and how much others interfere.

use std::time::Duration;

use pellucid::queue::QueueLimits;

use crate::common::rng::Rng;

/// The parameters of a run, derived from its seed.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    /// Percentage of writes that fail.
    pub(crate) faults: u64,
    /// Whether others place pods, nominate, resize, relabel, and reduce what nodes offer, and whether pods become
    /// unreadable. Without this, no node may ever exceed its resources at the API server.
    pub(crate) others: bool,
    /// Whether nodes come and go.
    pub(crate) flapping: bool,
    /// Percentage of messages that take seconds.
    pub(crate) slow: u64,
    /// Percentage of victims that do not terminate until the end.
    pub(crate) stubborn: u64,
    pub(crate) limits: QueueLimits,
    /// Number of rounds, each followed by a calm.
    pub(crate) rounds: usize,
    /// Number of changes by others in each round.
    pub(crate) happenings: usize,
    /// Length of each round.
    pub(crate) length: Duration,
}

impl Nature {
    pub(crate) fn of(rng: &mut Rng) -> Self {
        let max_backoff = Duration::from_secs(rng.between(1, 10) as u64);
        Self {
            faults: *rng.pick(&[0, 5, 20, 50]).expect("not empty"),
            others: rng.chance(60),
            flapping: rng.chance(50),
            slow: *rng.pick(&[0, 5, 30]).expect("not empty"),
            stubborn: *rng.pick(&[0, 10, 40]).expect("not empty"),
            limits: QueueLimits {
                initial_backoff: rng.millis(100, 1000),
                max_backoff,
                // So long that a pod which no event wakes is found to be left behind.
                max_unschedulable: LONG,
                pop_from_backoff: rng.chance(50),
            },
            rounds: 1 + rng.below(4),
            happenings: 6 + rng.below(25),
            length: Duration::from_secs(rng.between(5, 25) as u64),
        }
    }
}

/// Timeout after which a pod that nothing woke is tried again: much later than anything else that happens.
pub(crate) const LONG: Duration = Duration::from_secs(36_000);
