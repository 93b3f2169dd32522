//! Counts work, which bounds what an attempt may cost before other units have their turn.
//!
//! One unit of work is about the cost of filtering or scoring one node in a loop over nodes: 60 ns on a machine of
//! 2024. Work is counted, not timed, so that the same inputs lead to the same decisions on any machine.

use std::time::Duration;

/// One decision, in addition to the nodes that it looks at.
pub(crate) const DECISION: u64 = 32;
/// One query about a single node.
pub(crate) const ASK: u64 = 16;
/// Asking the topology hint providers about one node.
pub(crate) const ALIGN: u64 = 8;
/// Placing or releasing one pod on an overlay.
pub(crate) const MOVE: u64 = 6;

/// Work of one slice of an attempt at a gang: about 6 ms.
pub(crate) const SLICE: u64 = 100_000;
/// Work of an attempt after which no further order of the members is tried: about half a second.
pub(crate) const SEARCH: u64 = 8_000_000;
/// Additional work after which the search for victims is cut short: about a second.
pub(crate) const HUNT: u64 = 16_000_000;

/// A refused attempt may take at most one part in `SHARE` of the thread's time.
const SHARE: u32 = 20;
/// The longest backoff that work can cause.
const LONGEST: Duration = Duration::from_secs(60);

/// Work up to which a refused attempt causes no backoff: it takes a fraction of a millisecond.
const CHEAP: u64 = 5_000;

/// Returns the minimum backoff after a refused attempt that took this much work.
pub(crate) fn backoff(work: u64) -> Duration {
    if work <= CHEAP {
        return Duration::ZERO;
    }
    let cost = Duration::from_nanos(work.saturating_mul(60));
    cost.saturating_mul(SHARE).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_follows_from_work() {
        assert_eq!(backoff(0), Duration::ZERO);
        assert_eq!(backoff(CHEAP), Duration::ZERO);
        assert_eq!(backoff(SLICE), Duration::from_millis(120));
        assert_eq!(backoff(SEARCH), Duration::from_millis(9_600));
        assert_eq!(backoff(u64::MAX), LONGEST);
    }
}
