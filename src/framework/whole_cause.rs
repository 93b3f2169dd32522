//! Every reason for which a plugin refuses a node, where a filter may stop at the first. For explanations, never for a
//! decision.

use std::rc::Rc;

use pellucid_cluster::PodRecord;
use pellucid_model::NodeIdx;
use pellucid_model::cause::{Cause, Code, Reason};

use super::view::View;

/// One reason for which a node refuses a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReason {
    /// The reason. Its code may be that of the filter's cause; its subject may say more. Nodes share it, so that thousands
    /// of them cost no names.
    pub reason: Rc<Reason>,
    /// Whether the reason stays whichever pods leave the cluster.
    pub is_fixed: bool,
}

impl NodeReason {
    /// Makes a reason that goes when certain pods leave.
    #[inline]
    pub fn open(reason: impl Into<Rc<Reason>>) -> Self {
        Self { reason: reason.into(), is_fixed: false }
    }

    /// Makes a reason that stays whichever pods leave.
    #[inline]
    pub fn fixed(reason: impl Into<Rc<Reason>>) -> Self {
        Self { reason: reason.into(), is_fixed: true }
    }

    /// Returns the reasons of a cause that names all of them. They are fixed as its code says.
    pub fn of_cause(cause: &Cause) -> impl Iterator<Item = Self> {
        let is_fixed = cause.code == Code::UnschedulableAndUnresolvable;
        cause.reasons.iter().map(move |reason| Self { reason: reason.clone().into(), is_fixed })
    }
}

/// Adds every reason for which a node refuses a pod to a list; nothing for a node that takes the pod.
pub type EveryReason<'a> = Box<dyn Fn(NodeIdx, &mut Vec<NodeReason>) + 'a>;

/// Iterates over the pods on a node whose end would not give their room to others, in no particular order.
pub fn staying_on<'a>(view: View<'a>, node: NodeIdx) -> impl Iterator<Item = &'a PodRecord> {
    let cluster = view.cluster();
    let records = cluster.slot(node).pods.iter().filter_map(|id| cluster.pod(*id));
    records.filter(|record| !record.pod.can_leave())
}
