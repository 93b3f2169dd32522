//! What is known about this instance's part in leader election, for metrics, health checks and the log.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::Now;

use crate::writes::write_right::WriteRight;

/// What this instance is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Another instance holds the Lease, or nobody.
    #[default]
    Standby,
    /// This instance holds the Lease and waits for its watches to pass what the former holder wrote.
    CatchingUp,
    /// This instance holds the Lease and schedules.
    Leading,
    /// This instance gave the Lease up or lost it, and ends.
    Over,
}

/// State of leader election at one moment, as this instance sees it.
#[derive(Clone, Debug, Default)]
pub struct LeadershipReport {
    /// What this instance is.
    pub role: Role,
    /// The holder that the Lease names; empty when there is none.
    pub holder: Arc<str>,
    /// When this instance last sent a renewal that succeeded.
    pub renewed: Option<Now>,
    /// Time from when the former holder's last change was seen, or else from when the Lease was acquired, until this
    /// instance scheduled.
    pub hand_over: Option<Duration>,
    /// Time from acquiring the Lease until this instance scheduled.
    pub caught_up_in: Option<Duration>,
    /// Requests for the Lease that failed; a conflict is not a failure.
    pub failed_requests: u64,
    /// Text of the last failure.
    pub last_error: Option<Arc<str>>,
}

/// Shared view of leader election: the elector writes it.
#[derive(Debug)]
pub struct Leadership {
    /// Namespace and name of the Lease, as `namespace/name`.
    pub lease: String,
    /// Name of the Lease.
    pub name: String,
    /// Name of this instance in the Lease.
    pub identity: String,
    /// How long the Lease is left alone after its last change.
    pub lease_duration: Duration,
    /// Until when this instance may write.
    pub right: Arc<WriteRight>,
    pub(crate) report: Mutex<LeadershipReport>,
}

impl Leadership {
    /// Returns the current state.
    pub fn report(&self) -> LeadershipReport {
        self.report.lock().clone()
    }

    /// Returns whether this instance holds the Lease.
    pub fn is_holder(&self) -> bool {
        matches!(self.report.lock().role, Role::CatchingUp | Role::Leading)
    }

    /// Records a failed request for the Lease. Logs it when it says something new.
    pub(crate) fn failed(&self, error: &str) {
        let mut report = self.report.lock();
        report.failed_requests += 1;
        if report.last_error.as_deref() != Some(error) {
            tracing::warn!(lease = self.lease, error, "leader election: request failed, trying again");
            report.last_error = Some(error.into());
        }
    }

    /// Records the holder that the Lease names. Logs a new one.
    pub(crate) fn saw(&self, holder: &str) {
        let mut report = self.report.lock();
        report.last_error = None;
        if *report.holder != *holder {
            tracing::info!(lease = self.lease, holder, "leader election: the holder changed");
            report.holder = holder.into();
        }
    }
}
