//! Run-time switches of the diagnosis. Requests set them; the scheduling thread reads them.
//!
//! While nothing is recorded, an attempt costs one atomic load. While something is, the scheduling thread takes a copy
//! of the list of recordings, which share their counters. A flag has a raw value, for all pods and without an end, and
//! can also be set for some pods and a limited time. Every change is in the audit.
//!
//! This module has no clock: times are arguments, and a recording whose time has run out is ended by the first call
//! that notices. The log subscriber has the verbosity and directive of the log; only the settings to restore are stored
//! here. Start at [`Switches`].

mod ask;
mod audit;
mod recording;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use pellucid_api::rest::debug;
use smallvec::SmallVec;

pub use ask::{Ask, DEFAULT_RECORDS, DEFAULT_TTL, LONGEST_TTL, MOST_RECORDS, Order, parse};
use audit::Audit;
pub use audit::{CHANGES_KEPT, Change, Why};
pub use recording::{Flag, LogBefore, Recording, Scope};

use pellucid_model::{Now, Pod};

/// Maximum number of active recordings besides the raw values of flags.
pub const MOST_ACTIVE: usize = 16;
/// Default budget: the percentage of the time of attempts that recording may take.
pub const DEFAULT_BUDGET: u32 = 10;

/// Who sets a switch, and when.
#[derive(Clone, Debug, Default)]
pub struct Setter {
    /// When the switch is set.
    pub now: Now,
    /// Address and user agent.
    pub from: String,
}

/// Why a switch was not set or ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSet {
    /// [`MOST_ACTIVE`] recordings are active already.
    TooMany,
    /// No active recording of the flag has this number.
    Unknown(u64),
    /// The flag is not set, so there is nothing to end.
    NotOn,
}

/// What an attempt must record, and for which recordings.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Recordings that want the score table of the attempt.
    pub scores: SmallVec<[Arc<Recording>; 2]>,
    /// Recordings that want the refused nodes of the attempt.
    pub failures: SmallVec<[Arc<Recording>; 2]>,
}

impl Wanted {
    /// Returns how many rows of the score table are wanted.
    #[inline]
    pub fn rows(&self) -> usize {
        self.scores.iter().map(|r| r.rows).max().unwrap_or(0)
    }
}

/// The switches, shared by all threads. At start, only the flight recorder records.
#[derive(Debug)]
pub struct Switches {
    /// Number of active recordings of attempts.
    armed: AtomicUsize,
    /// Number of active recordings with an end time.
    timed: AtomicUsize,
    top_n_scores: AtomicUsize,
    filter_failures: AtomicBool,
    reuse: AtomicBool,
    recorder: AtomicBool,
    recorder_bytes: AtomicUsize,
    recorder_first: AtomicU64,
    accounts: AtomicBool,
    budget: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Active recordings, by number.
    active: Arc<Vec<Arc<Recording>>>,
    /// Log settings to restore, of recordings of the log that ended.
    log_ended: Vec<LogBefore>,
    last_id: u64,
    audit: Audit,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            armed: AtomicUsize::new(0),
            timed: AtomicUsize::new(0),
            top_n_scores: AtomicUsize::new(0),
            filter_failures: AtomicBool::new(false),
            reuse: AtomicBool::new(true),
            recorder: AtomicBool::new(true),
            recorder_bytes: AtomicUsize::new(crate::flight::DEFAULT_BYTES),
            recorder_first: AtomicU64::new(1),
            accounts: AtomicBool::new(true),
            budget: AtomicU32::new(DEFAULT_BUDGET),
            state: Mutex::default(),
        }
    }
}

/// Declares settings that are one value for all pods: how each is read, and how it is set.
macro_rules! settings {
    ($($(#[$read:meta])* $name:ident: $type:ty, $(#[$write:meta])* $set:ident;)*) => { $(
        $(#[$read])*
        #[inline]
        pub fn $name(&self) -> $type {
            self.$name.load(Ordering::Relaxed)
        }

        $(#[$write])*
        #[inline]
        pub fn $set(&self, value: $type) {
            self.$name.store(value, Ordering::Relaxed);
        }
    )* };
}

impl Switches {
    /// Returns how many rows of each score table to record for all pods (flag `s`); 0 records none.
    #[inline]
    pub fn top_n_scores(&self) -> usize {
        self.top_n_scores.load(Ordering::Relaxed)
    }

    /// Sets flag `s` for all pods.
    #[inline]
    pub fn set_top_n_scores(&self, n: usize, by: &Setter) {
        self.set_raw(Flag::Scores, &n.to_string(), n, by);
    }

    /// Returns whether refused nodes are recorded for all pods (flag `f`).
    #[inline]
    pub fn filter_failures(&self) -> bool {
        self.filter_failures.load(Ordering::Relaxed)
    }

    /// Sets flag `f` for all pods.
    #[inline]
    pub fn set_filter_failures(&self, on: bool, by: &Setter) {
        self.set_raw(Flag::Failures, &on.to_string(), 0, by);
    }

    settings! {
        /// Returns whether cached results are reused for pods of one shape. Decisions do not depend on it.
        reuse: bool,
        /// Turns reuse on or off.
        set_reuse;
        /// Returns whether the flight recorder records; on at start. Decisions do not depend on it.
        recorder: bool,
        /// Turns the flight recorder on or off.
        set_recorder;
        /// Returns the size limit of the flight recorder in bytes, which a scheduler reads when it is created.
        recorder_bytes: usize,
        /// Sets the size limit, in bytes, of flight recorders created later.
        set_recorder_bytes;
        /// Returns the first id of the flight recorder, which a scheduler reads when it is created.
        recorder_first: u64,
        /// Sets the first id of flight recorders created later. An id that increases from process to process keeps
        /// their entries distinct.
        set_recorder_first;
        /// Returns whether the accounts are on: verdicts are stored and plugins timed.
        accounts: bool,
        /// Turns the accounts on or off, for the benchmark that measures their cost. There is no flag for it, because
        /// every pod must have a verdict.
        set_accounts;
        /// Returns the percentage of the time of attempts that recording may take before it is turned off.
        budget: u32,
        /// Sets the budget in percent; with 100 nothing is turned off.
        set_budget;
    }

    /// Returns whether some recording of attempts is active.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.armed.load(Ordering::Relaxed) > 0
    }

    /// Returns the recordings that want an attempt at a pod.
    #[inline]
    pub fn wanted(&self, pod: &Pod, now: Now) -> Wanted {
        let active = self.state().active.clone();
        let by = |flag| active.iter().filter(move |r| r.wants(flag, pod, now)).cloned().collect();
        Wanted { scores: by(Flag::Scores), failures: by(Flag::Failures) }
    }

    /// Counts a record for each of the recordings, and ends those for which it was the last. Returns the recordings for
    /// which it counts.
    pub fn count(&self, wanted: &[Arc<Recording>], now: Now) -> SmallVec<[Arc<Recording>; 2]> {
        let mut counted = SmallVec::new();
        for recording in wanted {
            let (counts, is_last) = recording.count();
            if counts {
                counted.push(recording.clone());
            }
            if is_last {
                self.end(recording, Why::UsedUp, "scheduler", now.wall);
            }
        }
        counted
    }

    /// Sets a flag for a scope and a limited time. Renews the recording with the same flag, scope and owner if there is
    /// one. `before` holds the log settings to restore. Fails when too many recordings are active.
    pub fn begin(
        &self,
        flag: Flag,
        order: Order,
        before: Option<LogBefore>,
        by: &Setter,
    ) -> Result<Arc<Recording>, NotSet> {
        self.expire(by.now);
        let mut state = self.state();
        let owner: Arc<str> = order.owner.clone().unwrap_or_else(|| by.from.as_str().into());
        // Only one of the two log flags is set at a time, and both restore the settings from before the first.
        let is_same = |r: &Arc<Recording>| match flag.records() {
            true => r.id != 0 && r.flag == flag && r.scope == order.scope && r.owner == owner,
            false => !r.flag.records(),
        };
        let old = state.active.iter().find(|r| is_same(r)).cloned();
        if old.is_none() && state.active.iter().filter(|r| r.id != 0).count() >= MOST_ACTIVE {
            return Err(NotSet::TooMany);
        }
        let renewed = old.as_ref().filter(|r| r.flag == flag);
        let id = renewed.map_or(state.last_id + 1, |r| r.id);
        state.last_id = state.last_id.max(id);
        let recording = Arc::new(Recording {
            id,
            flag,
            value: order.value,
            rows: order.rows,
            scope: order.scope,
            owner,
            set_by: by.from.as_str().into(),
            set_at: by.now,
            expires: Some(by.now.monotonic + order.ttl),
            most: flag.records().then_some(order.most),
            before: old.as_ref().and_then(|r| r.before.clone()).or(before),
            records: Default::default(),
            ended: Default::default(),
        });
        self.replace(&mut state, old.as_ref(), Some(recording.clone()));
        state.audit.push(Change::begin(&recording, renewed.map(|r| &**r)));
        Ok(recording)
    }

    /// Ends a recording by its number. Without a number, ends the raw value of a flag that records attempts, or the
    /// recording of a log flag. Fails when there is none.
    #[inline]
    pub fn end_one(&self, flag: Flag, id: Option<u64>, by: &Setter) -> Result<Arc<Recording>, NotSet> {
        self.expire(by.now);
        let is_meant =
            |r: &&Arc<Recording>| r.flag == flag && id.map_or(!flag.records() || r.id == 0, |id| r.id == id);
        let found = self.state().active.iter().find(is_meant).cloned();
        let recording = found.ok_or(id.map_or(NotSet::NotOn, NotSet::Unknown))?;
        self.end(&recording, Why::Ended, &by.from, by.now.wall);
        Ok(recording)
    }

    /// Ends recordings whose time has run out. Any call that reads the switches may do this later; the audit records
    /// the time when the recording was to end.
    pub fn expire(&self, now: Now) {
        if self.timed.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut due: Vec<_> = self.state().active.iter().filter(|r| r.is_due(now)).cloned().collect();
        due.sort_by_key(|r| (r.expires, r.id));
        for recording in due {
            let at = recording.expires.map_or(now.wall, |at| recording.set_at.wall_at(at));
            self.end(&recording, Why::Expired, "scheduler", at);
        }
    }

    /// Returns when the next recording ends by itself, on the monotonic clock.
    #[inline]
    pub fn next_expiry(&self) -> Option<Duration> {
        self.state().active.iter().filter_map(|r| r.expires).min()
    }

    /// Ends a recording; does nothing when it is not active.
    #[inline]
    pub fn end(&self, recording: &Arc<Recording>, why: Why, by: &str, at: Duration) {
        let mut state = self.state();
        if !state.active.iter().any(|r| Arc::ptr_eq(r, recording)) {
            return;
        }
        self.replace(&mut state, Some(recording), None);
        state.audit.push(Change::end(recording, why, by, at));
        state.log_ended.extend(recording.before.clone());
    }

    /// Returns an active recording by its flag and number.
    #[inline]
    pub fn find(&self, flag: &str, id: u64) -> Option<Arc<Recording>> {
        self.state().active.iter().find(|r| r.flag.as_str() == flag && r.id == id).cloned()
    }

    /// Takes the log settings to restore; `None` unless a recording of the log has ended.
    #[inline]
    pub fn take_log_ended(&self) -> Option<LogBefore> {
        self.state().log_ended.drain(..).next_back()
    }

    /// Ends the recording of the log without restoring anything, because the log was set without an end.
    #[inline]
    pub fn forget_log(&self) {
        let mut state = self.state();
        let old = state.active.iter().find(|r| !r.flag.records()).cloned();
        self.replace(&mut state, old.as_ref(), None);
        state.log_ended.clear();
    }

    /// Adds the change of a switch that records nothing to the audit.
    pub fn audit_change(&self, flag: &str, from: &str, to: &str, by: &Setter) {
        self.state().audit.push(Change {
            number: 0,
            at: by.now.wall,
            by: by.from.as_str().into(),
            owner: "global".into(),
            flag: flag.into(),
            id: 0,
            from: from.into(),
            to: to.into(),
            why: Why::Set,
            scope: Scope::default(),
        });
    }

    /// Returns the bodies of the active recordings of a flag, or of all flags.
    #[inline]
    pub fn active(&self, flag: Option<Flag>, now: Now) -> Vec<debug::Recording> {
        self.expire(now);
        let active = self.state().active.clone();
        active.iter().filter(|r| flag.is_none_or(|f| f == r.flag)).map(|r| r.body(now)).collect()
    }

    /// Says why nothing is recorded of a flag that records attempts: it is off, or nothing came since it was set.
    /// `of` names what comes, such as "a placement of a matching pod".
    pub fn why_nothing(&self, flag: Flag, of: &str, now: Now) -> String {
        let (name, off) = (flag.as_str(), flag.off());
        let active = self.active(Some(flag), now);
        let Some(first) = active.iter().map(|recording| &recording.set_at).min() else {
            let value = if off == "0" { "a number" } else { "true" };
            let was_shut = self
                .shut_off(name)
                .map_or("", |_| "; it was turned off because it took more than its budget");
            return format!(
                "flag {name} is off{was_shut}: PUT {value} to /debug/flags/{name}, and attempts from then on are recorded"
            );
        };
        let which = match active.iter().all(|recording| recording.id == 0) {
            true => "for all pods",
            false => "GET /apis/v1/debug says for which pods",
        };
        format!(
            "flag {name} is on since {first} ({which}), and there was not {of} since: records come with the next one"
        )
    }

    /// Returns whether a recording of the flag is active.
    #[inline]
    pub fn is_on(&self, flag: Flag, now: Now) -> bool {
        self.state().active.iter().any(|r| r.flag == flag && !r.is_due(now))
    }

    /// Returns the changes in the audit, newest first, and how many were pushed out.
    #[inline]
    pub fn audit(&self, now: Now) -> (Vec<debug::SwitchChange>, u64) {
        self.expire(now);
        let state = self.state();
        (state.audit.bodies(), state.audit.dropped())
    }

    /// Returns the last change of a flag if it turned a recording off because of its cost.
    #[inline]
    pub fn shut_off(&self, flag: &str) -> Option<Change> {
        self.state().audit.last_of(flag).filter(|c| c.why == Why::OverBudget).cloned()
    }

    fn set_raw(&self, flag: Flag, value: &str, rows: usize, by: &Setter) {
        let mut state = self.state();
        let old = state.active.iter().find(|r| r.flag == flag && r.id == 0).cloned();
        let recording = Arc::new(Recording {
            id: 0,
            flag,
            value: value.into(),
            rows,
            scope: Scope::default(),
            owner: "global".into(),
            set_by: by.from.as_str().into(),
            set_at: by.now,
            expires: None,
            most: None,
            before: None,
            records: Default::default(),
            ended: Default::default(),
        });
        state.audit.push(Change::begin(&recording, old.as_deref()));
        let is_off = value == flag.off();
        self.replace(&mut state, old.as_ref(), (!is_off).then_some(recording));
    }

    /// Replaces one recording with another, either of which may be absent, and updates the atomics.
    fn replace(&self, state: &mut State, old: Option<&Arc<Recording>>, new: Option<Arc<Recording>>) {
        let active = Arc::make_mut(&mut state.active);
        if let Some(old) = old {
            old.ended.store(true, Ordering::Relaxed);
            active.retain(|r| !Arc::ptr_eq(r, old));
        }
        active.extend(new);
        active.sort_by_key(|r| (r.id, r.flag));
        let raw = |flag| active.iter().find(|r| r.flag == flag && r.id == 0);
        self.top_n_scores.store(raw(Flag::Scores).map_or(0, |r| r.rows), Ordering::Relaxed);
        self.filter_failures.store(raw(Flag::Failures).is_some(), Ordering::Relaxed);
        self.armed.store(active.iter().filter(|r| r.flag.records()).count(), Ordering::Relaxed);
        self.timed.store(active.iter().filter(|r| r.expires.is_some()).count(), Ordering::Relaxed);
    }

    #[inline]
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests;
