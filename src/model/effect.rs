//! Effects: the writes that a pure room asks for, as data, and what came of them.
//!
//! The core never writes to the cluster. It orders an effect; `kubernetes/` carries it out, once, and
//! reports an [`EffectReport`] on a lane of its own. A report for a closed attempt is only an observation.

use std::sync::Arc;

use crate::gang::GroupStatus;
use crate::{GangKey, Name, ObjectKind, PodKey};

/// Number of an effect, unique while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EffectId(pub u64);

/// The pod an effect is about; the uid is a precondition of every write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// Namespace and name.
    pub key: PodKey,
    /// uid.
    pub uid: Arc<str>,
}

/// An order to bind a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindOrder {
    /// Number of this effect.
    pub id: EffectId,
    /// Pod.
    pub pod: PodRef,
    /// Node.
    pub node: Name,
    /// The attempt (scheduling cycle) that decided it.
    pub attempt: u64,
}

/// What came of a bind order. An outcome that was unknown at first (time-out, 503 after commit, dropped
/// connection) has been settled by reading the pod before it is reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    /// The pod is bound to the node we asked for.
    Bound,
    /// The pod is bound, but to another node: somebody else placed it.
    BoundElsewhere {
        /// Where it is.
        node: Name,
    },
    /// The pod, or the pod with our uid, is gone.
    Gone,
    /// The API server refused.
    Refused {
        /// HTTP status.
        status: u16,
        /// `Status.reason`.
        reason: Arc<str>,
        /// `Status.message`.
        message: Arc<str>,
    },
}

/// Writes to a pod's status what we know of it: condition `PodScheduled=False`, `nominatedNodeName`, or
/// both in one request. Of several for one pod only the newest of each part matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusOrder {
    /// Pod.
    pub pod: PodRef,
    /// The condition; `None` leaves it.
    pub condition: Option<ConditionText>,
    /// The nomination; `None` leaves it, `Some(None)` clears it.
    pub nomination: Option<Option<Name>>,
}

/// What condition `PodScheduled=False` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionText {
    /// `Unschedulable`, `SchedulingGated` or `SchedulerError`.
    pub reason: &'static str,
    /// Message for people, in kube-scheduler's grammar.
    pub message: Arc<str>,
}

/// An order to evict a victim of preemption: condition `DisruptionTarget`, then a delete with the uid as a
/// precondition and the pod's own grace period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictOrder {
    /// Number of this effect.
    pub id: EffectId,
    /// The victim.
    pub victim: PodRef,
    /// The pod it makes room for.
    pub preemptor: PodRef,
    /// Message of condition `DisruptionTarget`.
    pub message: Arc<str>,
}

/// What came of an evict order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictOutcome {
    /// The API server accepted the delete; the pod may take its time to end.
    Deleted,
    /// The victim, or the pod with that uid, was gone already.
    Gone,
    /// The API server refused, or could not be reached.
    Refused {
        /// HTTP status, 0 when there was no answer.
        status: u16,
        /// `Status.message`.
        message: Arc<str>,
    },
}

/// A write that binding a volume needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VolumeWrite {
    /// Sets `spec.claimRef` of a volume and annotation `pv.kubernetes.io/bound-by-controller`, so that the
    /// volume controller binds the two.
    BindVolume {
        /// Volume.
        volume: Name,
        /// Its `resourceVersion`, a precondition.
        resource_version: Arc<str>,
        /// Namespace of the claim.
        namespace: Name,
        /// Name of the claim.
        claim: Name,
        /// uid of the claim.
        claim_uid: Arc<str>,
    },
    /// Sets annotation `volume.kubernetes.io/selected-node` of a claim, so that its provisioner makes a volume.
    SelectNode {
        /// Namespace of the claim.
        namespace: Name,
        /// Name of the claim.
        claim: Name,
        /// Its `resourceVersion`, a precondition.
        resource_version: Arc<str>,
        /// Node.
        node: Name,
    },
}

/// An order for such a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeOrder {
    /// Number of this effect.
    pub id: EffectId,
    /// The pod it is for.
    pub pod: PodRef,
    /// What to write.
    pub write: VolumeWrite,
}

/// What came of a volume order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeOutcome {
    /// It is written. The watch brings the object.
    Written,
    /// The API server refused (409: the object changed meanwhile), or could not be reached.
    Refused {
        /// HTTP status, 0 when there was no answer.
        status: u16,
        /// `Status.message`.
        message: Arc<str>,
    },
}

/// Writes the status of a PodGroup. Of several for one group only the newest matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatusOrder {
    /// API group.
    pub kind: ObjectKind,
    /// Namespace and name.
    pub group: GangKey,
    /// uid; a precondition.
    pub uid: Arc<str>,
    /// What to write.
    pub status: GroupStatus,
}

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something expected happened.
    Normal,
    /// Something is wrong.
    Warning,
}

/// An event (`events.k8s.io/v1`) about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOrder {
    /// Pod it regards.
    pub pod: PodRef,
    /// Severity.
    pub kind: EventType,
    /// `Scheduled`, `FailedScheduling`, ...
    pub reason: &'static str,
    /// `Binding`, `Scheduling`, ...
    pub action: &'static str,
    /// Note for people; cut to 1,024 characters when written.
    pub note: Arc<str>,
}

/// A write or a wait that a pure room asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Bind a pod.
    Bind(BindOrder),
    /// Write to a pod's status.
    Status(StatusOrder),
    /// Evict a victim.
    Evict(EvictOrder),
    /// Write what binding a volume needs.
    Volume(VolumeOrder),
    /// Write the status of a PodGroup.
    GroupStatus(GroupStatusOrder),
    /// Write an event.
    Event(EventOrder),
}

/// The report on an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectReport {
    /// The request of a bind order left for the API server.
    BindSent {
        /// Number of the order.
        id: EffectId,
        /// uid of the pod.
        uid: Arc<str>,
    },
    /// A bind order is settled.
    BindDone {
        /// Number of the order.
        id: EffectId,
        /// uid of the pod.
        uid: Arc<str>,
        /// What came of it.
        outcome: BindOutcome,
    },
    /// An evict order is settled.
    EvictDone {
        /// Number of the order.
        id: EffectId,
        /// uid of the victim.
        uid: Arc<str>,
        /// What came of it.
        outcome: EvictOutcome,
    },
    /// A volume order is settled.
    VolumeDone {
        /// Number of the order.
        id: EffectId,
        /// uid of the pod.
        uid: Arc<str>,
        /// What came of it.
        outcome: VolumeOutcome,
    },
}
