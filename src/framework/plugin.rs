//! The traits that a plugin implements, one per extension point of kube-scheduler.
//!
//! A [`PluginFactory`], as a rule a [`Registration`](crate::Registration), makes one [`Plugin`] per profile. A plugin
//! takes part at an extension point by returning itself from that point's accessor ([`points!`](crate::points)); all
//! accessors default to `None`. A plugin does no I/O and keeps no state of its own.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_cluster::columns::ColumnPage;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_model::cause::Cause;
use pellucid_model::effect::ObjectWrite;
use pellucid_model::requests::ResourceList;
use pellucid_model::{NodeIdx, Now, Pod, PodSpec};

use super::advice::{Advice, PodGroups};
use super::gangs::GangPolicy;
use super::overrides::NodeOverrides;
pub use super::overrides::Room;
use super::topology::{NumaAffinity, TopologyHints};
pub use super::view::Nodes;
use super::view::View;
use super::whole_cause::EveryReason;

pub use super::factory::{ArgsError, DeclaredKeys, PluginFactory, derived_states};
pub use super::post_filter::{Evaluator, PostFilter, VictimGuard};
pub use super::reserve::{Reservation, Reserve};

/// What a plugin computed in PreFilter or PreScore for the rest of a cycle. Cached per shape when [`Reads`] allows it.
pub type CycleValue = Arc<dyn Any + Send + Sync>;

/// What a plugin's result for a node depends on, apart from the pod. Decides when a cached result is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// Only the node object.
    Node,
    /// The node object and the pods on that node.
    Usage,
    /// Also the set of all nodes and their images.
    NodeSet,
    /// Anything: pods on other nodes, volumes, workloads. Never cached from one attempt to the next.
    Everything,
}

/// PreEnqueue: decides whether a pod may enter the queue.
pub trait PreEnqueue: Send + Sync {
    /// Returns why the pod may not enter the queue, if so.
    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Cause>;
}

/// QueueSort: orders the active queue.
pub trait QueueSort: Send + Sync {
    /// Returns the rank, the primary sort key; the greater is taken first. Pods of equal rank are ordered by last entry
    /// into the queue, then creation, then key.
    fn rank(&self, pod: &Pod) -> i64;
    /// Returns the length of the windows in which pods of equal rank are ordered by [`size`](Self::size) and not by when
    /// they entered the queue; zero for none. Windows follow each other without a gap, so a pod lets only those pass that
    /// entered less than a window later.
    fn window(&self) -> Duration {
        Duration::ZERO
    }
    /// Returns the size of a pod, by which the pods of a window are ordered; the larger is taken first.
    fn size(&self, _pod: &Pod) -> i64 {
        0
    }
    /// Returns whether the plugin sorts the queue only where the configuration names it at QueueSort. Exactly one plugin
    /// sorts, so of those that are enabled by default all but one must say yes.
    fn only_when_named(&self) -> bool {
        false
    }
}

/// Concern: says cheaply whether a plugin has anything to say about a pod.
///
/// Asked once per attempt. Of a plugin that says no, PreFilter, Filter, PreScore, Score, Reserve, Permit, PreBind and node
/// overrides are not called for the pod, and its results come from what is kept for equal pods, as if the plugin were not enabled.
pub trait Concern: Send + Sync {
    /// Returns whether the plugin may have anything to say about a pod. `spec` is the pod's, or a changed one in a question
    /// about it.
    ///
    /// Must be false only when each of these points would leave the pod alone. Must not depend on which pods are on which
    /// nodes: what is said holds in the trials of the attempt too. The plugin's filters and scores must read
    /// [`Reads::Everything`], since what is kept is kept for pods that it concerns as well.
    fn concerns(&self, view: View<'_>, spec: &PodSpec, pod: &Pod) -> bool;
}

/// The result of PreFilter.
pub enum PreFiltered {
    /// The plugin's Filter would accept every node, so it is skipped.
    Skip,
    /// The plugin's Filter is called. `nodes`, when given, are the only candidates, ascending.
    Ready {
        /// The value to pass to Filter.
        value: CycleValue,
        /// The candidates, when there are fewer than all nodes.
        nodes: Option<Vec<NodeIdx>>,
    },
    /// No node can take the pod.
    Refused(Cause),
}

/// PreFilter: prepares the Filter calls of a cycle.
pub trait PreFilter: Send + Sync {
    /// Returns what the result depends on apart from the pod's spec.
    fn reads(&self) -> Reads;
    /// Prepares Filter for pods with this spec, or refuses them.
    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered;
    /// Returns whether [`beside_nominees`](Self::beside_nominees) can refuse pods. Needs [`Reads::Everything`].
    fn counts_nominees(&self) -> bool {
        false
    }
    /// Returns why a pod that passed `pre_filter` must leave what all nodes share, such as a quota, to pods that are
    /// nominated to a node and have no place yet: those of higher priority and, unless the pod is nominated itself, of
    /// equal priority. Where they are nominated to, filters see them placed; this is about all other nodes.
    #[inline]
    fn beside_nominees(&self, _view: View<'_>, _spec: &PodSpec, _nominees: &[&Pod]) -> Option<Cause> {
        None
    }
}

/// The numbers behind a refusal for something countable, of which there is too little or too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// What is counted: a resource name, a phrase that ends with `free`, such as `NUMA memory free`, in the unit of the
    /// word before, or another phrase, such as `skew of zone`, where there is too much.
    pub resource: pellucid_model::Name,
    /// What the pod requests, in the resource's base unit; where there is too much, the least amount on any node.
    pub requested: i64,
    /// The most that any of the nodes has left, negative when all are overcommitted; where there is too much, the
    /// allowed amount.
    pub available: i64,
    /// The node with that amount.
    pub best_node: NodeIdx,
}

/// Filter: decides which nodes can take the pod.
pub trait Filter: Send + Sync {
    /// Returns what the result for a node depends on.
    fn reads(&self) -> Reads;
    /// Removes nodes from the set. `value` is what PreFilter returned.
    fn filter(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>);
    /// Returns an upper bound of the number of pods with this spec that the node takes once pods with the total
    /// requests `gone` have left it, as far as this plugin is concerned. Invariant: never too low.
    #[inline]
    fn at_most(&self, _view: View<'_>, _spec: &PodSpec, _node: NodeIdx, _gone: &ResourceList) -> u64 {
        u64::MAX
    }
    /// Returns whether this plugin may refuse the pod on some node for want of the other pod: whether the other one's
    /// leaving can harm. Called for readers of explanations, never for a decision.
    fn needs(&self, _view: View<'_>, _spec: &PodSpec, _other: &PodSpec) -> bool {
        false
    }
    /// Returns whether a refusal rests on what is measured on a node: it may end when pods on the node do, or by itself,
    /// although a state without those pods still refuses. So nobody is told that it lasts.
    fn is_measured(&self) -> bool {
        false
    }
    /// Returns the numbers behind one of this plugin's causes, over some of the nodes refused with it, sorted by name. Invariant for
    /// filters that read at most [`Reads::Usage`]: each number is that of the best of the nodes, which of two nodes is better depends
    /// on these two alone, and the order of the measures on the pod and the cause. So nodes that are no better may be left out. The
    /// numbers of a node stay while the node does, unless [`is_measured`](Self::is_measured) says otherwise.
    fn measure(&self, _view: View<'_>, _spec: &PodSpec, _cause: &Cause, _nodes: &[NodeIdx]) -> Vec<Measure> {
        Vec::new()
    }
    /// Returns a function that lists every reason for which a node refuses the pod. `value` is what PreFilter returned.
    /// `None` when the cause that `filter` gives has all reasons, and its code holds for each. Called for readers of
    /// explanations, never for a decision. Invariants: a node has a reason exactly when `filter` refuses it, and the
    /// codes in the filter's cause are among the codes listed.
    fn every_reason<'a>(
        &'a self,
        _view: View<'a>,
        _spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        None
    }
    /// Returns what of the pod's requirements the nodes in `refused` do not fulfil: which term it is, how many nodes
    /// fulfil it alone, and what is there instead. Called for readers of explanations, also of pods that PreFilter
    /// refuses; then `refused` has all nodes.
    fn requirements(&self, _view: View<'_>, _spec: &PodSpec, _refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        Vec::new()
    }
    /// Returns what makes one node refuse the pod with one of this plugin's causes, with the node's own numbers, as a
    /// clause. `None` when there is nothing to add to the cause, or when the node does not refuse for it in this state.
    /// Called for readers of explanations, never for a decision; `now` is the time at which they read.
    fn detail(
        &self,
        _view: View<'_>,
        _spec: &PodSpec,
        _cause: &Cause,
        _node: NodeIdx,
        _now: Now,
    ) -> Option<String> {
        None
    }
}

/// The result of PreScore.
pub enum PreScored {
    /// The plugin's Score has nothing to add for this pod, so it is skipped.
    Skip,
    /// The plugin's Score is called with this value.
    Ready(CycleValue),
}

/// PreScore: prepares the Score call of a cycle.
pub trait PreScore: Send + Sync {
    /// Returns what the result depends on apart from the pod's spec.
    fn reads(&self) -> Reads;
    /// Prepares Score. `nodes` are the feasible nodes, ascending. Only a plugin that reads [`Reads::Everything`] may
    /// look at them, because the values of the others are cached.
    fn pre_score(&self, view: View<'_>, spec: &PodSpec, nodes: &[NodeIdx]) -> PreScored;
}

/// How raw scores, which are 0 or more, are normalised to 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// Raw scores are in that range already. What lies outside counts as its nearest end.
    Identity,
    /// `100 * raw / max`; 0 for all when the maximum is 0.
    Proportional,
    /// `100 - 100 * raw / max`; 100 for all when the maximum is 0.
    ProportionalReversed,
}

/// The greatest score that a plugin gives a node.
pub const MAX_SCORE: i64 = 100;

impl Normalize {
    /// Normalises one raw score, given the greatest raw score of the feasible nodes
    /// (kube-scheduler's `DefaultNormalizeScore`).
    #[inline]
    pub fn apply(self, raw: i64, max: i64) -> i64 {
        match self {
            Self::Identity => raw,
            Self::Proportional if max == 0 => 0,
            Self::Proportional => MAX_SCORE * raw / max,
            Self::ProportionalReversed if max == 0 => MAX_SCORE,
            Self::ProportionalReversed => MAX_SCORE - MAX_SCORE * raw / max,
        }
    }
}

/// The raw score of a node as a function of its columns.
pub trait ColumnScore: Send + Sync {
    /// Returns the score of the node at a place of a page.
    fn score(&self, page: &ColumnPage, at: usize) -> i64;
}

/// Score: rates the nodes for the pod.
pub trait Score: Send + Sync {
    /// Returns what the result for a node depends on.
    fn reads(&self) -> Reads;
    /// Fills one raw score per node, in the order of `nodes`. `value` is what PreScore returned.
    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]);
    /// Returns whether scores rest on what is measured on nodes, which changes by itself: then nobody knows which node a pod
    /// would get once others have left.
    fn is_measured(&self, _view: View<'_>) -> bool {
        false
    }
    /// Returns the function that [`score`](Self::score) gives for each node, if it looks at nothing but the node's columns. It holds
    /// as long as the value does, and is asked in place of [`score`](Self::score), those of all plugins in one walk over the nodes.
    /// Plugins that [normalise](Self::normalize) have none.
    #[inline]
    fn by_columns(&self, _value: &CycleValue) -> Option<Box<dyn ColumnScore>> {
        None
    }
    /// Returns whether the score of a node depends on the NUMA nodes that a pod would get there. Then
    /// [`score_aligned`](Self::score_aligned) is called in place of [`score`](Self::score) where a provider of topology hints
    /// has something to say of the pod.
    #[inline]
    fn reads_affinity(&self) -> bool {
        false
    }
    /// Like [`score`](Self::score), with the NUMA nodes on which all providers agree ([`TopologyHints`]), one per node;
    /// `None` where the node demands no agreement, or does not take the pod.
    #[inline]
    fn score_aligned(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        value: &CycleValue,
        nodes: &[(NodeIdx, Option<NumaAffinity>)],
        out: &mut [i64],
    ) {
        let nodes: Vec<NodeIdx> = nodes.iter().map(|(node, _)| *node).collect();
        self.score(view, spec, value, &nodes, out);
    }
    /// Returns whether the plugin scores the nodes alone that a plugin overrides
    /// ([`NodeOverrides`](super::overrides::NodeOverrides)): the raw score of any other is 0, zeros change nothing in how the
    /// others are normalised, PreScore says the same of these nodes as of all, and in a trial of one node without looking at
    /// any. Needs [`Reads::Everything`].
    #[inline]
    fn scores_overridden_alone(&self) -> bool {
        false
    }
    /// Returns how raw scores are normalised.
    #[inline]
    fn normalize(&self) -> Normalize {
        Normalize::Identity
    }
    /// Normalises the raw scores of all feasible nodes together. Called only for plugins that read
    /// [`Reads::Everything`]; the scores of others are normalised one by one.
    #[inline]
    fn normalize_all(&self, _view: View<'_>, _value: &CycleValue, _nodes: &[NodeIdx], scores: &mut [i64]) {
        let max = scores.iter().copied().max().unwrap_or(0);
        for score in scores {
            *score = self.normalize().apply(*score, max);
        }
    }
}

/// The result of PreBind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreBound {
    /// As far as this plugin is concerned, the pod may be bound.
    Ready,
    /// The pod cannot be bound yet. PreBind is called again when one of the writes is settled, when the pod, a volume or
    /// a claim changes, and when an object or a plugin's state changes that the plugin's [`Hints`] listen to.
    Wait {
        /// Writes that are needed. A write already ordered for this attempt is not sent again. Patches of one object by
        /// several plugins become one request; the pod is not bound if they set a field differently.
        writes: Vec<ObjectWrite>,
        /// How long to wait altogether, counted from the decision or, if Permit waited, from its end.
        at_most: Duration,
    },
    /// The pod cannot be bound, and loses its place.
    Failed(Cause),
}

/// PreBind: prepares the cluster for the pod's binding. All plugins of the profile are asked each time.
pub trait PreBind: Send + Sync {
    /// Checks how far the preparation is. `held` is what this plugin's Reserve returned.
    fn pre_bind(&self, view: View<'_>, pod: &Pod, node: NodeIdx, held: Option<&CycleValue>) -> PreBound;
}

/// The result of Permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permitted {
    /// As far as this plugin is concerned, the pod goes on to binding.
    Yes,
    /// The pod keeps its place and waits. Permit is called again after events of the kinds that the plugin's [`Hints`]
    /// listen to, and when a deadline in a plugin's state has passed.
    Wait {
        /// How long to wait altogether, counted from the decision. Then the pod loses its place.
        at_most: Duration,
    },
    /// The pod loses its place.
    No(Cause),
}

/// Permit: decides whether a reserved pod may be bound now. The pod goes on when all plugins say yes at once.
pub trait Permit: Send + Sync {
    /// Decides whether the pod may be bound to the node now. Asked in the decision, and while the pod waits.
    fn permit(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Permitted;
}

/// PostBind: acts when a Binding is confirmed.
pub trait PostBind: Send + Sync {
    /// Returns the writes to make. Called once, when the API server has confirmed a Binding of ours, in a report or in
    /// the watch; never for a pod whose Binding is confirmed after a restart. `held` is what this plugin holds for
    /// the pod. Nothing waits for the writes, and what comes of them is only logged and counted.
    fn post_bind(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        held: Option<&CycleValue>,
    ) -> Vec<ObjectWrite>;
}

/// Bind: decides whether this plugin binds the pod. The first enabled plugin that does wins.
pub trait Bind: Send + Sync {
    /// Returns whether this plugin binds the pod. The framework orders the effect.
    fn binds(&self, pod: &Pod) -> bool;
}

/// Whether an event could make a refused pod fit, as kube-scheduler's QueueingHint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The pod could fit now.
    Queue,
    /// The event does not help the pod.
    Skip,
}

/// Hints: decides which events wake the pods that this plugin refused.
pub trait Hints: Send + Sync {
    /// Returns the kinds of events that the plugin listens to.
    fn events(&self) -> EventKinds;
    /// Judges one event of these kinds. Called only for pods that this plugin refused.
    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint;
}

/// Declares the accessor of each extension point.
macro_rules! accessors {
    ($($name:ident -> $point:ident;)*) => { $(
        /// Returns the plugin itself when it implements the trait.
        #[inline]
        fn $name(&self) -> Option<&dyn $point> {
            None
        }
    )* };
}

/// A plugin with its arguments, as one profile uses it.
pub trait Plugin: Send + Sync {
    /// Returns the plugin's name in the configuration.
    fn name(&self) -> &'static str;
    /// Returns the arguments in force, for the `config` endpoint.
    #[inline]
    fn args(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }
    accessors! {
        pre_enqueue -> PreEnqueue;
        queue_sort -> QueueSort;
        pre_filter -> PreFilter;
        filter -> Filter;
        pre_score -> PreScore;
        score -> Score;
        post_filter -> PostFilter;
        reserve -> Reserve;
        pre_bind -> PreBind;
        permit -> Permit;
        bind -> Bind;
        post_bind -> PostBind;
        hints -> Hints;
        topology_hints -> TopologyHints;
        concern -> Concern;
        node_overrides -> NodeOverrides;
        gangs -> GangPolicy;
        victim_guard -> VictimGuard;
        advice -> Advice;
        pod_groups -> PodGroups;
    }
    /// Makes the empty derived states that the plugin needs. Of several plugins' states of one type there is only one;
    /// it takes over what the others were made with ([`DerivedState::merge`]).
    #[inline]
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        Vec::new()
    }
}
