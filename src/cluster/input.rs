//! Inputs of the scheduling thread: decoded objects as a watch delivers them, and reports on effects.
//!
//! A `Reset` carries a complete list and is applied as a difference, so a relist costs only what changed.

use std::sync::Arc;

use pellucid_model::effect::EffectReport;
use pellucid_model::{CustomKindRef, CustomObject, Name, Node, Object, ObjectKind, Pod, PodKey};

use crate::objects::ObjectKey;

/// An object that the API server accepts but this scheduler cannot read. It is reported, never guessed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// `Pod`, `Node`, or the name of an [`ObjectKind`].
    pub kind: &'static str,
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: Name,
    /// Name of the object.
    pub name: Arc<str>,
    /// The uid, or empty when it could not be read.
    pub uid: Arc<str>,
    /// `spec.schedulerName` of a pod, when it could be read; only pods of this scheduler get a condition.
    pub scheduler_name: Option<Name>,
    /// Whether the object is a pod with `spec.nodeName`, which no longer waits to be placed.
    pub is_bound: bool,
    /// Path of the unreadable field, such as `spec.containers[0].resources.requests.cpu`.
    pub field: Arc<str>,
    /// Value of that field.
    pub value: Arc<str>,
    /// What is wrong with the value.
    pub problem: Arc<str>,
}

/// One event from outside: a change that a watch reports, or the outcome of an effect.
#[derive(Clone, Debug)]
pub enum Input {
    /// A pod was added or changed. Includes terminal pods, unless the watch leaves them out.
    PodApplied(Arc<Pod>),
    /// A pod was deleted.
    PodDeleted(PodKey),
    /// The complete list of pods.
    PodsReset {
        /// Pods that were read.
        pods: Vec<Arc<Pod>>,
        /// Pods that could not be read.
        quarantined: Vec<Quarantined>,
    },
    /// A node was added or changed.
    NodeApplied(Arc<Node>),
    /// A node was deleted.
    NodeDeleted(Name),
    /// The complete list of nodes.
    NodesReset {
        /// Nodes that were read.
        nodes: Vec<Arc<Node>>,
        /// Nodes that could not be read.
        quarantined: Vec<Quarantined>,
    },
    /// An object of another kind was added or changed.
    ObjectApplied(Arc<Object>),
    /// An object of another kind was deleted.
    ObjectDeleted(ObjectKind, ObjectKey),
    /// The complete list of objects of one kind.
    ObjectsReset {
        /// The kind of every object in the list.
        kind: ObjectKind,
        /// Objects that were read.
        objects: Vec<Arc<Object>>,
        /// Objects that could not be read.
        quarantined: Vec<Quarantined>,
    },
    /// An object of a plugin's kind was added or changed.
    CustomApplied(Arc<CustomObject>),
    /// An object of a plugin's kind was deleted.
    CustomDeleted(CustomKindRef, ObjectKey),
    /// The complete list of objects of a plugin's kind.
    CustomReset {
        /// The kind of every object in the list.
        kind: CustomKindRef,
        /// Objects that were read.
        objects: Vec<Arc<CustomObject>>,
        /// Objects that could not be read.
        quarantined: Vec<Quarantined>,
    },
    /// The new version of an object cannot be read, so the last readable version no longer applies.
    Quarantined(Quarantined),
    /// The outcome of an effect.
    Report(EffectReport),
    /// This instance begins to lead, having taken all that a former leader wrote, or ceases to, and ends soon.
    Leading(bool),
}
