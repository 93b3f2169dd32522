//! What a plugin tells people about one pod beyond the causes of its refusals: where the pod stands, which changes could
//! help, and which of its groups the pod belongs to; and about one node, what of it no pending pod can use.
//!
//! Decisions never ask. Changes are proposals: the core tries each on a copy of the state before anybody is told of it.

use std::sync::Arc;

use pellucid_api::rest::BodySchema;
use pellucid_model::{CustomObject, Name, NodeIdx, Now, Object, Pod, PodKey, PodSpec};
use serde_json::Value;

use super::view::View;

/// A change that could make the plugin accept a pod.
#[derive(Clone, Debug)]
pub enum Change {
    /// Objects become these, in this order. Only all of them together count.
    Objects(Vec<ObjectChange>),
    /// The pod gets a label.
    Label {
        /// Key of the label.
        key: Name,
        /// Its value.
        value: Name,
    },
    /// The pod gets an annotation.
    Annotation {
        /// Key of the annotation.
        key: Name,
        /// Its value.
        value: Name,
    },
    /// A node gets a label.
    NodeLabel {
        /// Name of the node.
        node: Name,
        /// Key of the label.
        key: Name,
        /// Its value.
        value: Name,
    },
    /// Placed pods are made anew on other nodes. Counts only when all of them find their places there too.
    Move(Vec<PodMove>),
    /// The pod requests this much of some resources, in their base units.
    Request(Vec<(Name, i64)>),
    /// The pod requests something of another resource instead.
    Exchange(Exchange),
    /// These pods end.
    End(Vec<PodKey>),
}

/// An object that becomes another one, or that is created.
#[derive(Clone, Debug)]
pub struct ObjectChange {
    /// The object as it would be.
    pub object: NewObject,
    /// The change in words, as an imperative clause.
    pub text: String,
    /// The command that makes it.
    pub command: String,
}

/// An object as it would be.
#[derive(Clone, Debug)]
pub enum NewObject {
    /// Of one of the plugin's kinds.
    Custom(Arc<CustomObject>),
    /// Of a kind that the scheduler itself reads, with its manifest, which `applyObject` of a simulation must take.
    Known(Arc<Object>, Value),
}

/// Another request in place of one.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Name of the resource that is requested.
    pub resource: Name,
    /// How much of it, in its base unit.
    pub amount: i64,
    /// Name of the resource that is requested no longer.
    pub instead_of: Name,
}

/// A placed pod that is made anew on another node.
#[derive(Clone, Debug)]
pub struct PodMove {
    /// The pod.
    pub pod: PodKey,
    /// Name of the other node.
    pub to: Name,
    /// The move in words, as an imperative clause.
    pub text: String,
}

/// A proposed change.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// What changes.
    pub change: Change,
    /// The change in words, as an imperative clause. Not used for objects, requests and pods that move or end, which have
    /// texts of their own.
    pub text: String,
    /// How hard it is to carry out, in the points of docs/diagnostics.md; of objects and of pods that move, each. Not used
    /// for requests and pods that end.
    pub cost: u32,
}

/// What is free of a part of a node, such as a GPU, and of no use to any pending pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdlePart {
    /// The part, such as `gpu 3`.
    pub part: String,
    /// Name of the resource.
    pub resource: Name,
    /// What is free of it, in the resource's base unit.
    pub amount: i64,
    /// What most pods that ask for such a part lack there.
    pub blocked_by: String,
    /// Number of pods that ask for such a part.
    pub pods: usize,
}

/// Advice: tells people how pods stand with the plugin. Asked about pending pods for explanations alone, on a state in
/// which the pod has no place; [`View::pod`] is the pod, where there is one.
pub trait Advice: Send + Sync {
    /// Returns how a pod stands with the plugin in this state, in one sentence with its numbers and without a full stop;
    /// `None` when there is nothing to say.
    fn sentence(&self, view: View<'_>, spec: &PodSpec, now: Now) -> Option<String>;
    /// Returns changes that could make the plugin accept a pod that it refuses as a whole.
    fn proposals(&self, _view: View<'_>, _spec: &PodSpec) -> Vec<Proposal> {
        Vec::new()
    }
    /// Returns changes that could make one of the nodes accept a pod that this plugin refuses there, the best first.
    fn proposals_on(&self, _view: View<'_>, _spec: &PodSpec, _refused: &[NodeIdx]) -> Vec<Proposal> {
        Vec::new()
    }
    /// Returns what is free of single parts of a node and of no use to pods with these specs.
    fn idle_parts(&self, _view: View<'_>, _node: NodeIdx, _pending: &[&PodSpec]) -> Vec<IdlePart> {
        Vec::new()
    }
    /// Returns the body of the plugin's read about a pod ([`PodRead`]).
    fn body(&self, _view: View<'_>, _pod: &Pod, _now: Now) -> Value {
        Value::Null
    }
}

/// A read about one pod that a plugin answers by [`Advice::body`], served at `explain/pods/:namespace/:name/<path>`.
#[derive(Clone, Copy, Debug)]
pub struct PodRead {
    /// Last part of the path.
    pub path: &'static str,
    /// What is returned, in one sentence.
    pub summary: &'static str,
    /// Schema of the body.
    pub body: BodySchema,
    /// JSON pointer to the array of the body that tables lay out as rows.
    pub rows: &'static str,
}

/// What the groups of pods are called that a plugin knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Name of the parameter that filters lists by them, and of the dimension by which pods are counted.
    pub name: &'static str,
    /// What the parameter does, in one sentence.
    pub filter: &'static str,
}

/// Groups pods by something that the plugin knows. Lists filter and counts group by it, under the name that the
/// registration gives ([`Registration::with_groups`](crate::Registration::with_groups)).
pub trait PodGroups: Send + Sync {
    /// Returns the group of pods with this spec; `None` for pods of no group.
    fn group(&self, view: View<'_>, spec: &PodSpec) -> Option<Name>;
}
