//! How a watch is doing: what it heard last, whether it fails and since when, why it was opened anew.
//!
//! The log is written here: a line when a watch begins to fail, one now and then while it goes on, one when it is
//! well again.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::Now;

use crate::watches::reader::ReadError;

/// Why a list or watch is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// The server ended a watch in time. Nothing is wrong.
    Ended,
    /// The server ended a watch that had hardly begun.
    EndedAtOnce,
    /// The server does not have the changes any more, or began to count anew.
    Expired,
    /// The server answered with an error, such as 429, 503 or 403.
    Status,
    /// The server did not answer in time.
    NoAnswer,
    /// Nothing came over an open watch, not even a bookmark.
    Silent,
    /// The connection was not made, or broke.
    Connection,
    /// What came could not be read.
    Unreadable,
}

impl RetryCause {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Ended,
        Self::EndedAtOnce,
        Self::Expired,
        Self::Status,
        Self::NoAnswer,
        Self::Silent,
        Self::Connection,
        Self::Unreadable,
    ];

    /// Returns the name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::EndedAtOnce => "ended_at_once",
            Self::Expired => "expired",
            Self::Status => "status",
            Self::NoAnswer => "no_answer",
            Self::Silent => "silent",
            Self::Connection => "connection",
            Self::Unreadable => "unreadable",
        }
    }
}

impl From<&ReadError> for RetryCause {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::Status { status, .. } if status.code == 410 => Self::Expired,
            ReadError::Status { .. } => Self::Status,
            ReadError::NoAnswer(_) | ReadError::Lost => Self::NoAnswer,
            ReadError::Silent(_) => Self::Silent,
            ReadError::Connection(_) => Self::Connection,
            ReadError::Unreadable(_) => Self::Unreadable,
        }
    }
}

/// A watch that fails.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Since when.
    pub since: Now,
    /// Failures since then.
    pub retries: u64,
    /// The last one.
    pub error: Arc<str>,
    /// When the log was last told.
    logged: Now,
}

/// How a watch is doing.
#[derive(Clone, Debug, Default)]
pub struct WatchReport {
    /// Whether a complete list has arrived; it stays so, a broken watch shows in `failing` and `last_contact`.
    pub synced: bool,
    /// Whether the server said that it does not know the kind. Then there are no objects of it.
    pub unserved: bool,
    /// Whether a watch is open now, as far as is known: see `last_contact`.
    pub connected: bool,
    /// When anything was last heard: an event, a bookmark, a part of a list, the opening of a watch. A server says
    /// something about once a minute even when nothing happens.
    pub last_contact: Option<Now>,
    /// Since when it fails; `None` while all is well. A watch that is opened anew at once does not fail.
    pub failing: Option<Failing>,
    /// Complete lists that arrived; all but the first are restarts.
    pub lists: u64,
    /// Objects that arrived after the lists.
    pub events: u64,
    /// Objects that could not be decoded, repeats counted.
    pub quarantined: u64,
    /// Errors.
    pub errors: u64,
    /// How often a list or watch was made again, in the order of [`RetryCause::ALL`].
    pub retries: [u64; RetryCause::ALL.len()],
    /// The last error and its time. Not cleared by a later success.
    pub last_error: Option<(Arc<str>, Now)>,
}

/// Shared state of a watch.
#[derive(Debug, Default)]
pub struct WatchStatus(Mutex<WatchReport>);

impl WatchStatus {
    /// Returns how the watch is doing.
    pub fn report(&self) -> WatchReport {
        self.0.lock().clone()
    }

    /// Whether a complete list has arrived.
    pub fn is_synced(&self) -> bool {
        self.0.lock().synced
    }

    /// Notes that a complete list is on its way to the scheduler.
    pub(crate) fn synced(&self) {
        self.0.lock().synced = true;
    }

    /// Notes a part of a list.
    pub(crate) fn heard(&self, now: Now) {
        self.0.lock().last_contact = Some(now);
    }

    /// Notes a complete list.
    pub(crate) fn listed(&self, now: Now) {
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        report.lists += 1;
        report.unserved = false;
    }

    /// Notes that the server does not know the kind. Returns whether that is news.
    pub(crate) fn unserved(&self, kind: &str, now: Now) -> bool {
        self.well(kind, now);
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        !std::mem::replace(&mut report.unserved, true)
    }

    /// Notes that a watch is open.
    pub(crate) fn opened(&self, now: Now) {
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        report.connected = true;
    }

    /// Notes an event of an open watch, or a bookmark.
    pub(crate) fn event(&self, is_bookmark: bool, now: Now) {
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        report.events += u64::from(!is_bookmark);
    }

    /// Notes an object that cannot be read.
    pub(crate) fn quarantined(&self) {
        self.0.lock().quarantined += 1;
    }

    /// Notes that a list or watch has to be made again.
    pub(crate) fn retried(&self, cause: RetryCause) {
        let mut report = self.0.lock();
        report.connected = false;
        report.retries[cause as usize] += 1;
    }

    /// Notes an error, after which things go on.
    pub(crate) fn error(&self, text: &str, now: Now) {
        let mut report = self.0.lock();
        report.errors += 1;
        report.last_error = Some((text.into(), now));
    }

    /// Notes an error that keeps the watch from working. The log is told at first and then so often.
    pub(crate) fn failed(&self, kind: &str, text: &str, now: Now, log: Duration) {
        self.error(text, now);
        let mut report = self.0.lock();
        let Some(failing) = &mut report.failing else {
            tracing::warn!(kind, error = text, "watch fails, trying again");
            report.failing = Some(Failing { since: now, retries: 1, error: text.into(), logged: now });
            return;
        };
        failing.retries += 1;
        failing.error = text.into();
        if now.monotonic.saturating_sub(failing.logged.monotonic) >= log {
            failing.logged = now;
            let since = now.monotonic.saturating_sub(failing.since.monotonic);
            tracing::warn!(kind, error = text, retries = failing.retries, since = ?since, "watch still fails");
        }
    }

    /// Notes that the watch works.
    pub(crate) fn well(&self, kind: &str, now: Now) {
        let Some(failing) = self.0.lock().failing.take() else { return };
        let after = now.monotonic.saturating_sub(failing.since.monotonic);
        tracing::info!(kind, ?after, retries = failing.retries, "watch is back");
    }
}
