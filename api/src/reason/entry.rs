//! What the registry says of a reason.
//!
//! Not here: the entries themselves, and what a reason settles, which stands with the examples.

use super::ReasonCode;

/// Who can usually resolve a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolver {
    /// The author of the pod.
    PodOwner,
    /// The administrator of the cluster.
    ClusterAdmin,
    /// Nobody needs to act: pods end and nodes join over time.
    Time,
    /// The person who configures the scheduler.
    SchedulerAdmin,
}

impl Resolver {
    /// Returns who can resolve the same where no pod's end would.
    pub fn never(self) -> Self {
        if self == Self::Time { Self::PodOwner } else { self }
    }

    /// Returns the name used in the REST API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PodOwner => "pod owner",
            Self::ClusterAdmin => "cluster admin",
            Self::Time => "time",
            Self::SchedulerAdmin => "scheduler admin",
        }
    }
}

/// One entry of the registry.
#[derive(Clone, Copy, Debug)]
pub struct ReasonEntry {
    /// The code that the entry describes.
    pub code: ReasonCode,
    /// The plugin (or `Scheduler`) that gives the reason.
    pub plugin: &'static str,
    /// What the reason means.
    pub meaning: &'static str,
    /// What would resolve it.
    pub remedy: &'static str,
    /// What would resolve it where no pod's end would: the remedy without what only time brings.
    pub never: &'static str,
    /// Who can usually apply the remedy.
    pub resolver: Resolver,
    /// The message; `{}` is replaced by the subject (a resource, a list of gates, ...).
    pub message: &'static str,
}
