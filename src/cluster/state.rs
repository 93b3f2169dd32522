//! The state: which nodes there are, which pods take room on them, and in which stage.
//!
//! One writer. Reading is plain field access; every change of what takes room goes through
//! [`Cluster::place`] and [`Cluster::release`], which keep columns, pod lists, derived states, the change
//! log and the undo log in step. How watch events become such changes is in `apply`.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{CowMap, GangKey, Name, Node, NodeIdx, Pages, Pod, PodId, PodKey, stable_hash};
use smallvec::SmallVec;

use crate::changes::{ChangeLog, Changed};
use crate::columns::Columns;
use crate::derived::DerivedState;
use crate::gangs::{Gangs, Rosters};
use crate::input::Quarantined;
use crate::nominator::Nominator;
use crate::objects::Objects;
use crate::preemptions::Preemptions;
use crate::selected_keys::{KeyCounts, SelectedKeys};
use crate::shapes::{ShapeId, Shapes};
use crate::stage::{Hold, Stage};
use crate::undo::{Undo, UndoLog};

/// A pod in the state.
#[derive(Clone, Debug)]
pub struct PodRecord {
    /// The object.
    pub pod: Arc<Pod>,
    /// Its shape.
    pub shape: ShapeId,
    /// Where it takes room.
    pub node: Option<NodeIdx>,
    /// Stage.
    pub stage: Stage,
    /// What plugins hold for it, in the order of their Reserve.
    pub reservations: SmallVec<[Hold; 1]>,
}

/// A node slot. A node that went while pods are on it keeps its slot, without an object.
#[derive(Clone, Debug, Default)]
pub struct NodeSlot {
    /// Name; empty when the slot is free.
    pub name: Name,
    /// The object, when there is one.
    pub node: Option<Arc<Node>>,
    /// Pods that take room on it, in no order.
    pub pods: Arc<Vec<PodId>>,
    /// hash(seed, name): the order in which equal nodes are taken, the greatest first.
    pub tie: u64,
}

/// Kind, namespace and name.
type QuarantineKey = (&'static str, Name, Arc<str>);

/// The state. See the module.
pub struct Cluster {
    pub(super) nodes: Pages<NodeSlot>,
    pub(super) node_index: CowMap<Name, NodeIdx>,
    pub(super) free_nodes: Vec<NodeIdx>,
    /// The tie order of each slot (`NodeSlot::tie`), side by side for whoever compares many.
    pub(super) ties: Arc<Vec<u64>>,
    /// Slots with a node object, ascending.
    pub(super) present: Arc<Vec<NodeIdx>>,
    /// The same slots by name, for whoever shows some of them.
    pub(super) by_name: Arc<Vec<NodeIdx>>,
    pub(super) columns: Columns,
    pub(super) pods: Pages<Option<PodRecord>>,
    pub(super) pod_index: CowMap<PodKey, PodId>,
    pub(super) free_pods: Vec<PodId>,
    pub(super) shapes: Shapes,
    pub(super) derived: Vec<Box<dyn DerivedState>>,
    pub(super) changes: ChangeLog,
    pub(super) undo: UndoLog,
    pub(super) objects: Objects,
    nominator: Nominator,
    preemptions: Preemptions,
    pub(super) gangs: Gangs,
    /// What the members of each gang say. Not copied for readers.
    pub(super) rosters: Rosters,
    /// Members of gangs whose pods ended, by the pod. Not copied for readers: a gang lists its own.
    pub(super) ended: FxHashMap<PodKey, GangKey>,
    /// Label keys that some selector over pods reads.
    pub(super) selected: SelectedKeys,
    pub(super) key_counts: KeyCounts,
    /// Scheduler names whose pods we place.
    pub(super) ours: Arc<FxHashSet<Name>>,
    /// Objects we cannot read, by kind, namespace and name.
    pub(super) quarantined: Arc<BTreeMap<QuarantineKey, Quarantined>>,
    seed: u64,
}

impl Cluster {
    /// Makes an empty state that places the pods of the schedulers named in `ours`.
    pub fn new(seed: u64, ours: impl IntoIterator<Item = Name>, derived: Vec<Box<dyn DerivedState>>) -> Self {
        Self {
            nodes: Pages::default(),
            node_index: CowMap::default(),
            free_nodes: Vec::new(),
            ties: Arc::default(),
            present: Arc::default(),
            by_name: Arc::default(),
            columns: Columns::default(),
            pods: Pages::default(),
            pod_index: CowMap::default(),
            free_pods: Vec::new(),
            shapes: Shapes::default(),
            derived,
            changes: ChangeLog::default(),
            undo: UndoLog::default(),
            objects: Objects::default(),
            nominator: Nominator::default(),
            preemptions: Preemptions::default(),
            gangs: Gangs::default(),
            rosters: Rosters::complete(),
            ended: FxHashMap::default(),
            selected: SelectedKeys::default(),
            key_counts: KeyCounts::complete(),
            ours: Arc::new(ours.into_iter().collect()),
            quarantined: Arc::default(),
            seed,
        }
    }

    /// Returns a copy for readers (or for planning aside): it shares every page that did not change.
    /// Its change log and undo log are empty.
    pub fn fork(&self) -> Self {
        Self {
            nodes: self.nodes.clone(),
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
            changes: ChangeLog::default(),
            undo: UndoLog::default(),
            objects: self.objects.clone(),
            nominator: self.nominator.clone(),
            preemptions: self.preemptions.clone(),
            gangs: self.gangs.clone(),
            rosters: Rosters::on_demand(),
            ended: FxHashMap::default(),
            selected: self.selected.clone(),
            key_counts: KeyCounts::default(),
            ours: self.ours.clone(),
            quarantined: self.quarantined.clone(),
            seed: self.seed,
        }
    }

    // === reading ===

    /// Returns the slots that have a node object, ascending.
    pub fn present(&self) -> &[NodeIdx] {
        &self.present
    }

    /// Returns the slots that have a node object, by name.
    pub fn by_name(&self) -> &[NodeIdx] {
        &self.by_name
    }

    /// Returns the number of slots, used or not: masks over nodes are this long.
    pub fn n_slots(&self) -> usize {
        self.nodes.len()
    }

    /// Returns a slot.
    pub fn slot(&self, node: NodeIdx) -> &NodeSlot {
        &self.nodes[node.index()]
    }

    /// Returns `NodeSlot::tie` of every slot.
    pub fn ties(&self) -> &[u64] {
        &self.ties
    }

    /// Returns the object of a present node.
    pub fn node(&self, node: NodeIdx) -> Option<&Arc<Node>> {
        self.nodes.get(node.index()).and_then(|slot| slot.node.as_ref())
    }

    /// Returns the slot of a name, whether or not it has an object.
    pub fn find_node(&self, name: &Name) -> Option<NodeIdx> {
        self.node_index.get(name).copied()
    }

    /// Returns the columns.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns a pod's record.
    pub fn pod(&self, id: PodId) -> Option<&PodRecord> {
        self.pods.get(id.index()).and_then(Option::as_ref)
    }

    /// Returns the number of a pod.
    pub fn find_pod(&self, key: &PodKey) -> Option<PodId> {
        self.pod_index.get(key).copied()
    }

    /// Iterates over all pods in the state, in no order that means anything.
    pub fn pods(&self) -> impl Iterator<Item = (PodId, &PodRecord)> {
        self.pods.iter().enumerate().filter_map(|(i, r)| r.as_ref().map(|r| (PodId(i as u32), r)))
    }

    /// Returns the number of pod slots: arrays over pods are this long.
    pub fn n_pod_slots(&self) -> usize {
        self.pods.len()
    }

    /// Returns the table of shapes.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Returns the log of changed nodes.
    pub fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// Returns a plugin's derived state.
    pub fn derived<S: DerivedState>(&self) -> Option<&S> {
        self.derived.iter().find_map(|d| d.as_any().downcast_ref())
    }

    /// Returns the objects beside pods and nodes.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Returns which pending pods are nominated to which nodes.
    pub fn nominator(&self) -> &Nominator {
        &self.nominator
    }

    /// The same, to be changed. Not undone by overlays: nominations change between attempts only.
    pub fn nominator_mut(&mut self) -> &mut Nominator {
        &mut self.nominator
    }

    /// Returns the book of preemptions.
    pub fn preemptions(&self) -> &Preemptions {
        &self.preemptions
    }

    /// The same, to be written. Not undone by overlays.
    pub fn preemptions_mut(&mut self) -> &mut Preemptions {
        &mut self.preemptions
    }

    /// Returns the seed of the tie order.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the label keys that some selector over pods reads.
    pub fn selected_keys(&self) -> &SelectedKeys {
        &self.selected
    }

    /// Iterates over the objects that cannot be read.
    pub fn quarantined(&self) -> impl Iterator<Item = &Quarantined> {
        self.quarantined.values()
    }

    /// Whether pods with this scheduler name are ours to place.
    pub fn is_ours(&self, scheduler_name: &Name) -> bool {
        self.ours.contains(scheduler_name)
    }

    // === changing what takes room ===

    /// Makes a pod take room on a node, in a stage. The pod must not be placed.
    pub fn place(&mut self, id: PodId, node: NodeIdx, stage: Stage) {
        let Some(record) = &mut self.pods[id.index()] else { return };
        debug_assert!(record.node.is_none(), "{} is placed already", record.pod.key);
        self.undo.push(Undo::Release { id, stage: record.stage });
        record.node = Some(node);
        let from = std::mem::replace(&mut record.stage, stage);
        let pod = record.pod.clone();
        self.gangs.stage_changed(&pod, from, stage);
        self.columns.take(node, &pod.spec.requests, 1);
        Arc::make_mut(&mut self.nodes[node.index()].pods).push(id);
        for derived in &mut self.derived {
            derived.pod_added(node, &pod);
        }
        self.changes.push(node, Changed::Usage);
    }

    /// The same on a node by name, which may have no object.
    pub fn place_by_name(&mut self, id: PodId, node: &Name, stage: Stage) {
        let node = self.slot_of(node);
        self.place(id, node, stage);
    }

    /// Holds something for a placed pod, on behalf of a plugin.
    pub fn reserve(&mut self, id: PodId, what: Hold) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        record.reservations.push(what.clone());
        self.undo.push(Undo::Unreserve { id });
        for derived in &mut self.derived {
            derived.reserved(id, &what);
        }
    }

    /// Gives up what is held for a pod, the newest first.
    pub fn unreserve_all(&mut self, id: PodId) {
        while self.unreserve_last(id) {}
    }

    fn unreserve_last(&mut self, id: PodId) -> bool {
        let record = self.pods.get(id.index()).and_then(Option::as_ref);
        if record.is_none_or(|r| r.reservations.is_empty()) {
            return false;
        }
        let record = self.pods.get_mut(id.index()).and_then(Option::as_mut);
        let Some(what) = record.and_then(|r| r.reservations.pop()) else { return false };
        for derived in self.derived.iter_mut().rev() {
            derived.unreserved(id, &what);
        }
        self.undo.push(Undo::Reserve { id, what });
        true
    }

    /// Makes a pod take no more room; it is pending again, and nothing is held for it. Returns where it was.
    pub fn release(&mut self, id: PodId) -> Option<NodeIdx> {
        self.unreserve_all(id);
        let record = self.pods.get_mut(id.index())?.as_mut()?;
        let node = record.node.take()?;
        self.undo.push(Undo::Place { id, node, stage: record.stage });
        let from = std::mem::replace(&mut record.stage, Stage::Pending);
        let pod = record.pod.clone();
        self.gangs.stage_changed(&pod, from, Stage::Pending);
        self.columns.take(node, &pod.spec.requests, -1);
        for derived in self.derived.iter_mut().rev() {
            derived.pod_removed(node, &pod);
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
    pub fn set_stage(&mut self, id: PodId, stage: Stage) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        debug_assert!(record.stage.is_placed() && stage.is_placed());
        let from = std::mem::replace(&mut record.stage, stage);
        self.undo.push(Undo::Stage { id, stage: from });
        self.gangs.stage_changed(&record.pod, from, stage);
    }

    /// Starts an overlay: what changes from here on can be undone. Overlays nest.
    pub fn begin(&mut self) -> Overlay {
        self.undo.begin()
    }

    /// Keeps the changes of an overlay.
    pub fn commit(&mut self, overlay: Overlay) {
        for node in self.undo.commit(overlay) {
            self.free_ghost(node);
        }
    }

    /// Changes the state, asks something about it, and undoes the change: as if nothing had happened.
    pub fn probe<T>(&mut self, ask: impl FnOnce(&mut Self) -> T) -> T {
        let trial = self.begin_trial();
        let answer = ask(self);
        self.end_trial(trial);
        answer
    }

    /// Begins an overlay that is going to be undone. The change log is spared, so no row that is kept becomes
    /// stale by a question.
    pub fn begin_trial(&mut self) -> TrialOverlay {
        TrialOverlay { paused: self.changes.pause(), overlay: self.begin() }
    }

    /// Undoes all since.
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
                Undo::Place { id, node, stage } => self.place(id, node, stage),
                Undo::Stage { id, stage } => self.set_stage(id, stage),
                Undo::Reserve { id, what } => self.reserve(id, what),
                Undo::Unreserve { id } => drop(self.unreserve_last(id)),
            }
        }
        self.undo.end_undo();
    }

    // === slots ===

    pub(super) fn slot_of(&mut self, name: &Name) -> NodeIdx {
        if let Some(known) = self.find_node(name) {
            return known;
        }
        let node = self.free_nodes.pop().unwrap_or(NodeIdx(self.nodes.len() as u32));
        let tie = tie_hash(self.seed, name);
        let ties = Arc::make_mut(&mut self.ties);
        ties.resize(ties.len().max(node.index() + 1), 0);
        ties[node.index()] = tie;
        let slot = NodeSlot { name: name.clone(), tie, ..NodeSlot::default() };
        self.nodes.set(node.index(), slot);
        self.columns.grow(self.nodes.len());
        self.node_index.insert(name.clone(), node);
        node
    }

    /// Frees the slot of a node that has neither an object nor pods. Not within an overlay: its undo
    /// log may still name the slot.
    pub(super) fn free_ghost(&mut self, node: NodeIdx) {
        let slot = &self.nodes[node.index()];
        if slot.node.is_none() && slot.pods.is_empty() && !slot.name.is_empty() && !self.undo.is_open() {
            self.node_index.remove(&slot.name.clone());
            self.nodes[node.index()] = NodeSlot::default();
            self.free_nodes.push(node);
        }
    }
}

pub use crate::undo::Overlay;

/// An overlay that ends in [`Cluster::end_trial`].
#[derive(Debug)]
#[must_use = "a trial is undone in end_trial"]
pub struct TrialOverlay {
    overlay: Overlay,
    paused: bool,
}

/// The order among equal nodes. Stable across machines and versions, because decisions depend on it.
pub fn tie_hash(seed: u64, name: &str) -> u64 {
    stable_hash::seeded(seed, name)
}
