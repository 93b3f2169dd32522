//! Time and size limits of everything that is read from the API server. No wait on the network is without one.
//!
//! Why these numbers. A server that is back must be noticed within 15 s whatever it did before, so no back-off, no
//! answer that is waited for and no probe may take longer than that. An API server sends a bookmark about once a
//! minute on a quiet watch, so silence means something only after that.

use std::time::Duration;

/// Limits of lists, watches and probes.
#[derive(Clone, Debug)]
pub struct WatchLimits {
    /// From a request to the head of its answer: opening a watch, discovery, errors.
    pub answer: Duration,
    /// The same for a page of a list, which the server makes before it answers.
    pub list_answer: Duration,
    /// Between two parts of a page.
    pub page_silence: Duration,
    /// For a whole page.
    pub page: Duration,
    /// Between two events or bookmarks of a watch. Afterwards it is opened anew from where it was.
    pub silence: Duration,
    /// How long the server is asked to keep a watch, at most; watches ask for up to a fifth less, so that they do
    /// not all end together.
    pub watch: Duration,
    /// How long a watch must last to count as working. One that ends sooner is backed off from.
    pub steady: Duration,
    /// The longest wait before a watch that worked and broke is opened anew. It is that short because a single broken
    /// connection is all that is known, and new pods are not seen meanwhile.
    pub reopen: Duration,
    /// First wait after a failure.
    pub first_backoff: Duration,
    /// Longest wait after a failure, also when the server asks for more: a `Retry-After` of an hour must not
    /// blind the scheduler for an hour. The last quarter to half of each wait is random.
    pub longest_backoff: Duration,
    /// Before a kind is asked for again that the server does not serve.
    pub unserved: Duration,
    /// Between two probes of the server while it answers.
    pub probe: Duration,
    /// Between two probes while it does not.
    pub probe_away: Duration,
    /// For the answer to a probe.
    pub probe_answer: Duration,
    /// For answers that were asked for before the server came back: it probably forgot them.
    pub grace: Duration,
    /// The time over which requests are spread once the server is back.
    pub spread: Duration,
    /// Between two lines of the log about a watch that goes on failing.
    pub log: Duration,
    /// Objects asked for in the first page of a list.
    pub first_page: u32,
    /// Objects asked for in a page, at most.
    pub largest_page: u32,
    /// Bytes that a page should have. Later pages are asked for accordingly.
    pub page_bytes: usize,
    /// Bytes of one object, at most. etcd takes 1.5 MiB unless configured otherwise.
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
            first_page: 50,
            largest_page: 500,
            page_bytes: 4 << 20,
            object_bytes: 32 << 20,
        }
    }
}

/// Waits that double after each failure, up to a bound, with chance in them.
pub(crate) struct Growing {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Growing {
    pub(crate) fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first }
    }

    /// Returns how long to wait after one more failure; longer if the server asked for it, within the bound.
    pub(crate) fn after_failure(&mut self, server_wish: Option<Duration>) -> Duration {
        let wish = server_wish.unwrap_or_default().min(self.most);
        let wait = self.next.mul_f64(0.5 + 0.5 * chance());
        self.next = (self.next * 2).min(self.most);
        wait.max(wish)
    }

    /// Begins anew, after a success.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// Returns a number from 0 to 1 by chance, so that clients do not come all at once.
pub(crate) fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    // The upper 53 bits make a fraction.
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_bound_and_a_long_wish_is_cut() {
        let (first, most) = (Duration::from_millis(500), Duration::from_secs(5));
        let mut waits = Growing::new(first, most);
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
