//! Until when this process may write to the cluster: one number that writers ask right before each request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Least time that must be left for a request to be sent. Less would only make writes whose outcome is unknown.
pub const LEAST: Duration = Duration::from_millis(50);

/// The value that stands for a right without end.
const ENDLESS: u64 = u64::MAX;

/// The right to write, shared by the elector, which extends it, and the API writer, which asks it. The time is
/// monotonic and its own, so nothing that sets the wall clock moves it.
#[derive(Debug)]
pub struct WriteRight {
    base: Instant,
    /// Nanoseconds after `base` at which the right ends; zero when there is none.
    until: AtomicU64,
    /// Requests that were not sent, because there was no right.
    refused: AtomicU64,
    /// Requests that were given up unanswered, because the right ended while they were in flight.
    cut_off: AtomicU64,
}

impl WriteRight {
    fn new(until: u64) -> Self {
        let (refused, cut_off) = Default::default();
        Self { base: Instant::now(), until: AtomicU64::new(until), refused, cut_off }
    }

    /// Returns a right that never ends, for an instance without leader election.
    pub fn endless() -> Self {
        Self::new(ENDLESS)
    }

    /// Returns no right, for an instance that has to be elected first.
    pub fn none() -> Self {
        Self::new(0)
    }

    /// Returns the time since the right was made, the clock of [`extend`](Self::extend).
    pub fn elapsed(&self) -> Duration {
        self.base.elapsed()
    }

    /// Lets writes be sent until this time, at the latest.
    pub fn extend(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(ENDLESS - 1).min(ENDLESS - 1);
        self.until.fetch_max(nanos, Ordering::AcqRel);
    }

    /// Ends the right at once. Requests in flight are not cancelled.
    pub fn end(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// Returns the longest time that a request sent now may take, at most `limit`; `None` when nothing may be sent.
    pub fn limit(&self, limit: Duration) -> Option<Duration> {
        let until = self.until.load(Ordering::Acquire);
        if until == ENDLESS {
            return Some(limit);
        }
        let left = Duration::from_nanos(until).saturating_sub(self.elapsed());
        (left >= LEAST).then(|| left.min(limit))
    }

    /// Counts a request that was not sent.
    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was in flight when the right ended.
    pub(crate) fn count_cut_off(&self) {
        self.cut_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests were not sent, because there was no right.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns how many requests were in flight, unanswered, when the right ended.
    pub fn cut_off(&self) -> u64 {
        self.cut_off.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_request_never_lasts_beyond_the_right() {
        let right = WriteRight::none();
        assert_eq!(right.limit(SECOND), None);
        right.extend(10 * SECOND);
        assert_eq!((right.limit(SECOND), right.limit(60 * SECOND)), (Some(SECOND), Some(10 * SECOND)));
        tokio::time::advance(Duration::from_millis(9_500)).await;
        assert_eq!(right.limit(SECOND), Some(Duration::from_millis(500)));
        // A renewal that is answered late does not take back what an earlier answer gave.
        right.extend(5 * SECOND);
        assert_eq!(right.limit(SECOND), Some(Duration::from_millis(500)));
        tokio::time::advance(Duration::from_millis(451)).await;
        assert_eq!(right.limit(SECOND), None, "too little is left");
        right.extend(20 * SECOND);
        assert_eq!(right.limit(SECOND), Some(SECOND));
        right.end();
        assert_eq!(right.limit(SECOND), None);
        assert_eq!(WriteRight::endless().limit(SECOND), Some(SECOND));
    }
}
