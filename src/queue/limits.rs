//! Limits of the queue, and the length of a backoff.

use std::time::Duration;

/// Limits of the queue, as kube-scheduler has them.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Backoff after the first refusal; doubles with each further one.
    pub initial_backoff: Duration,
    /// Upper bound of the backoff; 0 turns backoff off.
    pub max_backoff: Duration,
    /// After this long a refused unit is tried again even if no event woke it.
    pub max_unschedulable: Duration,
    /// Whether an idle scheduler takes woken units before their backoff ends, and whether backoffs end at whole
    /// seconds, so that units whose backoff ends in the same second are taken in queue order. kube-scheduler's feature
    /// SchedulerPopFromBackoffQ.
    pub pop_from_backoff: bool,
}

impl Default for QueueLimits {
    /// Returns kube-scheduler's defaults: 1 s, 10 s, 5 min.
    fn default() -> Self {
        Self {
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            max_unschedulable: Duration::from_secs(300),
            pop_from_backoff: true,
        }
    }
}

impl QueueLimits {
    /// Returns the backoff after `failures` failures in a row: the initial one, doubled for each further failure, up to
    /// the maximum.
    pub(super) fn backoff(self, failures: u32) -> Duration {
        let doubled = self.initial_backoff.saturating_mul(1 << failures.saturating_sub(1).min(30));
        doubled.min(self.max_backoff)
    }

    /// Returns when a backoff that starts now ends, rounded down to a whole second under `pop_from_backoff`.
    pub(super) fn backoff_end(self, failures: u32, now: Duration) -> Duration {
        let end = now + self.backoff(failures);
        if self.pop_from_backoff { Duration::from_secs(end.as_secs()) } else { end }
    }
}
