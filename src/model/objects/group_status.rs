//! The status fields and phases that each PodGroup API has.
//!
//! The five APIs differ in both. This table decides what is written: two statuses that are equal in a group's fields
//! need no write. `kubernetes::group_patch` knows the wire format.

use crate::ObjectKind;
use crate::gang::{GroupPhase, GroupStatus};

/// Which fields an API group has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFields {
    /// `running`, `succeeded`, `failed` and a phase.
    pub counts: bool,
    /// `scheduled`.
    pub scheduled: bool,
    /// `occupiedBy` and `scheduleStartTime`.
    pub occupied: bool,
    /// `conditions`.
    pub condition: bool,
}

impl GroupFields {
    /// Returns the fields that a kind of PodGroup has; other kinds have none.
    pub fn of(kind: ObjectKind) -> Self {
        let none = Self { counts: false, scheduled: false, occupied: false, condition: false };
        match kind {
            ObjectKind::PodGroupX => Self { counts: true, occupied: true, ..none },
            ObjectKind::PodGroupSigs => Self { counts: true, scheduled: true, occupied: true, ..none },
            ObjectKind::PodGroupIncubator | ObjectKind::PodGroupSigsDev => {
                Self { counts: true, condition: true, ..none }
            }
            ObjectKind::PodGroupNative => Self { condition: true, ..none },
            _ => none,
        }
    }
}

impl GroupPhase {
    /// Returns the phase that an API group has in place of this one, or `None` when it has no phases (native).
    pub fn held_by(self, kind: ObjectKind) -> Option<Self> {
        match kind {
            ObjectKind::PodGroupSigs => Some(self),
            ObjectKind::PodGroupX => Some(match self {
                Self::PreScheduling | Self::Scheduled => Self::Scheduling,
                other => other,
            }),
            // Running means that the quorum has its nodes.
            ObjectKind::PodGroupIncubator | ObjectKind::PodGroupSigsDev => Some(match self {
                Self::Scheduled | Self::Running | Self::Finished => Self::Running,
                Self::Unknown => Self::Unknown,
                Self::Pending | Self::PreScheduling | Self::Scheduling | Self::Failed => Self::Pending,
            }),
            _ => None,
        }
    }
}

impl GroupStatus {
    /// Returns this status reduced to what an API group can hold. A status read from that group stays unchanged.
    pub fn held_by(&self, kind: ObjectKind) -> Self {
        let fields = GroupFields::of(kind);
        let count = |n: u32| if fields.counts { n } else { 0 };
        Self {
            phase: self.phase.and_then(|phase| phase.held_by(kind)),
            occupied_by: if fields.occupied { self.occupied_by.clone() } else { "".into() },
            scheduled: if fields.scheduled { self.scheduled } else { 0 },
            running: count(self.running),
            succeeded: count(self.succeeded),
            failed: count(self.failed),
            schedule_start: self.schedule_start.filter(|_| fields.occupied),
            condition: self.condition.clone().filter(|_| fields.condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gang::GroupCondition;

    #[test]
    fn each_api_group_has_its_own_phases() {
        use GroupPhase::{Failed, Finished, Pending, PreScheduling, Running, Scheduled, Scheduling, Unknown};
        // The phase in the state, then in x-k8s, sigs and kube-batch.
        for (phase, x, sigs, batch) in [
            (Pending, Pending, Pending, Pending),
            (PreScheduling, Scheduling, PreScheduling, Pending),
            (Scheduling, Scheduling, Scheduling, Pending),
            (Scheduled, Scheduling, Scheduled, Running),
            (Running, Running, Running, Running),
            (Unknown, Unknown, Unknown, Unknown),
            (Finished, Finished, Finished, Running),
            (Failed, Failed, Failed, Pending),
        ] {
            for (kind, want) in [
                (ObjectKind::PodGroupX, Some(x)),
                (ObjectKind::PodGroupSigs, Some(sigs)),
                (ObjectKind::PodGroupIncubator, Some(batch)),
                (ObjectKind::PodGroupSigsDev, Some(batch)),
                (ObjectKind::PodGroupNative, None),
            ] {
                assert_eq!(phase.held_by(kind), want, "{phase:?} in {kind:?}");
                assert_eq!(want.and_then(|p| p.held_by(kind)), want, "{want:?} again in {kind:?}");
            }
        }
    }

    #[test]
    fn fields_that_an_api_group_lacks_are_left_out_and_what_is_left_stays() {
        let condition = GroupCondition {
            kind: "PodGroupScheduled",
            is_true: true,
            reason: "Scheduled".into(),
            message: "".into(),
        };
        let all = GroupStatus {
            phase: Some(GroupPhase::Scheduled),
            occupied_by: "ns/job".into(),
            scheduled: 4,
            running: 3,
            succeeded: 2,
            failed: 1,
            schedule_start: Some(7),
            condition: Some(condition.clone()),
        };
        let without = |condition| GroupStatus { condition, ..all.clone() };
        let none = GroupStatus::default();
        let counts = GroupStatus { running: 3, succeeded: 2, failed: 1, ..none.clone() };
        for (kind, want) in [
            (ObjectKind::PodGroupSigs, without(None)),
            (
                ObjectKind::PodGroupX,
                GroupStatus { phase: Some(GroupPhase::Scheduling), scheduled: 0, ..without(None) },
            ),
            (
                ObjectKind::PodGroupSigsDev,
                GroupStatus {
                    phase: Some(GroupPhase::Running),
                    condition: Some(condition.clone()),
                    ..counts.clone()
                },
            ),
            (ObjectKind::PodGroupNative, GroupStatus { condition: Some(condition.clone()), ..none.clone() }),
            (ObjectKind::Service, none),
        ] {
            assert_eq!(all.held_by(kind), want, "{kind:?}");
            assert_eq!(want.held_by(kind), want, "{kind:?}");
        }
    }
}
