//! The election, as a state machine without clock and requests: what is known of the Lease and the time go in, the next
//! request and the time until which this instance may write come out.
//!
//! Times are on one monotonic clock of this process. *Invariant:* of all instances that follow this machine, at most one
//! may write at any moment, whatever is delayed or lost, as long as no clock runs faster than another by more than
//! `leaseDuration / renewDeadline`. The holder counts from when it sent the renewal, the others from when they saw it;
//! every write of the Lease names the version it replaces.

use std::time::Duration;

use crate::lease::record::Record;

/// Longest time between two looks of a standby at the Lease, so that one that was released is taken at once.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Waits of standbys are prolonged by up to this part, so that they do not all look at once.
const JITTER: f64 = 0.2;

/// Who takes part, and the three times of leader election.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Name of this instance in the Lease, unlike that of every other process.
    pub identity: String,
    /// How long the Lease is left alone after its last change.
    pub lease_duration: Duration,
    /// How long after sending its last successful renewal a holder may write; shorter than `lease_duration`.
    pub renew_deadline: Duration,
    /// Time between two renewals, and after a failed request.
    pub retry_period: Duration,
}

/// The Lease as it was last seen.
#[derive(Clone, Debug)]
struct Seen {
    record: Record,
    version: String,
    /// When the record was first seen as it is.
    since: Duration,
}

/// What this instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Standby,
    /// It holds the Lease and may write until then.
    Holding {
        until: Duration,
    },
    /// It has held or released the Lease and takes part no more.
    Over,
}

/// A request that the election has to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing before this time.
    Wait(Duration),
    /// Read the Lease.
    Read,
    /// Write the Lease.
    Claim(Claim),
    /// The Lease is lost: it could not be renewed in time, or somebody else holds it.
    Lost,
}

/// How the Lease is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The version that is replaced; `None` to create the Lease.
    pub version: Option<String>,
    /// `leaseTransitions`.
    pub transitions: i64,
    /// `acquireTime`, if this instance has held the Lease before; otherwise it is now.
    pub acquired: Option<String>,
}

/// One instance's part in the election.
#[derive(Clone, Debug)]
pub struct Election {
    terms: Terms,
    phase: Phase,
    seen: Option<Seen>,
    /// Whether the Lease existed when it was last read or written.
    exists: bool,
    /// When the next request is due.
    due: Duration,
    /// Whether the next request is a write. Otherwise the Lease must be read first.
    may_claim: bool,
}

impl Election {
    /// Begins as a standby that reads the Lease at once.
    pub fn new(terms: Terms) -> Self {
        let due = Duration::ZERO;
        Self { terms, phase: Phase::Standby, seen: None, exists: false, due, may_claim: false }
    }

    /// Returns the terms.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns until when this instance may write, if it holds the Lease.
    pub fn may_write_until(&self) -> Option<Duration> {
        if let Phase::Holding { until } = self.phase { Some(until) } else { None }
    }

    /// Returns the record as it was last seen, and since when.
    pub fn seen(&self) -> Option<(&Record, Duration)> {
        self.seen.as_ref().map(|seen| (&seen.record, seen.since))
    }

    /// Returns what to do now.
    pub fn next(&mut self, now: Duration) -> Act {
        let until = match self.phase {
            Phase::Over => return Act::Lost,
            Phase::Holding { until } if until <= now => {
                self.phase = Phase::Over;
                return Act::Lost;
            }
            Phase::Holding { until } => Some(until),
            Phase::Standby => None,
        };
        if now < self.due {
            return Act::Wait(until.map_or(self.due, |until| until.min(self.due)));
        }
        if self.may_claim { Act::Claim(self.claim()) } else { Act::Read }
    }

    /// Takes what a read found, `None` being no Lease, with its version. `chance` is random, from 0 to 1.
    pub fn read(&mut self, now: Duration, found: Option<(Record, String)>, chance: f64) {
        self.exists = found.is_some();
        if let Some((record, version)) = found {
            match &mut self.seen {
                Some(seen) if seen.record == record => seen.version = version,
                _ => self.seen = Some(Seen { record, version, since: now }),
            }
        }
        let is_mine = self.seen.as_ref().is_some_and(|seen| seen.record.holder == self.terms.identity);
        if self.may_write_until().is_some() && self.exists && !is_mine {
            self.phase = Phase::Over;
            return;
        }
        match self.expires().filter(|expires| *expires > now) {
            // Also when the Lease is gone: whoever held it may write until then.
            Some(expires) => {
                let pause = LOOK_EVERY.min(self.terms.retry_period).mul_f64(1.0 + JITTER * chance);
                (self.due, self.may_claim) = (expires.min(now + pause), false);
            }
            None => (self.due, self.may_claim) = (now, true),
        }
    }

    /// Returns when the Lease of another holder expires.
    fn expires(&self) -> Option<Duration> {
        let seen = self.seen.as_ref()?;
        let is_free = seen.record.holder.is_empty() || seen.record.holder == self.terms.identity;
        let duration = seen.record.duration.unwrap_or(self.terms.lease_duration);
        (!is_free).then_some(seen.since + duration)
    }

    fn claim(&self) -> Claim {
        let Some(seen) = self.seen.as_ref().filter(|_| self.exists) else {
            return Claim { version: None, transitions: 0, acquired: None };
        };
        let is_mine = seen.record.holder == self.terms.identity;
        Claim {
            version: Some(seen.version.clone()),
            transitions: seen.record.transitions + i64::from(!is_mine),
            acquired: is_mine.then(|| seen.record.acquired.clone()),
        }
    }

    /// Takes the answer to a claim that was sent at `sent`: the Lease is this instance's.
    pub fn claimed(&mut self, (sent, now): (Duration, Duration), record: Record, version: String) {
        self.seen = Some(Seen { record, version, since: now });
        self.exists = true;
        let until = sent + self.terms.renew_deadline;
        if now < until {
            let known = self.may_write_until().unwrap_or_default();
            self.phase = Phase::Holding { until: until.max(known) };
        }
        (self.due, self.may_claim) = (sent + self.terms.retry_period, true);
    }

    /// Takes a refusal: the Lease has changed since it was seen. It is read at once.
    pub fn conflicted(&mut self, now: Duration) {
        (self.due, self.may_claim) = (now, false);
    }

    /// Takes a failed request, whose effect is unknown. The Lease is read after a while. `chance` is random, from 0 to 1.
    pub fn failed(&mut self, now: Duration, chance: f64) {
        let pause = self.terms.retry_period.mul_f64(1.0 + JITTER * chance);
        (self.due, self.may_claim) = (now + pause, false);
    }

    /// Gives up the right to write. Returns the claim that releases the Lease, if this instance holds it. Nothing may be
    /// written from now on, so the caller stops its writers first.
    pub fn release(&mut self) -> Option<Claim> {
        let is_holding = self.may_write_until().is_some();
        self.phase = Phase::Over;
        is_holding.then(|| self.claim())
    }
}
