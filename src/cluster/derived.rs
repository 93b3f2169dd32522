//! State that plugins derive from nodes and pods, and that is undone together with them.
//!
//! It changes only through the hooks of [`DerivedState`], which come in inverse pairs: an overlay undoes it by calling
//! the inverse hooks in reverse order. Not for caches of one cycle; `framework::CycleValue` is.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::FxHashMap;
use pellucid_model::effect::{ObjectWrite, WriteOutcome};
use pellucid_model::requests::PodRequests;
use pellucid_model::{
    CowMap, CustomKindRef, CustomObject, Name, Node, NodeIdx, Now, Object, Pod, PodId, PodKey,
};
use smallvec::{SmallVec, smallvec};

use crate::given::Given;
use crate::hold::HoldValue;
use crate::objects::ObjectKey;
use crate::stage::Stage;
use crate::state::PodRecord;

/// What a hook may read besides its own state.
pub struct HookContext<'a> {
    /// The time of the input or of the tick.
    pub now: Now,
    pub(crate) nodes: &'a CowMap<Name, NodeIdx>,
}

impl HookContext<'_> {
    /// Returns the slot of a node name, whether or not the node has an object.
    pub fn find_node(&self, name: &Name) -> Option<NodeIdx> {
        self.nodes.get(name).copied()
    }
}

/// A pod on a node.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    /// Id of the pod.
    pub id: PodId,
    /// The pod.
    pub pod: &'a Pod,
    /// The node that it uses.
    pub node: NodeIdx,
    /// How far it is.
    pub stage: Stage,
    /// When it took its place, as wall time. Undoing a removal keeps it.
    pub since: Duration,
    /// What it gives up to others, which stand in its room.
    pub given: Option<&'a Given>,
}

impl<'a> Placed<'a> {
    pub(crate) fn of(id: PodId, record: &'a PodRecord, node: NodeIdx) -> Self {
        let PodRecord { pod, stage, since, given, .. } = record;
        Self { id, pod, node, stage: *stage, since: *since, given: given.as_deref() }
    }

    /// Returns what the pod takes on its node of all that it requests.
    pub fn taken(&self) -> Cow<'a, PodRequests> {
        Given::left_of(self.given, &self.pod.spec.requests)
    }

    /// Returns whether the pod counts as one: guests that stand in its room count in its stead.
    pub fn counts(&self) -> bool {
        is_counted(self.given)
    }
}

/// Returns whether a pod counts as one that gives up this.
pub fn is_counted(given: Option<&Given>) -> bool {
    given.is_none_or(|given| given.amounts.list.pods == 0)
}

/// The nodes whose results a change of a plugin's state invalidates, for plugins that read `Usage` or more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "touched nodes keep stale results otherwise"]
pub enum Touched {
    /// No result depends on it.
    Nothing,
    /// No cached result, but the answers of plugins that are asked at every attempt.
    Attempts,
    /// The results of these nodes.
    Nodes(SmallVec<[NodeIdx; 2]>),
    /// The results of all nodes.
    All,
}

impl Touched {
    /// Returns that one node was touched.
    pub fn node(node: NodeIdx) -> Self {
        Self::Nodes(smallvec![node])
    }

    /// Adds a node.
    pub fn add(&mut self, node: NodeIdx) {
        match self {
            Self::Nothing | Self::Attempts => *self = Self::node(node),
            Self::Nodes(nodes) => nodes.push(node),
            Self::All => {}
        }
    }
}

/// What a change of an object means, for its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What happened, in one word of the REST API, such as `Expired`.
    pub kind: &'static str,
    /// The pod that caused it.
    pub by: Option<PodKey>,
    /// The node that it is about.
    pub node: Option<Name>,
    /// The same as a sentence.
    pub text: String,
}

/// What stays the same of the derived states of a cluster, by their index.
#[derive(Default)]
pub(crate) struct StateIndex {
    /// Asked at every point of every plugin.
    by_type: FxHashMap<TypeId, usize>,
    /// Those that count a plugin's holds, with its name.
    holders: SmallVec<[(usize, &'static str); 4]>,
    /// Those by which pods may give up room.
    pub(crate) givers: SmallVec<[usize; 2]>,
    /// Those that change by time alone. Asked when before every attempt.
    pub(crate) timed: SmallVec<[usize; 2]>,
}

impl StateIndex {
    pub(crate) fn of(states: &[Box<dyn DerivedState>]) -> Self {
        let those = |is_one: fn(&dyn DerivedState) -> bool| {
            states.iter().enumerate().filter(move |(_, state)| is_one(&***state)).map(|(at, _)| at)
        };
        Self {
            by_type: states.iter().map(|state| (&**state as &dyn Any).type_id()).zip(0..).collect(),
            holders: those(|state| !state.plugin().is_empty()).map(|at| (at, states[at].plugin())).collect(),
            givers: those(|state| state.gives_up_room()).collect(),
            timed: those(|state| state.is_timed()).collect(),
        }
    }

    /// Returns the index of the state of a type.
    #[inline]
    pub(crate) fn of_type<S: DerivedState>(&self) -> Option<usize> {
        self.by_type.get(&TypeId::of::<S>()).copied()
    }

    /// Iterates over the indices of the states that count a plugin's holds.
    pub(crate) fn of_plugin<'a>(&'a self, plugin: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.holders.iter().filter(move |(_, known)| *known == plugin).map(|(at, _)| *at)
    }
}

/// One plugin's derived state. There is one per plugin type, however many profiles use it.
pub trait DerivedState: Any + Send + Sync {
    /// Returns a copy for a published snapshot, which shares what did not change.
    fn fork(&self) -> Box<dyn DerivedState>;

    /// Returns the name of the plugin whose holds this state counts, and in whose name it writes; empty for a state
    /// that does neither.
    fn plugin(&self) -> &'static str {
        ""
    }

    /// Merges another state of this type, which was made with the arguments of another profile.
    fn merge(&mut self, _other: Box<dyn DerivedState>) {}

    /// Handles a pod that was placed on a node. Results of the node are computed anew in any case.
    fn pod_added(&mut self, _placed: &Placed<'_>) {}

    /// Inverse of [`pod_added`](Self::pod_added).
    fn pod_removed(&mut self, _placed: &Placed<'_>) {}

    /// Handles a pod that enters the cluster state, pending or on a node.
    fn pod_came(&mut self, _cx: &HookContext<'_>, _id: PodId, _pod: &Pod) -> Touched {
        Touched::Nothing
    }

    /// Handles a changed object of a pod in the cluster state, placed or not.
    fn pod_changed(&mut self, _cx: &HookContext<'_>, _id: PodId, _old: &Pod, _new: &Pod) -> Touched {
        Touched::Nothing
    }

    /// Handles a pod that ended, was deleted, or is no longer to be placed. It has left its node before.
    fn pod_left(&mut self, _cx: &HookContext<'_>, _id: PodId, _pod: &Pod) -> Touched {
        Touched::Nothing
    }

    /// Handles a pod of a copy that is taken as gone: it asks for nothing any more. It has left its node before, and its
    /// record stays, so only what its mere existence counts for changes.
    fn pod_withdrawn(&mut self, _id: PodId, _pod: &Pod) {}

    /// Inverse of [`pod_withdrawn`](Self::pod_withdrawn).
    fn pod_returned(&mut self, _id: PodId, _pod: &Pod) {}

    /// Handles a change of a placed pod's object that leaves its spec alone.
    fn placed_pod_changed(&mut self, _placed: &Placed<'_>, _old: &Pod) -> Touched {
        Touched::Nothing
    }

    /// Handles a node object that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    /// The results of the node itself are computed anew in any case.
    fn node_changed(&mut self, _node: NodeIdx, _old: Option<&Node>, _new: Option<&Node>) -> Touched {
        Touched::Nothing
    }

    /// Handles an object of another kind that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    fn object_changed(&mut self, _old: Option<&Object>, _new: Option<&Object>) -> Touched {
        Touched::Nothing
    }

    /// Handles an object of a plugin's kind that was added (`old` is `None`), changed, or deleted (`new` is `None`).
    fn custom_changed(
        &mut self,
        _cx: &HookContext<'_>,
        _old: Option<&CustomObject>,
        _new: Option<&CustomObject>,
    ) -> Touched {
        Touched::Nothing
    }

    /// Returns what a change of an object of the plugin's kind, which was handled, means for the history of the object:
    /// what the pod which stands for the object does not tell by itself. As the objects say it, so that it is recorded once.
    fn told(&self, _old: Option<&CustomObject>, _new: Option<&CustomObject>) -> Vec<Told> {
        Vec::new()
    }

    /// Returns whether the state changes by time alone; always the same. Only then is it asked when.
    fn is_timed(&self) -> bool {
        false
    }

    /// Returns when the state changes by time alone, on the monotonic clock.
    fn next_deadline(&self, _now: Now) -> Option<Duration> {
        None
    }

    /// Handles the deadlines up to now.
    fn expire(&mut self, _now: Now) -> Touched {
        Touched::Nothing
    }

    /// Returns the writes that should be made now and are not ordered yet; each is ordered once. Asked again whenever
    /// orders are handed out, so a state that has many gives some at a time. Not asked in an overlay, in shadow mode,
    /// or before the first lists of all watches.
    fn due_writes(&mut self, _cx: &HookContext<'_>) -> Vec<ObjectWrite> {
        Vec::new()
    }

    /// Returns the objects of the plugin's kinds that end with its due writes, and with them the pods which stand for them; not
    /// those that are evicted. A simulation, in which nothing is written, takes these objects as gone.
    fn ending_objects(&self) -> Vec<(CustomKindRef, ObjectKey)> {
        Vec::new()
    }

    /// Handles the outcome of one of its [`due_writes`](Self::due_writes). The state decides
    /// whether and when a refused write is due again.
    fn write_settled(
        &mut self,
        _cx: &HookContext<'_>,
        _write: &ObjectWrite,
        _outcome: &WriteOutcome,
    ) -> Touched {
        Touched::Nothing
    }

    /// Handles a hold that begins: one that the plugin's Reserve chose, or that was read back.
    fn reserved(&mut self, _cx: &HookContext<'_>, _placed: &Placed<'_>, _hold: &HoldValue) -> Touched {
        Touched::Nothing
    }

    /// Inverse of [`reserved`](Self::reserved). Called before the pod leaves its node.
    fn unreserved(&mut self, _cx: &HookContext<'_>, _placed: &Placed<'_>, _hold: &HoldValue) -> Touched {
        Touched::Nothing
    }

    /// Returns whether pods may give up room by this state; always the same. Only then is it asked which.
    fn gives_up_room(&self) -> bool {
        false
    }

    /// Returns the pods that take less on their nodes than they request, or again all of it, since this was asked last:
    /// pods in whose room those stand that the plugin's holds let in. Asked after each hook that can change it.
    fn given_up(&mut self) -> Vec<(PodId, Option<Arc<Given>>)> {
        Vec::new()
    }

    /// Handles a placed pod that takes another part of its requests than before. States that sum up what pods take, or
    /// count pods, follow it; `pod_added` and `pod_removed` say what is taken then.
    fn given_changed(&mut self, _placed: &Placed<'_>, _before: Option<&Given>) {}

    /// Returns whether what the plugin holds for a pod can be handed on to pods that stand in its room.
    fn shares_holds(&self) -> bool {
        false
    }

    /// Returns what is left of a hold beside what pods hold that stand in the room of its pod. `None`: all of it, for a plugin
    /// whose holds are not [shared](Self::shares_holds).
    fn hold_left(&self, _whole: &HoldValue, _guests: &[HoldValue]) -> Option<HoldValue> {
        None
    }

    /// Handles that a pod which stands for an object ([`StandsFor`](pellucid_model::pod::StandsFor)) was refused: its
    /// plugin tells it on the object, since the API server has no such pod.
    fn stand_in_refused(&mut self, _cx: &HookContext<'_>, _pod: &Pod, _message: &Arc<str>) {}

    /// Handles that a bound pod which stands for an object is evicted for another: its plugin ends the object, with which
    /// the pod goes. Until then the other waits.
    fn stand_in_evicted(&mut self, _cx: &HookContext<'_>, _pod: &Pod, _message: &Arc<str>) {}

    /// Returns what the plugin holds for a bound pod, by its object and by what was held so far.
    ///
    /// Called when the pod is bound, by us or by others, at the start, and whenever its object changes. An object
    /// without the marks of the Binding may be older than the Binding: then `held` stands.
    fn bound_hold(
        &self,
        _cx: &HookContext<'_>,
        _placed: &Placed<'_>,
        held: Option<&HoldValue>,
    ) -> Option<HoldValue> {
        held.cloned()
    }
}

/// Adds the state of a plugin. If there is a state of the same type, merges the new one into it.
pub fn add_state(states: &mut Vec<Box<dyn DerivedState>>, state: Box<dyn DerivedState>) {
    let type_of = |state: &dyn DerivedState| (state as &dyn Any).type_id();
    let added = type_of(&*state);
    match states.iter_mut().find(|known| type_of(&***known) == added) {
        Some(known) => known.merge(state),
        None => states.push(state),
    }
}
