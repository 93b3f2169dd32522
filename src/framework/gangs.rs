//! How a profile schedules gangs, as a plugin at Permit says.

use std::time::Duration;

use pellucid_model::gang::MatchPolicy;

/// Gangs: says how a profile schedules gangs. The configuration has no such point: of the plugins that a profile enables
/// at Permit the first with a policy is heeded, and without one the pods of gangs are scheduled one by one.
pub trait GangPolicy: Send + Sync {
    /// Returns the rules. Invariant: the same at every call.
    fn rules(&self) -> GangRules;
}

/// The gang scheduling rules of a profile. The configuration's field names are given in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GangRules {
    /// How long members wait, or a gang may have too few pods, when neither gang nor dialect says
    /// (`permitWaitingTimeSeconds`).
    pub permit_wait: Duration,
    /// Minimum backoff of a gang that was refused or released (`podGroupBackoffSeconds`).
    pub backoff: Duration,
    /// Percentage of the quorum (`podGroupRejectPercentage`): when more than this is missing, a failed member of a
    /// NonStrict gang rejects the waiting ones.
    pub reject_percentage: u8,
    /// How long a gang is remembered after its last pod is gone (`gangExpirationSeconds`).
    pub expiration: Duration,
    /// Maximum number of gangs in a group (`maxGroupGangs`). A group is planned whole between two inputs, so it is
    /// bounded.
    pub max_group_gangs: u32,
    /// Maximum number of pods of a group, or of a single gang, while it is short of its quorum (`maxGroupMembers`).
    pub max_group_members: u32,
    /// How long members of Koordinator's dialect wait when none says; `None`: 600 s (`defaultTimeout`).
    pub gang_wait: Option<Duration>,
    /// The match policy of gangs of Koordinator's dialect that name none; `None`: once-satisfied (`defaultMatchPolicy`).
    pub match_policy: Option<MatchPolicy>,
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
            gang_wait: None,
            match_policy: None,
            writes_status: true,
        }
    }
}
