//! Effects: the writes that pure rooms order, as data, and their outcomes.
//!
//! The scheduling thread never writes to the cluster. It orders an effect; `kubernetes/` carries it out once and sends
//! an [`EffectReport`] back as an input. A report for an attempt that has ended changes nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::gang::GroupStatus;
use crate::pod::StandsFor;
use crate::{GangKey, InPage, Name, ObjectKind, Pod, PodKey};

pub use crate::object_write::{ObjectOrder, ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome};

/// Number of an effect, unique within the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EffectId(pub u64);

/// The pod an effect is about; the uid is a precondition of every write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// Namespace and name.
    pub key: PodKey,
    /// The pod's uid.
    pub uid: Arc<str>,
}

impl PodRef {
    /// Returns the reference to a pod.
    pub fn of(pod: &Pod) -> Self {
        Self { key: pod.key.clone(), uid: pod.uid.clone() }
    }
}

/// Annotations and labels that a Binding adds to its pod, sorted by key. The API server copies them in the same write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingMarks {
    /// Annotations.
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
    /// Labels.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
}

impl BindingMarks {
    /// Makes marks of one annotation.
    pub fn annotation(key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        Self { annotations: BTreeMap::from([(key.into(), value.into())]), labels: BTreeMap::new() }
    }

    /// Takes over the marks of another hold. Fails with the first key that both give another value.
    pub fn add(&mut self, other: &Self) -> Result<(), Arc<str>> {
        for (own, others) in [(&mut self.annotations, &other.annotations), (&mut self.labels, &other.labels)]
        {
            for (key, value) in others {
                if own.insert(key.clone(), value.clone()).is_some_and(|old| old != *value) {
                    return Err(key.clone());
                }
            }
        }
        Ok(())
    }
}

/// The marks of an order, which are made when they are read first: their text is for who writes the Binding, not for the
/// scheduling thread.
#[derive(Clone)]
pub struct DueMarks(Arc<Due>);

/// Marks with what makes them, in one piece of memory: most pods with a hold have one.
struct Due<F: ?Sized = dyn Fn() -> BindingMarks + Send + Sync> {
    made: OnceLock<BindingMarks>,
    make: F,
}

impl DueMarks {
    /// Makes marks of what says how they are made. It must say the same each time.
    pub fn new(make: impl Fn() -> BindingMarks + Send + Sync + 'static) -> Self {
        Self(Arc::new(Due { made: OnceLock::new(), make }))
    }
}

impl Deref for DueMarks {
    type Target = BindingMarks;
    fn deref(&self) -> &BindingMarks {
        self.0.made.get_or_init(|| (self.0.make)())
    }
}

impl fmt::Debug for DueMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BindingMarks::fmt(self, f)
    }
}

impl PartialEq for DueMarks {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for DueMarks {}

/// An order to bind a pod.
#[derive(Clone, Debug)]
pub struct BindOrder {
    /// Number of this effect.
    pub id: EffectId,
    /// The pod to bind, as it was decided on. Its name is not copied: no decision reads it, so it lies far away.
    pub pod: Arc<Pod>,
    /// Name of the node to bind it to.
    pub node: InPage<Name>,
    /// What the Binding adds to the pod, if anything.
    pub marks: Option<DueMarks>,
    /// Number of the attempt (scheduling cycle) that decided it.
    pub attempt: u64,
}

impl PartialEq for BindOrder {
    fn eq(&self, other: &Self) -> bool {
        let Self { id, pod, node, marks, attempt } = self;
        (id, &pod.key, &pod.uid, &**node, marks, attempt)
            == (&other.id, &other.pod.key, &other.pod.uid, &*other.node, &other.marks, &other.attempt)
    }
}

impl Eq for BindOrder {}

/// The outcome of a bind order. When the outcome was unknown at first (time-out, 503 after commit, dropped connection),
/// the pod was read back to resolve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    /// The pod is bound to the node we asked for.
    Bound,
    /// The pod is bound to another node: somebody else placed it.
    BoundElsewhere {
        /// Name of the node that the pod is bound to.
        node: Name,
    },
    /// The pod, or the pod with our uid, is gone.
    Gone,
    /// The API server refused the binding.
    Refused {
        /// HTTP status.
        status: u16,
        /// `Status.reason`.
        reason: Arc<str>,
        /// `Status.message`.
        message: Arc<str>,
    },
}

/// An order to write to a pod's status: condition `PodScheduled=False`, `nominatedNodeName`, or both in one request. Of
/// several orders for one pod only the newest of each part matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusOrder {
    /// The pod to write to.
    pub pod: PodRef,
    /// The condition; `None` leaves it unchanged.
    pub condition: Option<ConditionText>,
    /// The nomination; `None` leaves it unchanged, `Some(None)` clears it.
    pub nomination: Option<Option<Name>>,
}

/// Reason and message of condition `PodScheduled=False`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionText {
    /// `Unschedulable`, `SchedulingGated` or `SchedulerError`.
    pub reason: &'static str,
    /// Message in kube-scheduler's grammar.
    pub message: Arc<str>,
}

/// An order to evict a victim of preemption: sets condition `DisruptionTarget`, then deletes the pod with its uid as a
/// precondition and its own grace period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictOrder {
    /// Number of this effect.
    pub id: EffectId,
    /// The pod to evict.
    pub victim: PodRef,
    /// The pod that needs the room.
    pub preemptor: PodRef,
    /// Message of condition `DisruptionTarget`.
    pub message: Arc<str>,
}

/// The outcome of an evict order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvictOutcome {
    /// The API server accepted the delete; the pod may take time to terminate.
    Deleted,
    /// The victim, or the pod with that uid, was gone already.
    Gone,
    /// The API server refused the delete, or could not be reached.
    Refused {
        /// HTTP status; 0 when there was no response.
        status: u16,
        /// `Status.message`.
        message: Arc<str>,
    },
}

/// An order to write the status of a PodGroup. Of several orders for one group only the newest matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStatusOrder {
    /// The PodGroup's kind, which names its API group.
    pub kind: ObjectKind,
    /// Namespace and name of the PodGroup.
    pub group: GangKey,
    /// uid of the PodGroup, a precondition.
    pub uid: Arc<str>,
    /// The status to write.
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

/// An order to write an event (`events.k8s.io/v1`) about a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventOrder {
    /// The pod that the event regards, or which stands for the object that it regards.
    pub pod: PodRef,
    /// The object that the event regards, for a pod that stands for one.
    pub object: Option<Arc<StandsFor>>,
    /// `Normal` or `Warning`.
    pub kind: EventType,
    /// `Scheduled`, `FailedScheduling`, ...
    pub reason: &'static str,
    /// `Binding`, `Scheduling`, ...
    pub action: &'static str,
    /// The event's note; truncated to 1,024 characters when written.
    pub note: Arc<str>,
}

/// A write that a pure room orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Binds a pod.
    Bind(BindOrder),
    /// Writes to a pod's status.
    Status(StatusOrder),
    /// Evicts a victim.
    Evict(EvictOrder),
    /// Writes an object for a plugin.
    Object(ObjectOrder),
    /// Writes the status of a PodGroup.
    GroupStatus(GroupStatusOrder),
    /// Writes an event.
    Event(EventOrder),
}

/// A report on an effect, which the scheduling thread receives as an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectReport {
    /// The request of a bind order was sent to the API server.
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
        /// Its outcome.
        outcome: BindOutcome,
    },
    /// An evict order is settled.
    EvictDone {
        /// Number of the order.
        id: EffectId,
        /// uid of the victim.
        uid: Arc<str>,
        /// Its outcome.
        outcome: EvictOutcome,
    },
    /// An object order is settled.
    ObjectDone {
        /// Number of the order.
        id: EffectId,
        /// Its outcome.
        outcome: WriteOutcome,
    },
}
