//! Time and size limits for reads from the API server. Every wait on the network has one.
//!
//! Why these numbers: a returned server must be noticed within 15 s, whatever it did before, so no back-off, response
//! wait or probe may take longer. An API server sends a bookmark about once a minute on a quiet watch, so silence
//! means something only after that.

use std::time::Duration;

/// Limits of lists, watches and probes.
#[derive(Clone, Debug)]
pub struct WatchLimits {
    /// Time from a request to its response head: opening a watch, discovery, errors.
    pub answer: Duration,
    /// Time from a request to the response head of a list page, which the server builds first.
    pub list_answer: Duration,
    /// Time between two parts of a page.
    pub page_silence: Duration,
    /// Time for a whole page, in addition to `list_answer`.
    pub page: Duration,
    /// Time between two events or bookmarks of a watch. After it, the watch is reopened at its last version.
    pub silence: Duration,
    /// Maximum duration of a watch that the server is asked for. Each watch asks for up to a fifth less, so that they
    /// do not all end together.
    pub watch: Duration,
    /// Time after which an open watch counts as working. If it ends sooner, the back-off applies.
    pub steady: Duration,
    /// Longest wait before a watch that worked and broke is reopened. It is short, because only one connection is
    /// known to be broken, and no new pods arrive meanwhile.
    pub reopen: Duration,
    /// First wait after a failure.
    pub first_backoff: Duration,
    /// Longest wait after a failure, even when the server asks for more: a `Retry-After` of an hour must not blind the
    /// scheduler for an hour. Each wait is shortened at random by up to half.
    pub longest_backoff: Duration,
    /// Pause before looking again for a kind that the server does not serve.
    pub unserved: Duration,
    /// Pause between two probes while the server answers.
    pub probe: Duration,
    /// Pause between two probes while the server does not answer.
    pub probe_away: Duration,
    /// Time limit of a probe.
    pub probe_answer: Duration,
    /// Time for responses to requests sent before the server came back: it probably forgot them.
    pub grace: Duration,
    /// Time over which requests are spread when the server is back.
    pub spread: Duration,
    /// Time between two log lines about a watch that keeps failing.
    pub log: Duration,
    /// Whether lists are asked for as streams (WatchList) where the server knows them.
    pub streaming_lists: bool,
    /// Number of objects in the first page of a list.
    pub first_page: u32,
    /// Maximum number of objects in a page.
    pub largest_page: u32,
    /// Target size of a page, in bytes. Later pages are adapted to it.
    pub page_bytes: usize,
    /// Maximum size of one object, in bytes. etcd accepts 1.5 MiB unless configured otherwise.
    pub object_bytes: usize,
}

impl Default for WatchLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            answer: seconds(10),
            list_answer: seconds(30),
            page_silence: seconds(10),
            page: seconds(120),
            silence: seconds(80),
            watch: seconds(290),
            steady: seconds(2),
            reopen: Duration::from_millis(100),
            first_backoff: Duration::from_millis(500),
            longest_backoff: seconds(5),
            unserved: seconds(30),
            probe: seconds(5),
            probe_away: seconds(1),
            probe_answer: seconds(2),
            grace: seconds(1),
            spread: seconds(1),
            log: seconds(30),
            streaming_lists: true,
            first_page: 50,
            largest_page: 500,
            page_bytes: 4 << 20,
            object_bytes: 32 << 20,
        }
    }
}

/// Exponential back-off with jitter and a bound.
pub(crate) struct JitteredBackoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl JitteredBackoff {
    pub(crate) fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first }
    }

    /// Returns how long to wait after a failure: the next pause, or `server_wish` if it is longer, within the bound.
    pub(crate) fn after_failure(&mut self, server_wish: Option<Duration>) -> Duration {
        let wish = server_wish.unwrap_or_default().min(self.most);
        let wait = self.next.mul_f64(0.5 + 0.5 * chance());
        self.next = (self.next * 2).min(self.most);
        wait.max(wish)
    }

    /// Resets the back-off after a success.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Returns a random number from 0 to 1, used as jitter so that clients do not act all at once.
pub(crate) fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    // The upper 53 bits form the fraction.
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_bound_and_a_long_wish_is_cut() {
        let (first, most) = (Duration::from_millis(500), Duration::from_secs(5));
        let mut waits = JitteredBackoff::new(first, most);
        let mut last = Duration::ZERO;
        for _ in 0..20 {
            last = waits.after_failure(None);
            assert!(last >= first / 2 && last <= most, "{last:?}");
        }
        assert!(last >= most / 2, "{last:?}");
        assert_eq!(waits.after_failure(Some(Duration::from_secs(3600))), most);
        waits.reset();
        assert!(waits.after_failure(None) <= first);
        assert!((0..100).map(|_| chance()).all(|c| (0.0..1.0).contains(&c)));
    }
}
