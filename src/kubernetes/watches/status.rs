//! Tracks the status of a watch: its last contact, since when it fails, and why it was reopened.
//!
//! Also writes the log lines about failing watches: one when a watch begins to fail, one now and then while it keeps
//! failing, and one when it recovers.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::Now;

use crate::watches::catch_up::CatchUps;
use crate::watches::reader::ReadError;

/// Why a list or watch is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// The server ended a watch that had worked. This is normal.
    Ended,
    /// The server ended a watch right after it was opened.
    EndedAtOnce,
    /// The server no longer has the changes (410), or its versions started over.
    Expired,
    /// The server answered with an error, such as 429, 503 or 403.
    Status,
    /// The server did not answer in time.
    NoAnswer,
    /// An open watch delivered nothing, not even a bookmark.
    Silent,
    /// The connection failed or broke.
    Connection,
    /// The response could not be parsed.
    Unreadable,
    /// The watch did not show in time that it had passed what a former leader wrote, or what it had brought differed from
    /// the API server's list.
    Behind,
}

impl RetryCause {
    /// All causes, in declaration order.
    pub const ALL: [Self; 9] = [
        Self::Ended,
        Self::EndedAtOnce,
        Self::Expired,
        Self::Status,
        Self::NoAnswer,
        Self::Silent,
        Self::Connection,
        Self::Unreadable,
        Self::Behind,
    ];

    /// Returns the value of the metric label.
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
            Self::Behind => "behind",
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

/// A run of failures without a success in between.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Time of the first failure.
    pub since: Now,
    /// Failures so far, the first included.
    pub retries: u64,
    /// Text of the last failure.
    pub error: Arc<str>,
    /// When a log line was last written.
    logged: Now,
}

/// Status of a watch at one moment.
#[derive(Clone, Debug, Default)]
pub struct WatchReport {
    /// Whether a complete list was ever sent to the scheduler. Never reset; a broken watch shows in `failing` and
    /// `last_contact`.
    pub synced: bool,
    /// Whether the kind counts as one without objects, because the server does not serve it or does not let a kind be
    /// listed that no decision reads.
    pub unserved: bool,
    /// Whether a watch is open, as far as this side knows; see `last_contact`.
    pub connected: bool,
    /// Time of the last event, bookmark, list part or opening of a watch. Even a quiet server sends a bookmark about
    /// once a minute.
    pub last_contact: Option<Now>,
    /// Current run of failures; `None` while the watch works. A watch that is reopened at once does not count as
    /// failing.
    pub failing: Option<Failing>,
    /// Complete lists received; all but the first are relists.
    pub lists: u64,
    /// Watch events received, without bookmarks.
    pub events: u64,
    /// Objects that could not be decoded; each occurrence counts.
    pub quarantined: u64,
    /// Errors of lists, watches and discovery.
    pub errors: u64,
    /// Repeated lists and watches by cause, in the order of [`RetryCause::ALL`].
    pub retries: [u64; RetryCause::ALL.len()],
    /// Text and time of the last error. A later success does not clear it.
    pub last_error: Option<(Arc<str>, Now)>,
}

impl WatchReport {
    /// Returns whether the watch has been open without a break since an earlier report.
    pub fn is_unbroken_since(&self, earlier: &Self) -> bool {
        earlier.connected && self.connected && self.retries == earlier.retries
    }
}

/// Shared status of one watch: the watch writes it, metrics and health checks read it.
#[derive(Debug, Default)]
pub struct WatchStatus(Mutex<WatchReport>, CatchUps);

impl WatchStatus {
    /// Returns the current status.
    pub fn report(&self) -> WatchReport {
        self.0.lock().clone()
    }

    /// Returns the requests to catch up with what was written.
    pub(crate) fn catch_ups(&self) -> &CatchUps {
        &self.1
    }

    /// Returns whether a complete list was ever sent to the scheduler.
    pub fn is_synced(&self) -> bool {
        self.0.lock().synced
    }

    /// Records that a complete list was sent to the scheduler.
    pub(crate) fn synced(&self) {
        self.0.lock().synced = true;
    }

    /// Records that a part of a list arrived.
    pub(crate) fn received(&self, now: Now) {
        self.0.lock().last_contact = Some(now);
    }

    /// Records a complete list.
    pub(crate) fn listed(&self, now: Now) {
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        report.lists += 1;
        report.unserved = false;
    }

    /// Records that the kind counts as one without objects. Returns whether this is new.
    pub(crate) fn unserved(&self, kind: &str, now: Now) -> bool {
        self.recovered(kind, now);
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        !std::mem::replace(&mut report.unserved, true)
    }

    /// Records that a watch was opened.
    pub(crate) fn opened(&self, now: Now) {
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        report.connected = true;
    }

    /// Records an event or bookmark.
    pub(crate) fn event(&self, is_bookmark: bool, now: Now) {
        let mut report = self.0.lock();
        report.last_contact = Some(now);
        report.events += u64::from(!is_bookmark);
    }

    /// Records an object that cannot be decoded.
    pub(crate) fn quarantined(&self) {
        self.0.lock().quarantined += 1;
    }

    /// Records that a list or watch must be repeated.
    pub(crate) fn retried(&self, cause: RetryCause) {
        let mut report = self.0.lock();
        report.connected = false;
        report.retries[cause as usize] += 1;
    }

    /// Records an error that does not stop the watch from working.
    pub(crate) fn error(&self, text: &str, now: Now) {
        let mut report = self.0.lock();
        report.errors += 1;
        report.last_error = Some((text.into(), now));
    }

    /// Records an error that stops the watch from working. Logs the first one, then at most one per `log`.
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

    /// Records that the watch works, and logs the recovery.
    pub(crate) fn recovered(&self, kind: &str, now: Now) {
        let Some(failing) = self.0.lock().failing.take() else { return };
        let after = now.monotonic.saturating_sub(failing.since.monotonic);
        tracing::info!(kind, ?after, retries = failing.retries, "watch is back");
    }
}
