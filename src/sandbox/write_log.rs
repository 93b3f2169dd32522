//! A log of the requests that write, in the order in which they arrived: who sent them, when, and what came of them.
//!
//! For tests of several schedulers on one API server. It is off unless [`Config::write_log`](super::Config) has room.

use std::collections::VecDeque;

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::faults::Caller;

/// A request that was to write.
#[derive(Clone, Debug)]
pub struct LoggedWrite {
    /// When it arrived, on the sandbox's clock.
    pub arrived: Timestamp,
    /// `User-Agent` of the client.
    pub user_agent: String,
    /// HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// When it was carried out, its status and its body; `None` when a fault kept it from being carried out.
    pub done: Option<(Timestamp, u16, Bytes)>,
}

impl LoggedWrite {
    /// Returns whether it was carried out with success.
    pub fn is_success(&self) -> bool {
        self.done.as_ref().is_some_and(|(_, status, _)| (200..300).contains(status))
    }
}

/// The newest writes, up to a number.
#[derive(Debug)]
pub(crate) struct WriteLog {
    room: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<LoggedWrite>,
    /// Number of entries that were pushed out.
    dropped: usize,
}

impl WriteLog {
    /// Returns an empty log that keeps this many writes.
    pub(crate) fn new(room: usize) -> Self {
        Self { room, entries: Mutex::default() }
    }

    /// Logs the arrival of a request if it is to write. Returns its number.
    pub(crate) fn arrived(&self, caller: Caller<'_>, arrived: Timestamp) -> Option<usize> {
        if self.room == 0 || matches!(caller.method, "GET" | "HEAD") {
            return None;
        }
        let (user_agent, method, path) =
            (caller.user_agent.to_owned(), caller.method.to_owned(), caller.path.to_owned());
        let mut entries = self.entries.lock();
        entries.kept.push_back(LoggedWrite { arrived, user_agent, method, path, done: None });
        if entries.kept.len() > self.room {
            entries.kept.pop_front();
            entries.dropped += 1;
        }
        Some(entries.dropped + entries.kept.len() - 1)
    }

    /// Logs that a request was carried out.
    pub(crate) fn carried_out(&self, number: Option<usize>, body: Bytes, status: StatusCode, now: Timestamp) {
        let Some(number) = number else { return };
        let mut entries = self.entries.lock();
        let at = number.checked_sub(entries.dropped);
        if let Some(write) = at.and_then(|at| entries.kept.get_mut(at)) {
            write.done = Some((now, status.as_u16(), body));
        }
    }

    /// Returns the kept writes.
    pub(crate) fn all(&self) -> Vec<LoggedWrite> {
        self.entries.lock().kept.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_writes_are_kept_and_reads_are_not() {
        let log = WriteLog::new(2);
        let (now, of) = (Timestamp::UNIX_EPOCH, |method, path| Caller { method, path, user_agent: "a" });
        assert_eq!(log.arrived(of("GET", "/0"), now), None);
        let numbers: Vec<_> = ["/1", "/2", "/3"].map(|path| log.arrived(of("POST", path), now)).into();
        for number in &numbers {
            log.carried_out(*number, Bytes::from_static(b"{}"), StatusCode::CREATED, now);
        }
        let all = log.all();
        assert_eq!(all.iter().map(|write| &*write.path).collect::<Vec<_>>(), ["/2", "/3"]);
        assert!(all.iter().all(LoggedWrite::is_success));
        assert_eq!(WriteLog::new(0).arrived(of("POST", "/1"), now), None);
    }
}
