//! Misbehaviour on purpose, as data: which requests, which fault, how often.
//!
//! A test adds rules at start or while the sandbox runs. A rule is used up by the requests it matches. Some
//! faults concern the answer of any request, the others the next event of a matching watch.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection closes before an answer; nothing was done.
    Drop,
    /// The request is carried out, then the connection closes before the answer.
    DropAfterCommit,
    /// The request waits on the sandbox's clock, then is carried out.
    Delay(Duration),
    /// The request is answered with this status (409, 410, 429, 503, 504, …); nothing was done.
    Status(u16),
    /// The request is carried out, then answered with this status.
    StatusAfterCommit(u16),
    /// A watch is accepted and never says anything.
    SilentWatch,
    /// The next event of a watch comes twice.
    DuplicateEvent,
    /// The next event of a watch holds an object that does not decode.
    UndecodableEvent,
    /// The next event of a watch breaks off in the middle of the line, and with it the connection.
    DropMidLine,
    /// A watch gets an `ERROR` event with status 410 instead of its next event, and ends.
    GoneEvent,
}

impl Fault {
    /// Says whether the fault waits for an event of a watch.
    pub fn is_for_watch(&self) -> bool {
        matches!(
            self,
            Self::SilentWatch
                | Self::DuplicateEvent
                | Self::UndecodableEvent
                | Self::DropMidLine
                | Self::GoneEvent
        )
    }
}

/// Which requests a rule means. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// The HTTP method.
    pub method: Option<String>,
    /// A part of the path and query.
    pub path_contains: String,
}

impl Match {
    /// Means requests of a method whose path and query contain a text.
    pub fn new(method: &str, path_contains: &str) -> Self {
        Self { method: Some(method.to_owned()), path_contains: path_contains.to_owned() }
    }

    fn fits(&self, method: &str, path: &str) -> bool {
        self.method.as_deref().is_none_or(|m| m.eq_ignore_ascii_case(method))
            && path.contains(&self.path_contains)
    }
}

/// The rules in force, in the order in which they were added.
#[derive(Debug, Default)]
pub struct Faults(Mutex<VecDeque<(Match, Fault, usize)>>);

impl Faults {
    /// Lets the next matching request meet a fault.
    pub fn next(&self, which: Match, fault: Fault) {
        self.times(which, fault, 1);
    }

    /// Lets the next `times` matching requests meet a fault.
    pub fn times(&self, which: Match, fault: Fault, times: usize) {
        self.0.lock().push_back((which, fault, times));
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns how many rules are not used up.
    pub fn pending(&self) -> usize {
        self.0.lock().len()
    }

    /// Uses up a rule for a request; `wanted` says which faults the caller can carry out.
    pub fn take(&self, method: &str, path: &str, wanted: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let mut rules = self.0.lock();
        let at = rules.iter().position(|(which, fault, _)| wanted(fault) && which.fits(method, path))?;
        let (_, fault, left) = rules.get_mut(at)?;
        let fault = fault.clone();
        *left -= 1;
        if *left == 0 {
            rules.remove(at);
        }
        Some(fault)
    }
}
