//! The state: which nodes exist, which pods use them, and in which stage each pod is.
//!
//! Invariant: one writer. Readers access fields directly; every change of node usage goes through
//! [`Cluster::place`] and [`Cluster::release`], which keep columns, pod lists, derived states, the change
//! log and the undo log in step. `apply` turns watch events into such changes.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::requests::PodRequests;
use pellucid_model::{
    CowIndex, CowMap, GangKey, InPage, Name, Node, NodeIdx, Now, Pages, Pod, PodId, PodKey,
};
use smallvec::SmallVec;

use crate::changes::{ChangeLog, Changed};
use crate::columns::Columns;
use crate::content_hash::NodeHash;
use crate::custom::CustomObjects;
use crate::derived::{DerivedState, Placed, StateIndex};
use crate::gangs::{DeclarationIndex, Gangs};
use crate::given::Given;
use crate::hold::Hold;
use crate::input::Quarantined;
use crate::nominator::Nominator;
use crate::objects::Objects;
use crate::outside::OutsidePods;
use crate::preemptions::Preemptions;
use crate::selected_keys::{KeyCounts, SelectedKeys};
use crate::shapes::{ShapeId, Shapes};
use crate::stage::Stage;
use crate::undo::{Undo, UndoLog};

/// A pod in the state, pending or placed.
#[derive(Clone, Debug)]
pub struct PodRecord {
    /// The pod object as last applied.
    pub pod: Arc<Pod>,
    /// The shape of its spec.
    pub shape: ShapeId,
    /// The node whose resources it uses; `None` while it is pending.
    pub node: Option<NodeIdx>,
    /// How far the pod is; [`Stage::Pending`] exactly when `node` is `None`.
    pub stage: Stage,
    /// When it took its place, as wall time.
    pub since: Duration,
    /// What plugins hold for the pod, in the order of their Reserve.
    pub holds: SmallVec<[Hold; 1]>,
    /// What it gives up to others, which stand in its room ([`DerivedState::given_up`](crate::DerivedState::given_up)).
    pub given: Option<Arc<Given>>,
    /// The pod in whose room it stands.
    pub host: Option<PodId>,
}

/// A node slot. A node that is deleted while pods are on it keeps its slot, without an object.
#[derive(Clone, Debug, Default)]
pub struct NodeSlot {
    /// The node object; `None` when the node does not exist or cannot be read.
    pub node: Option<Arc<Node>>,
    /// The hash of `node`, for readers of the state's hash.
    pub(super) hash: NodeHash,
    /// Pods that use the node, in no particular order.
    pub pods: Arc<Vec<PodId>>,
    /// hash(seed, name): breaks ties between nodes of equal score; the greatest wins.
    pub tie: u64,
}

/// Kind, namespace and name.
type QuarantineKey = (&'static str, Name, Arc<str>);

/// The state of the cluster, owned by the scheduling thread; readers get a [`fork`](Self::fork).
#[derive(Default)]
pub struct Cluster {
    pub(super) nodes: Pages<NodeSlot>,
    /// Names of the nodes; empty where the slot is free. They stand apart because orders keep pages of them.
    pub(super) node_names: Pages<Name>,
    pub(super) node_index: CowMap<Name, NodeIdx>,
    pub(super) free_nodes: Vec<NodeIdx>,
    /// `NodeSlot::tie` of every slot in one array, for code that compares many.
    pub(super) ties: Arc<Vec<u64>>,
    /// Slots with a node object, ascending.
    pub(super) present: Arc<Vec<NodeIdx>>,
    /// The same slots sorted by name, for output.
    pub(super) by_name: Arc<Vec<NodeIdx>>,
    pub(super) columns: Columns,
    pub(super) pods: Pages<Option<PodRecord>>,
    pub(super) pod_index: CowIndex,
    pub(super) free_pods: Vec<PodId>,
    pub(super) shapes: Shapes,
    pub(super) derived: Vec<Box<dyn DerivedState>>,
    pub(super) state_index: Arc<StateIndex>,
    pub(super) changes: ChangeLog,
    pub(super) undo: UndoLog,
    pub(super) objects: Objects,
    nominator: Nominator,
    preemptions: Preemptions,
    pub(super) gangs: Gangs,
    /// What the members of each gang declare. Not copied for readers.
    pub(super) declaration_index: DeclarationIndex,
    /// Gangs of pods that ended while their objects still exist. Not copied for readers: each gang lists its own.
    pub(super) ended: FxHashMap<PodKey, GangKey>,
    /// Pods that the API server has and the state leaves out.
    pub(super) outside: OutsidePods,
    /// Label keys that some pod selector reads.
    pub(super) selected: SelectedKeys,
    pub(super) key_counts: KeyCounts,
    /// Scheduler names whose pods this scheduler places.
    pub(super) ours: Arc<FxHashSet<Name>>,
    /// Objects that could not be read, by kind, namespace and name.
    pub(super) quarantined: Arc<BTreeMap<QuarantineKey, Quarantined>>,
    /// Objects of kinds that plugins bring.
    pub(super) custom: CustomObjects,
    /// The time of the last input, attempt or tick.
    pub(super) now: Now,
    /// Wall time up to which deadlines of plugins have been handled.
    pub(super) plugin_time: Duration,
    /// Pods of a copy that ask for nothing any more.
    pub(super) withdrawn: FxHashSet<PodId>,
    pub(super) seed: u64,
}

impl Cluster {
    /// Makes an empty state that holds pending pods of the schedulers named in `ours`.
    pub fn new(seed: u64, ours: impl IntoIterator<Item = Name>, derived: Vec<Box<dyn DerivedState>>) -> Self {
        let state_index = Arc::new(StateIndex::of(&derived));
        Self { derived, state_index, ours: Arc::new(ours.into_iter().collect()), seed, ..Self::default() }
    }

    /// Returns a copy for readers or for simulations, which shares every page that is unchanged since.
    /// Its change log and undo log are empty.
    pub fn fork(&self) -> Self {
        Self {
            nodes: self.nodes.clone(),
            node_names: self.node_names.clone(),
            node_index: self.node_index.clone(),
            free_nodes: self.free_nodes.clone(),
            ties: self.ties.clone(),
            present: self.present.clone(),
            by_name: self.by_name.clone(),
            columns: self.columns.clone(),
            pods: self.pods.clone(),
            pod_index: self.pod_index.clone(),
            free_pods: Vec::new(),
            shapes: self.shapes.clone(),
            derived: self.derived.iter().map(|d| d.fork()).collect(),
            state_index: self.state_index.clone(),
            changes: ChangeLog::default(),
            undo: UndoLog::default(),
            objects: self.objects.clone(),
            nominator: self.nominator.clone(),
            preemptions: self.preemptions.clone(),
            gangs: self.gangs.clone(),
            declaration_index: DeclarationIndex::on_demand(),
            ended: FxHashMap::default(),
            outside: self.outside.fork(),
            selected: self.selected.clone(),
            key_counts: KeyCounts::unknown(),
            ours: self.ours.clone(),
            quarantined: self.quarantined.clone(),
            custom: self.custom.clone(),
            now: self.now,
            plugin_time: self.plugin_time,
            withdrawn: self.withdrawn.clone(),
            seed: self.seed,
        }
    }

    // === reading ===

    /// Returns the slots that have a node object, in ascending order.
    #[inline]
    pub fn present(&self) -> &[NodeIdx] {
        &self.present
    }

    /// Returns the slots that have a node object, sorted by node name.
    #[inline]
    pub fn by_name(&self) -> &[NodeIdx] {
        &self.by_name
    }

    /// Returns the number of slots, used or free; masks over nodes have this length.
    #[inline]
    pub fn n_slots(&self) -> usize {
        self.nodes.len()
    }

    /// Returns a slot. Panics when `node` was never given out.
    #[inline]
    pub fn slot(&self, node: NodeIdx) -> &NodeSlot {
        &self.nodes[node.index()]
    }

    /// Returns the name of a slot's node; empty when the slot is free. Panics when `node` was never given out.
    #[inline]
    pub fn node_name(&self, node: NodeIdx) -> &Name {
        &self.node_names[node.index()]
    }

    /// Returns the same name to be kept, at the cost of a count that the names of other nodes share.
    #[inline]
    pub fn node_name_in_page(&self, node: NodeIdx) -> InPage<Name> {
        self.node_names.in_page(node.index())
    }

    /// Returns `NodeSlot::tie` of every slot, by slot number.
    #[inline]
    pub fn ties(&self) -> &[u64] {
        &self.ties
    }

    /// Returns the node object of a slot, or `None` when it has none.
    #[inline]
    pub fn node(&self, node: NodeIdx) -> Option<&Arc<Node>> {
        self.nodes.get(node.index()).and_then(|slot| slot.node.as_ref())
    }

    /// Returns the slot of a node name, whether or not the node has an object.
    #[inline]
    pub fn find_node(&self, name: &Name) -> Option<NodeIdx> {
        self.node_index.get(name).copied()
    }

    /// Returns the resource columns of all nodes.
    #[inline]
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns a pod's record, or `None` when the slot is free.
    #[inline]
    pub fn pod(&self, id: PodId) -> Option<&PodRecord> {
        self.pods.get(id.index()).and_then(Option::as_ref)
    }

    /// Returns the id of the pod with this namespace and name.
    #[inline]
    pub fn find_pod(&self, key: &PodKey) -> Option<PodId> {
        let is_it = |id: u32| self.pod(PodId(id)).is_some_and(|record| record.pod.key == *key);
        self.pod_index.find(key, is_it).map(PodId)
    }

    /// Iterates over all pods in the state, in no meaningful order.
    #[inline]
    pub fn pods(&self) -> impl Iterator<Item = (PodId, &PodRecord)> {
        self.pods.iter().enumerate().filter_map(|(i, r)| r.as_ref().map(|r| (PodId(i as u32), r)))
    }

    /// Returns the number of pod slots, used or free; arrays over pods have this length.
    #[inline]
    pub fn n_pod_slots(&self) -> usize {
        self.pods.len()
    }

    /// Returns the table of shapes.
    #[inline]
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Returns the log of changed nodes, for caches that catch up.
    #[inline]
    pub fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// Returns the derived state of type `S`, or `None` when no plugin registered it.
    pub fn derived<S: DerivedState>(&self) -> Option<&S> {
        // Asked for in loops over rows, so the types are compared before a state is touched.
        let at = self.state_index.of_type::<S>()?;
        (&*self.derived[at] as &dyn Any).downcast_ref()
    }

    /// Returns the objects other than pods and nodes.
    #[inline]
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns the objects of kinds that plugins bring.
    #[inline]
    pub fn custom_objects(&self) -> &CustomObjects {
        &self.custom
    }

    /// Returns the time of the last input, attempt or tick.
    #[inline]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Sets the time. Pods that are placed from now on are placed at that time.
    #[inline]
    pub fn set_now(&mut self, now: Now) {
        self.now = now;
    }

    /// Returns the nominator, which knows the pods nominated to each node.
    #[inline]
    pub fn nominator(&self) -> &Nominator {
        &self.nominator
    }

    /// Returns the nominator for writing. Overlays do not undo it: nominations change only between attempts.
    #[inline]
    pub fn nominator_mut(&mut self) -> &mut Nominator {
        &mut self.nominator
    }

    /// Returns the record of preemptions.
    #[inline]
    pub fn preemptions(&self) -> &Preemptions {
        &self.preemptions
    }

    /// Returns the record of preemptions for writing. Overlays do not undo it.
    #[inline]
    pub fn preemptions_mut(&mut self) -> &mut Preemptions {
        &mut self.preemptions
    }

    /// Returns the seed of [`NodeSlot::tie`].
    #[inline]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the label keys that some pod selector reads.
    #[inline]
    pub fn selected_keys(&self) -> &SelectedKeys {
        &self.selected
    }

    /// Iterates over the objects that could not be read.
    #[inline]
    pub fn quarantined(&self) -> impl Iterator<Item = &Quarantined> {
        self.quarantined.values()
    }

    /// Returns the pods that the API server has and the state leaves out.
    #[inline]
    pub fn outside(&self) -> &OutsidePods {
        &self.outside
    }

    /// Returns whether this scheduler places pods with this scheduler name.
    #[inline]
    pub fn is_ours(&self, scheduler_name: &Name) -> bool {
        self.ours.contains(scheduler_name)
    }

    // === placing and releasing pods ===

    /// Has the processor fetch what changes of a node that is chosen and about to get a pod with these requests.
    #[inline]
    pub fn prefetch(&self, node: NodeIdx, requests: &PodRequests) {
        self.nodes.prefetch(node.index());
        self.columns.prefetch(node, requests);
    }

    /// Places a pod on a node, in a stage. The pod must not be placed yet.
    pub fn place(&mut self, id: PodId, node: NodeIdx, stage: Stage) {
        self.place_since(id, node, stage, self.now.wall);
    }

    /// Places a pod that took its place at a time.
    pub(crate) fn place_since(&mut self, id: PodId, node: NodeIdx, stage: Stage, since: Duration) {
        let Some(record) = &mut self.pods[id.index()] else { return };
        debug_assert!(record.node.is_none(), "{} is placed already", record.pod.key);
        self.undo.push(Undo::Release { id, stage: record.stage });
        record.node = Some(node);
        record.since = since;
        let from = std::mem::replace(&mut record.stage, stage);
        let (pod, given) = (record.pod.clone(), record.given.clone());
        self.columns.take(node, &record.taken(), 1);
        self.gangs.stage_changed(&pod, from, stage);
        Arc::make_mut(&mut self.nodes[node.index()].pods).push(id);
        let placed = Placed { id, pod: &pod, node, stage, since, given: given.as_deref() };
        for derived in &mut self.derived {
            derived.pod_added(&placed);
        }
        self.changes.push(node, Changed::Usage);
    }

    /// Places a pod that is bound, and asks the plugins what they hold for it.
    pub(crate) fn place_bound(&mut self, id: PodId, node: NodeIdx) {
        self.place(id, node, Stage::Bound);
        self.read_holds(id);
        self.settle_given();
    }

    /// Places a pod on the node with this name, which need not have an object.
    #[inline]
    pub fn place_by_name(&mut self, id: PodId, node: &Name, stage: Stage) {
        let node = self.slot_of(node);
        self.place(id, node, stage);
    }

    /// Removes a pod from its node: the pod is pending again, and nothing is held for it. Returns the node it was on.
    pub fn release(&mut self, id: PodId) -> Option<NodeIdx> {
        self.unreserve_all(id);
        let record = self.pods.get_mut(id.index())?.as_mut()?;
        let node = record.node.take()?;
        let since = record.since;
        self.undo.push(Undo::Place { id, node, stage: record.stage, since });
        let from = std::mem::replace(&mut record.stage, Stage::Pending);
        let (pod, given) = (record.pod.clone(), record.given.clone());
        self.columns.take(node, &record.taken(), -1);
        self.gangs.stage_changed(&pod, from, Stage::Pending);
        let placed = Placed { id, pod: &pod, node, stage: from, since, given: given.as_deref() };
        for derived in self.derived.iter_mut().rev() {
            derived.pod_removed(&placed);
        }
        let pods = Arc::make_mut(&mut self.nodes[node.index()].pods);
        if let Some(at) = pods.iter().rposition(|p| *p == id) {
            pods.swap_remove(at);
        }
        self.changes.push(node, Changed::Usage);
        self.free_ghost(node);
        Some(node)
    }

    /// Moves a placed pod to another stage on the same node.
    #[inline]
    pub fn set_stage(&mut self, id: PodId, stage: Stage) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        debug_assert!(record.stage.is_placed() && stage.is_placed());
        let from = std::mem::replace(&mut record.stage, stage);
        self.undo.push(Undo::Stage { id, stage: from });
        self.gangs.stage_changed(&record.pod, from, stage);
    }

    /// Starts an overlay: changes from here on can be undone. Overlays nest.
    #[inline]
    pub fn begin(&mut self) -> Overlay {
        self.undo.begin()
    }

    /// Keeps the changes of an overlay, and ends it.
    #[inline]
    pub fn commit(&mut self, overlay: Overlay) {
        if self.undo.commit(overlay) {
            self.undo.take_left().into_iter().for_each(|node| self.free_ghost(node));
        }
    }

    /// Changes the state, evaluates something on it, and undoes the change, leaving no trace.
    pub fn probe<T>(&mut self, ask: impl FnOnce(&mut Self) -> T) -> T {
        let trial = self.begin_trial();
        let answer = ask(self);
        self.end_trial(trial);
        answer
    }

    /// Begins an overlay that is always undone. The change log records nothing meanwhile, so no cached result
    /// becomes stale.
    #[inline]
    pub fn begin_trial(&mut self) -> TrialOverlay {
        TrialOverlay { paused: self.changes.pause(), overlay: self.begin() }
    }

    /// Undoes all changes since [`begin_trial`](Self::begin_trial).
    #[inline]
    pub fn end_trial(&mut self, trial: TrialOverlay) {
        self.rollback(trial.overlay);
        self.changes.resume(trial.paused);
    }

    /// Undoes the changes of an overlay, newest first.
    pub fn rollback(&mut self, overlay: Overlay) {
        for entry in self.undo.take_back(overlay) {
            match entry {
                Undo::Release { id, stage } => {
                    self.release(id);
                    if let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) {
                        record.stage = stage;
                    }
                }
                Undo::Place { id, node, stage, since } => self.place_since(id, node, stage, since),
                Undo::Stage { id, stage } => self.set_stage(id, stage),
                Undo::Reserve { id, hold } => self.reserve(id, hold),
                Undo::Unreserve { id } => drop(self.unreserve_last(id)),
                Undo::Give { id, given } => self.give(id, given),
                Undo::SetHold { id, hold } => self.set_hold(id, hold),
            }
        }
        self.undo.end_undo();
    }
}

pub use crate::undo::{Overlay, TrialOverlay};
