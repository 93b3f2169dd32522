//! Work, counted: what an attempt may cost before others have their turn.
//!
//! One unit is about what it costs to filter or score one node in a loop over nodes, 60 ns on a machine of 2024. It is
//! counted and not timed, so that the same inputs lead to the same decisions on any machine.

use std::time::Duration;

/// A decision, whatever it looks at.
pub(crate) const DECISION: u64 = 32;
/// A question about one node.
pub(crate) const ASK: u64 = 16;
/// A pod that is placed or released on an overlay.
pub(crate) const MOVE: u64 = 6;

/// Work of one slice of an attempt at a gang: about 6 ms.
pub(crate) const SLICE: u64 = 100_000;
/// Work of one attempt beyond which no further order of the members is tried: about half a second.
pub(crate) const SEARCH: u64 = 8_000_000;
/// Work beyond which no further victims are looked for: about a second.
pub(crate) const HUNT: u64 = 16_000_000;

/// Of the thread's time, an attempt that is refused may take one part in so many.
const SHARE: u32 = 20;
/// The longest backoff that follows from work.
const LONGEST: Duration = Duration::from_secs(60);

/// Work of an attempt that is over in a fraction of a millisecond: it may be repeated as often as something happens.
const CHEAP: u64 = 5_000;

/// Returns how long a unit waits at least after an attempt that was refused and took so much work.
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
