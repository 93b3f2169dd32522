//! Compares what the scheduler knows with the API server's lists, now and then, and has what differs listed again.
//!
//! Watches are meant to bring everything. When one does not, a cache in front of it is stale, or we apply an event wrongly,
//! nobody notices until a decision is odd. So every kind is listed beside its watch and compared with the published
//! snapshot (`diagnosis::consistency`). An event that is still on its way makes a difference too: a drift is what differs
//! in the same way in two lists, some seconds apart, between which the object did not change and the kind's watch did not break: one that is
//! being opened anew is behind, and says so itself. The watch then lists again, which as a difference costs what changed;
//! whether that helped is looked at and recorded.
//!
//! - [`record`]: what was found, with its bounds; [`sweeper`]: the task. `rest::consistency` serves it.

pub mod record;
pub mod sweeper;

use std::time::Duration;

/// When comparisons are made.
#[derive(Clone, Copy, Debug)]
pub struct ConsistencyConfig {
    /// Time between the end of a sweep over all kinds and the next one; zero for none.
    pub interval: Duration,
    /// How long an event may take to arrive and to be applied.
    pub grace: Duration,
}

impl Default for ConsistencyConfig {
    fn default() -> Self {
        // A sweep lists everything about twice. Every ten minutes that is less than a restart of the process would ask.
        Self { interval: Duration::from_secs(600), grace: Duration::from_secs(5) }
    }
}
