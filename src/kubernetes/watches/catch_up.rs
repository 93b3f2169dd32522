//! Makes sure that a watch has passed everything that was written before a moment.
//!
//! A new leader asks for it before its first attempt: the old one's last Bindings may still be on their way to its
//! watches. The watch reads the current version of its kind, a consistent read, and goes on until it has passed it.
//! A quiet watch may get its next bookmark only in a minute. So a watch that does not show soon that it is there lists
//! again, which is consistent as well and, as a difference, costs only what changed. Versions that are no numbers cannot
//! be compared, and also lead to a list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::watches::list::newest_version;
use crate::watches::reader::Reader;
use crate::watches::status::WatchStatus;

/// How long a watch may take to pass a version before it lists again.
const GRACE: Duration = Duration::from_millis(100);

/// Requests to catch up, numbered from 1, and up to which one the watch has passed what was written before them.
#[derive(Debug, Default)]
pub(crate) struct CatchUps {
    asked: watch::Sender<u64>,
    reached: watch::Sender<u64>,
    /// Whether the kind must be listed again, whatever the watch has passed.
    must_list: AtomicBool,
}

impl CatchUps {
    /// Asks the watch to list its kind again. Returns the number of the request.
    pub(crate) fn ask_for_list(&self) -> u64 {
        self.must_list.store(true, Ordering::Relaxed);
        self.ask()
    }

    /// Asks the watch to catch up. Returns the number of the request.
    pub(crate) fn ask(&self) -> u64 {
        self.asked.send_modify(|n| *n += 1);
        self.asked()
    }

    /// Returns the number of the newest request.
    pub(crate) fn asked(&self) -> u64 {
        *self.asked.borrow()
    }

    /// Waits until a request is fulfilled: what was written before it has been sent to the scheduler.
    pub(crate) async fn fulfilled(&self, request: u64) {
        // The sender is this one, so waiting does not fail.
        let _ = self.reached.subscribe().wait_for(|reached| *reached >= request).await;
    }

    /// Records that all requests up to this one are fulfilled.
    pub(crate) fn reach(&self, request: u64) {
        self.reached.send_if_modified(|reached| {
            let is_new = request > *reached;
            *reached = request.max(*reached);
            is_new
        });
    }

    fn is_behind(&self) -> bool {
        self.asked() > *self.reached.borrow()
    }
}

/// What an open watch still has to pass.
struct Target {
    request: u64,
    version: u64,
    /// When to list instead.
    until: Instant,
}

/// Catches up on behalf of one open watch.
pub(crate) struct Pursuit {
    status: Arc<WatchStatus>,
    asked: watch::Receiver<u64>,
    target: Option<Target>,
}

impl Pursuit {
    pub(crate) fn new(status: &Arc<WatchStatus>) -> Self {
        Self { status: status.clone(), asked: status.catch_ups().asked.subscribe(), target: None }
    }

    /// Returns whether [`go_on`](Self::go_on) has something to do.
    pub(crate) fn is_due(&self) -> bool {
        match &self.target {
            Some(target) => target.until <= Instant::now(),
            None => self.status.catch_ups().is_behind(),
        }
    }

    /// Waits until [`go_on`](Self::go_on) has something to do. Cancel safe.
    pub(crate) async fn due(&mut self) {
        match &self.target {
            Some(target) => sleep_until(target.until).await,
            None => {
                let status = &self.status;
                // The sender lives in `status`, so waiting does not fail.
                let _ = self.asked.wait_for(|_| status.catch_ups().is_behind()).await;
            }
        }
    }

    /// Finds out what a request asks the watch to pass, which has passed `version`. Returns whether the kind must be
    /// listed again: a request wants a list, or the version cannot be found out or was not passed in time.
    pub(crate) async fn go_on(&mut self, reader: &Reader, path: &str, version: &str) -> bool {
        if self.target.take().is_some() || self.status.catch_ups().must_list.swap(false, Ordering::Relaxed) {
            return true;
        }
        let request = self.status.catch_ups().asked();
        let newest = newest_version(reader, path).await.ok().and_then(|newest| newest.parse().ok());
        let Some(newest) = newest else { return true };
        self.target = Some(Target { request, version: newest, until: Instant::now() + GRACE });
        self.passed(version);
        version.parse::<u64>().is_err()
    }

    /// Takes note that everything up to `version` has been sent to the scheduler.
    pub(crate) fn passed(&mut self, version: &str) {
        let is_there = |target: &mut Target| version.parse::<u64>().is_ok_and(|at| at >= target.version);
        if let Some(target) = self.target.take_if(is_there) {
            self.status.catch_ups().reach(target.request);
        }
    }
}
