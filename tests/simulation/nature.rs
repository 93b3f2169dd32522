//! What kind of run a seed is: how much goes wrong, and how much others interfere.

use std::time::Duration;

use pellucid::queue::QueueLimits;

use crate::rng::Rng;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    /// Of 100 writes so many go wrong.
    pub(crate) faults: u64,
    /// Others place pods, nominate, resize, relabel, take from what nodes offer, and pods become unreadable.
    /// Without them no node may ever hold more than it has, at the API server itself.
    pub(crate) others: bool,
    /// Nodes come and go.
    pub(crate) flapping: bool,
    /// Of 100 messages so many take seconds.
    pub(crate) slow: u64,
    /// Of 100 victims so many refuse to die until the end.
    pub(crate) stubborn: u64,
    pub(crate) limits: QueueLimits,
    /// Times of trouble, each with a calm after it.
    pub(crate) rounds: usize,
    /// How many things happen in each besides what the scheduler does.
    pub(crate) happenings: usize,
    /// How long each is.
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
                // So long that a pod that no event wakes is seen to be left behind.
                max_unschedulable: LONG,
                pop_from_backoff: rng.chance(50),
            },
            rounds: 1 + rng.below(4),
            happenings: 6 + rng.below(25),
            length: Duration::from_secs(rng.between(5, 25) as u64),
        }
    }
}

/// When a pod is tried again that nothing woke: much later than anything else that happens.
pub(crate) const LONG: Duration = Duration::from_secs(36_000);
