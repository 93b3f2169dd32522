//! What the edge tells the core: decoded objects, in the three shapes of a watch, and reports.
//!
//! `Reset` carries a complete list and is applied as a difference, so a relist costs what changed.

use std::sync::Arc;

use pellucid_model::effect::EffectReport;
use pellucid_model::{Name, Node, Object, ObjectKind, Pod, PodKey};

use crate::objects::ObjectKey;

/// An object the API server accepts but we cannot read. It is shown, never guessed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// `Pod`, `Node`, or the name of an [`ObjectKind`].
    pub kind: &'static str,
    /// Namespace, empty for kinds without.
    pub namespace: Name,
    /// Name.
    pub name: Arc<str>,
    /// uid, when that could be read.
    pub uid: Arc<str>,
    /// `spec.schedulerName` of a pod, when that could be read: only our pods get a condition.
    pub scheduler_name: Option<Name>,
    /// Whether it is a pod with a `spec.nodeName`: then it waits for nothing.
    pub is_bound: bool,
    /// Path of the field that cannot be read, such as `spec.containers[0].resources.requests.cpu`.
    pub field: Arc<str>,
    /// Its value.
    pub value: Arc<str>,
    /// What is wrong with it.
    pub problem: Arc<str>,
}

/// One thing that happened outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// A pod was added or changed. Terminal pods come too, unless the watch leaves them out.
    PodApplied(Arc<Pod>),
    /// A pod is gone.
    PodDeleted(PodKey),
    /// All pods there are.
    PodsReset {
        /// The readable ones.
        pods: Vec<Arc<Pod>>,
        /// The others.
        quarantined: Vec<Quarantined>,
    },
    /// A node was added or changed.
    NodeApplied(Arc<Node>),
    /// A node is gone.
    NodeDeleted(Name),
    /// All nodes there are.
    NodesReset {
        /// The readable ones.
        nodes: Vec<Arc<Node>>,
        /// The others.
        quarantined: Vec<Quarantined>,
    },
    /// An object of another kind was added or changed.
    ObjectApplied(Arc<Object>),
    /// One is gone.
    ObjectDeleted(ObjectKind, ObjectKey),
    /// All objects of a kind there are.
    ObjectsReset {
        /// Kind.
        kind: ObjectKind,
        /// The readable ones.
        objects: Vec<Arc<Object>>,
        /// The others.
        quarantined: Vec<Quarantined>,
    },
    /// An object changed into something we cannot read. What we knew of it no longer holds.
    Quarantined(Quarantined),
    /// What came of an effect.
    Report(EffectReport),
}
