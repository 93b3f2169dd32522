//! `leaderElection`: which of several instances schedules.
//!
//! Read and validated like in kube-scheduler. Whether leaders are elected when nobody says so depends on where the
//! scheduler runs, which this room does not know.

use std::time::Duration;

use pellucid_model::duration;
use serde_json::{Value, json};

use super::reader::{Cursor, Diagnostics};

const FIELDS: &[&str] = &[
    "leaderElect",
    "leaseDuration",
    "renewDeadline",
    "retryPeriod",
    "resourceLock",
    "resourceName",
    "resourceNamespace",
];

/// The only kind of lock object that Kubernetes still supports.
const LEASES: &str = "leases";

/// Parameters of leader election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether to schedule only while holding the lease. `None` when neither the file nor a flag says it.
    pub leader_elect: Option<bool>,
    /// Time after the last renewal before other candidates take the lease.
    pub lease_duration: Duration,
    /// Time for which the holder tries to renew before it gives up the lease.
    pub renew_deadline: Duration,
    /// Wait between two attempts to acquire or renew.
    pub retry_period: Duration,
    /// Kind of the lock object; must be `leases` unless election is turned off.
    pub resource_lock: String,
    /// Name of the lock object.
    pub resource_name: String,
    /// Namespace of the lock object.
    pub resource_namespace: String,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: None,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_lock: LEASES.to_owned(),
            resource_name: super::DEFAULT_SCHEDULER_NAME.to_owned(),
            resource_namespace: "kube-system".to_owned(),
        }
    }
}

impl LeaderElection {
    /// Reads the object. Reports durations that do not fit together unless election is turned off explicitly.
    pub(super) fn read(cursor: &Cursor<'_>, diagnostics: &mut Diagnostics) -> Self {
        let fields = cursor.object(FIELDS, diagnostics);
        let default = Self::default();
        let asked = fields.get("leaderElect").and_then(|c| c.boolean(diagnostics));
        let before = diagnostics.problems.len();
        let mut duration =
            |name, default| fields.get(name).and_then(|c| c.duration(diagnostics)).unwrap_or(default);
        let lease_duration = duration("leaseDuration", default.lease_duration);
        let renew_deadline = duration("renewDeadline", default.renew_deadline);
        let retry_period = duration("retryPeriod", default.retry_period);
        let are_read = diagnostics.problems.len() == before;
        let mut text = |name, default| {
            let given = fields.get(name).and_then(|c| c.string(diagnostics)).filter(|text| !text.is_empty());
            given.map_or(default, str::to_owned)
        };
        let read = Self {
            leader_elect: asked,
            lease_duration,
            renew_deadline,
            retry_period,
            resource_lock: text("resourceLock", default.resource_lock),
            resource_name: text("resourceName", default.resource_name),
            resource_namespace: text("resourceNamespace", default.resource_namespace),
        };
        if asked != Some(false) {
            let location =
                |name: &str| fields.get(name).map_or_else(|| cursor.at.below(name), |c| c.at.clone());
            let problems = read.problems().into_iter();
            for (field, message) in problems.filter(|(field, _)| are_read || *field == "resourceLock") {
                diagnostics.add(&location(field), message);
            }
        }
        read
    }

    /// Returns what is wrong with the parameters: fields with messages. Nobody asks when leaders are not elected.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let Self { lease_duration, renew_deadline, retry_period, .. } = self;
        let show = |duration: &Duration| duration::show(*duration);
        let mut problems = Vec::new();
        if lease_duration <= renew_deadline {
            let (lease, renew) = (show(lease_duration), show(renew_deadline));
            let message = format!("must be longer than renewDeadline, {renew}, got {lease}");
            problems.push(("leaseDuration", message));
        }
        // Waits between attempts are jittered by a fifth, and the last wait must end before the deadline.
        if renew_deadline.as_nanos() * 5 <= retry_period.as_nanos() * 6 {
            let (renew, retry) = (show(renew_deadline), show(retry_period));
            let message = format!("must be longer than 1.2 times retryPeriod, {retry}, got {renew}");
            problems.push(("renewDeadline", message));
        }
        if retry_period.is_zero() {
            problems.push(("retryPeriod", "must be longer than 0s, got 0s".to_owned()));
        }
        if self.resource_lock != LEASES {
            problems.push(("resourceLock", format!("must be {LEASES:?}, got {:?}", self.resource_lock)));
        }
        problems
    }

    /// Renders the object for the effective document.
    pub(super) fn document(&self) -> Value {
        json!({
            "leaderElect": self.leader_elect.unwrap_or(false),
            "leaseDuration": duration::show(self.lease_duration),
            "renewDeadline": duration::show(self.renew_deadline),
            "retryPeriod": duration::show(self.retry_period),
            "resourceLock": self.resource_lock,
            "resourceName": self.resource_name,
            "resourceNamespace": self.resource_namespace,
        })
    }
}
