//! The queue's limits, and how long a backoff takes.

use std::time::Duration;

/// Limits of the queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Backoff after the first refusal; doubles with each further one.
    pub initial_backoff: Duration,
    /// The longest backoff; 0 turns backoff off.
    pub max_backoff: Duration,
    /// A refused unit is tried again after this long even if no event named it.
    pub max_unschedulable: Duration,
    /// Whether an idle scheduler takes woken units before their backoff ends, and whether backoffs end in
    /// whole windows so that those of one window go by the common order. kube-scheduler's feature
    /// SchedulerPopFromBackoffQ.
    pub pop_from_backoff: bool,
}

impl Default for QueueLimits {
    /// kube-scheduler's numbers: 1 s, 10 s, 5 min.
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
    /// Returns the backoff after so many failures in a row: the initial one, doubled each time, up to the
    /// longest.
    pub(super) fn backoff(self, failures: u32) -> Duration {
        let doubled = self.initial_backoff.saturating_mul(1 << failures.saturating_sub(1).min(30));
        doubled.min(self.max_backoff)
    }

    /// Returns when a backoff that starts now ends: the beginning of its window of one second.
    pub(super) fn backoff_end(self, failures: u32, now: Duration) -> Duration {
        let end = now + self.backoff(failures);
        if self.pop_from_backoff { Duration::from_secs(end.as_secs()) } else { end }
    }
}
