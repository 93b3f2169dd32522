//! How a profile schedules gangs: what the plugin that is asked at Permit says about them.

use std::time::Duration;

/// The rules. Units are in the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangRules {
    /// How long members wait, or a gang may be short of pods, where neither gang nor dialect says
    /// (`permitWaitingTimeSeconds`).
    pub permit_wait: Duration,
    /// The least backoff of a gang that was refused or released (`podGroupBackoffSeconds`).
    pub backoff: Duration,
    /// A failed member of a NonStrict gang rejects the waiting ones when more than this share of the quorum is
    /// missing (`podGroupRejectPercentage`), in percent.
    pub reject_percentage: u8,
    /// A gang whose pods are all gone is forgotten after this long (`gangExpirationSeconds`).
    pub expiration: Duration,
    /// Gangs that may form a group (`maxGroupGangs`). A group is planned whole between two inputs, so it is bounded.
    pub max_group_gangs: u32,
    /// Pods that a group, or a gang alone, may have while it is short of its quorum (`maxGroupMembers`).
    pub max_group_members: u32,
    /// Whether the status of PodGroups is written (`controllerWorkers` above 0).
    pub writes_status: bool,
}

impl Default for GangRules {
    fn default() -> Self {
        Self {
            permit_wait: Duration::from_secs(60),
            backoff: Duration::ZERO,
            reject_percentage: 10,
            expiration: Duration::from_secs(600),
            max_group_gangs: 100,
            max_group_members: 10_000,
            writes_status: true,
        }
    }
}
