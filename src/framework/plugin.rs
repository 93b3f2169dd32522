//! The traits a plugin implements: one per extension point of kube-scheduler, and two around them.
//!
//! [`PluginFactory`] is the registry's entry: it knows the plugin's name, arguments, derived state and
//! endpoints, and makes one [`Plugin`] per profile. A plugin says at which points it works by returning
//! itself there; everything else is absent by default. A plugin does no I/O and keeps no state of its own.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::preemptions::Found;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds};
use pellucid_model::cause::{Cause, CauseId, Causes, Code};
use pellucid_model::effect::VolumeWrite;
use pellucid_model::requests::ResourceList;
use pellucid_model::{NodeIdx, Pod, PodId, PodSpec};

use super::endpoint::Endpoint;
use super::gangs::GangRules;
use super::post_filter::PostFiltered;
use super::view::View;

/// What a plugin made in PreFilter or PreScore for the rest of a cycle. Kept per shape while it is local.
pub type CycleValue = Arc<dyn Any + Send + Sync>;

/// What an answer per node depends on, apart from the pod. Decides when a cached row is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reads {
    /// The node object alone.
    Node,
    /// Also the pods on that node.
    Usage,
    /// Also the set of all nodes and their images.
    NodeSet,
    /// Anything: pods on other nodes, volumes, workloads. Never kept from one attempt to the next.
    Everything,
}

/// A set of nodes on which a plugin has not yet refused the pod, ascending.
pub struct Nodes<'a> {
    nodes: &'a mut Vec<NodeIdx>,
    causes: &'a mut Causes,
    mask: &'a mut [CauseId],
}

impl<'a> Nodes<'a> {
    /// Makes a set. `mask` has one entry per node slot and receives the cause of each refused node.
    pub fn new(nodes: &'a mut Vec<NodeIdx>, causes: &'a mut Causes, mask: &'a mut [CauseId]) -> Self {
        Self { nodes, causes, mask }
    }

    /// Returns the id of a cause, to be given for nodes in [`refuse`](Self::refuse).
    pub fn cause(&mut self, cause: Cause) -> CauseId {
        self.causes.id(cause)
    }

    /// Returns the members.
    pub fn members(&self) -> &[NodeIdx] {
        self.nodes
    }

    /// Asks about every member; one with a cause other than [`CauseId::FEASIBLE`] leaves the set.
    pub fn refuse(&mut self, mut cause_of: impl FnMut(NodeIdx) -> CauseId) {
        let mask = &mut *self.mask;
        self.nodes.retain(|node| {
            let cause = cause_of(*node);
            mask[node.index()] = cause;
            cause.is_feasible()
        });
    }

    /// Like [`refuse`](Self::refuse), with the table at hand for causes that are only known per node.
    pub fn refuse_with(&mut self, mut cause_of: impl FnMut(&mut Causes, NodeIdx) -> CauseId) {
        let (mask, causes) = (&mut *self.mask, &mut *self.causes);
        self.nodes.retain(|node| {
            let cause = cause_of(causes, *node);
            mask[node.index()] = cause;
            cause.is_feasible()
        });
    }
}

/// PreEnqueue: may the pod enter the queue at all?
pub trait PreEnqueue: Send + Sync {
    /// Returns why not.
    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Cause>;
}

/// QueueSort: the order of the active queue.
pub trait QueueSort: Send + Sync {
    /// Returns the primary key: greater goes first. Equal keys go by the queue's own order (last entry,
    /// then creation, then key).
    fn rank(&self, pod: &Pod) -> i64;
}

/// What PreFilter says.
pub enum PreFiltered {
    /// This plugin's Filter has nothing to say about the pod.
    Skip,
    /// Go on. `nodes`, when given, are the only ones worth looking at, ascending.
    Ready {
        /// For Filter.
        value: CycleValue,
        /// The candidates, when there are fewer than all.
        nodes: Option<Vec<NodeIdx>>,
    },
    /// No node can take the pod.
    Refused(Cause),
}

/// PreFilter: once per cycle, before nodes are looked at.
pub trait PreFilter: Send + Sync {
    /// What the answer depends on apart from the pod's spec.
    fn reads(&self) -> Reads;
    /// Prepares.
    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered;
}

/// Numbers behind a refusal for something countable, of which there is too little, or too much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// What is counted: a resource name; or words, where there is too much of it, such as `skew of zone`.
    pub resource: pellucid_model::Name,
    /// What the pod requests, in the resource's base unit; or how much there is at the least.
    pub requested: i64,
    /// The most that one of the asked nodes has left, negative when all are overcommitted; or how much there
    /// may be.
    pub available: i64,
    /// The node that has it.
    pub best_node: NodeIdx,
}

/// Filter: which nodes can take the pod.
pub trait Filter: Send + Sync {
    /// What the answer about a node depends on.
    fn reads(&self) -> Reads;
    /// Removes nodes from the set. `value` is what PreFilter made.
    fn filter(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &mut Nodes<'_>);
    /// Returns how many pods with this spec a node takes at most once pods with these requests, in sum and number, are
    /// gone from it, as far as this plugin goes. May be too many, never too few.
    fn at_most(&self, view: View<'_>, spec: &PodSpec, node: NodeIdx, gone: &ResourceList) -> u64 {
        let _ = (view, spec, node, gone);
        u64::MAX
    }
    /// Returns the numbers behind one of this plugin's causes over the nodes it refused for it.
    fn measure(&self, view: View<'_>, spec: &PodSpec, cause: &Cause, nodes: &[NodeIdx]) -> Vec<Measure> {
        let _ = (view, spec, cause, nodes);
        Vec::new()
    }
}

/// What PreScore says.
pub enum PreScored {
    /// This plugin's Score has nothing to say about the pod.
    Skip,
    /// Go on.
    Ready(CycleValue),
}

/// PreScore: once per cycle, before nodes are scored.
pub trait PreScore: Send + Sync {
    /// What the answer depends on apart from the pod's spec.
    fn reads(&self) -> Reads;
    /// Prepares. `nodes` are the feasible nodes, ascending; only a plugin that reads [`Reads::Everything`]
    /// may look at them, because what others prepare is kept.
    fn pre_score(&self, view: View<'_>, spec: &PodSpec, nodes: &[NodeIdx]) -> PreScored;
}

/// How raw scores become 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalize {
    /// They are that already.
    Identity,
    /// `100 * raw / max`; 0 for all when the maximum is 0.
    Proportional,
    /// `100 - 100 * raw / max`; 100 for all when the maximum is 0.
    ProportionalReversed,
}

/// The greatest score a plugin gives a node.
pub const MAX_SCORE: i64 = 100;

impl Normalize {
    /// Normalises one raw score, given the greatest over the feasible nodes
    /// (kube-scheduler's `DefaultNormalizeScore`).
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

/// Score: how much the pod likes each node.
pub trait Score: Send + Sync {
    /// What the answer about a node depends on.
    fn reads(&self) -> Reads;
    /// Fills one raw score per node, in the order of `nodes`. `value` is what PreScore made.
    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]);
    /// How raw scores become 0 to 100.
    fn normalize(&self) -> Normalize {
        Normalize::Identity
    }
    /// Normalises the raw scores of all feasible nodes together. Only asked of a plugin that reads
    /// [`Reads::Everything`]; others are normalised one by one.
    fn normalize_all(&self, view: View<'_>, value: &CycleValue, nodes: &[NodeIdx], scores: &mut [i64]) {
        let _ = (view, value, nodes);
        let max = scores.iter().copied().max().unwrap_or(0);
        for score in scores {
            *score = self.normalize().apply(*score, max);
        }
    }
}

/// Reserve: what a plugin holds for a pod that was given a node, besides the room on it.
///
/// What a plugin derives from placed pods changes with the placement itself ([`DerivedState`]); this point
/// is for what must be chosen, such as volumes. There is no Unreserve: what is returned hangs on the pod
/// ([`DerivedState::reserved`]), and goes when the place is given up.
pub trait Reserve: Send + Sync {
    /// Chooses what to hold. `None`: nothing. A cause: the pod cannot have the node after all.
    fn reserve(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Result<Option<CycleValue>, Cause>;
}

/// What PreBind says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreBound {
    /// The pod may be bound as far as this plugin goes.
    Ready,
    /// Not yet. Asked again when one of the writes is settled and when an object changes.
    Wait {
        /// Writes that are needed. One that was ordered for this attempt already is not sent twice.
        writes: Vec<VolumeWrite>,
        /// How long to wait altogether, from the decision.
        at_most: Duration,
    },
    /// It cannot be bound; the place is given up.
    Failed(Cause),
}

/// PreBind: what must be done in the cluster before the pod is bound.
pub trait PreBind: Send + Sync {
    /// Looks at how far things are. `held` is what this plugin's Reserve returned.
    fn pre_bind(&self, view: View<'_>, pod: &Pod, node: NodeIdx, held: Option<&CycleValue>) -> PreBound;
}

/// What Permit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permitted {
    /// Go on to binding.
    Yes,
    /// Give the place up.
    No(Cause),
}

/// What PostFilter may ask. The state is that of the attempt.
pub trait Evaluator {
    /// Returns the state with what was removed so far.
    fn view(&self) -> View<'_>;
    /// Returns the pod's number.
    fn pod(&self) -> PodId;
    /// Returns the code with which each node of [`View::nodes`] was refused, by node slot; `None`: it was
    /// not looked at, or not refused.
    fn refused(&self, node: NodeIdx) -> Option<Code>;
    /// Begins to try something out; ends with [`give_back`](Self::give_back).
    fn try_out(&mut self);
    /// Undoes what was removed since.
    fn give_back(&mut self);
    /// Takes a placed pod off its node.
    fn remove(&mut self, pod: PodId);
    /// Puts a removed pod back on its node.
    fn restore(&mut self, pod: PodId, node: NodeIdx);
    /// Returns why the pod does not pass all filters on a node as things stand, with and without the pods that
    /// are nominated to it.
    fn refusal(&mut self, node: NodeIdx) -> Option<Cause>;
    /// Returns the priority below which victims must be: the pod's own, or, when its gang preempts as one, that
    /// of the gang's lowest member.
    fn below(&self) -> i32;
    /// Returns what [`remember`](Self::remember) was told of a node for an equal pod, while nothing that it depends on
    /// has changed.
    fn known(&self, node: NodeIdx) -> Option<Found> {
        let _ = node;
        None
    }
    /// What the search came to on a node, and will for an equal pod while the pods on the node are the same. Not to be
    /// told of what depends on anything else, such as a budget or another node.
    fn remember(&mut self, node: NodeIdx, found: &Found) {
        let _ = (node, found);
    }
    /// Returns the pods that go already for other members of the pod's gang. They are off their nodes.
    fn earlier(&self) -> &[PodId];
}

/// PostFilter: what to do when no node fits.
pub trait PostFilter: Send + Sync {
    /// Looks for a way.
    fn post_filter(&self, evaluator: &mut dyn Evaluator) -> PostFiltered;
}

/// Permit: may a reserved pod be bound now?
pub trait Permit: Send + Sync {
    /// Decides.
    fn permit(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Permitted;
}

/// Bind: whether this plugin binds the pod. The first enabled one that does wins.
pub trait Bind: Send + Sync {
    /// Whether this plugin takes the pod. The effect itself is the framework's.
    fn binds(&self, pod: &Pod) -> bool;
}

/// Whether an event could make a refused pod fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It could.
    Queue,
    /// It cannot.
    Skip,
}

/// Which events wake the pods that this plugin refused.
pub trait Hints: Send + Sync {
    /// Returns the kinds of events it listens to.
    fn events(&self) -> EventKinds;
    /// Judges one event of these kinds. Called only for pods this plugin refused.
    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint;
}

/// A plugin with its arguments, as one profile uses it.
#[expect(missing_docs, reason = "one accessor per extension point, documented by its trait")]
pub trait Plugin: Send + Sync {
    /// Returns the name, as in the configuration.
    fn name(&self) -> &'static str;
    /// Returns the arguments in force, for the `config` endpoint.
    fn args(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }
    fn pre_enqueue(&self) -> Option<&dyn PreEnqueue> {
        None
    }
    fn queue_sort(&self) -> Option<&dyn QueueSort> {
        None
    }
    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        None
    }
    fn filter(&self) -> Option<&dyn Filter> {
        None
    }
    fn pre_score(&self) -> Option<&dyn PreScore> {
        None
    }
    fn score(&self) -> Option<&dyn Score> {
        None
    }
    fn post_filter(&self) -> Option<&dyn PostFilter> {
        None
    }
    fn reserve(&self) -> Option<&dyn Reserve> {
        None
    }
    fn pre_bind(&self) -> Option<&dyn PreBind> {
        None
    }
    fn permit(&self) -> Option<&dyn Permit> {
        None
    }
    fn bind(&self) -> Option<&dyn Bind> {
        None
    }
    fn hints(&self) -> Option<&dyn Hints> {
        None
    }
    /// Returns how gangs are scheduled. Heeded in profiles that ask the plugin at Permit.
    fn gang_rules(&self) -> Option<GangRules> {
        None
    }
    /// Whether it sorts the queue only where the configuration names it at that point.
    fn sorts_when_named(&self) -> bool {
        false
    }
}

/// Why arguments were not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}, got {value}")]
pub struct ArgsError {
    /// Path within the arguments, such as `scoringStrategy.type`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// The value that was given.
    pub value: String,
}

/// The registry's entry of a plugin.
pub trait PluginFactory: Send + Sync {
    /// Returns the name, as in the configuration.
    fn name(&self) -> &'static str;
    /// Returns one sentence on what the plugin decides.
    fn summary(&self) -> &'static str;
    /// Returns the weight of its scores in the default configuration; 0 when it does not score.
    fn default_weight(&self) -> i64 {
        0
    }
    /// Makes the plugin of a profile. `args` is the profile's `pluginConfig` entry; `Null` when absent.
    /// Returns all problems of the arguments at once.
    fn make(&self, args: &serde_json::Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>>;
    /// Returns the JSON schema of the arguments, for the `schema` endpoint.
    fn args_schema(&self) -> serde_json::Value;
    /// Makes the empty derived state, when the plugin has one.
    fn derived_state(&self) -> Option<Box<dyn DerivedState>> {
        None
    }
    /// Returns the endpoints besides `config`, `stats` and `schema`; `state` is among them.
    fn endpoints(&self) -> Vec<Endpoint>;
}
