//! Effects: the writes that a pure room asks for, as data, and what came of them.
//!
//! The core never writes to the cluster. It orders an effect; `kubernetes/` carries it out, once, and
//! reports an [`EffectReport`] on a lane of its own. A report for a closed attempt is only an observation.

use std::sync::Arc;

use crate::model::{Name, PodKey};

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

/// Sets condition `PodScheduled=False` of a pod. Only the newest one per pod matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionOrder {
    /// Pod.
    pub pod: PodRef,
    /// `Unschedulable`, `SchedulingGated` or `SchedulerError`.
    pub reason: &'static str,
    /// Message for people, in kube-scheduler's grammar.
    pub message: Arc<str>,
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
    /// Set a pod's condition.
    Condition(ConditionOrder),
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
}
