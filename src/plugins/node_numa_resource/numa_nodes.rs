//! The NUMA nodes and CPUs of all nodes, as derived state of the cluster.
//!
//! Pods, nodes and NodeResourceTopologies may come in any order: what a pod holds counts from the moment the pod is seen,
//! and finds its cores once the topology is there.

use std::any::Any;
use std::sync::Arc;

use pellucid_cluster::HoldValue;
use pellucid_cluster::derived::{DerivedState, HookContext, Placed, Touched};
use pellucid_model::{CowMap, CustomObject, Name, Node, NodeIdx, Pages};

use super::NAME;
use super::cpus::topology::CpuTopology;
use super::facts::Facts;
use super::holding::Holding;
use super::node_settings::NodeSettings;
use super::node_topology::NodeTopology;
use super::on_node::{Holder, OnNode};

/// Number of kinds of machines that share their CPU topology. A cluster has few kinds; more have one each.
const MOST_KINDS: usize = 64;

/// The state of all nodes.
#[derive(Clone, Default)]
pub(super) struct NumaNodes {
    topologies: CowMap<Name, Arc<NodeTopology>>,
    /// The machines of which at least one node is, at most [`MOST_KINDS`].
    machines: Vec<Arc<CpuTopology>>,
    nodes: Pages<Option<Arc<OnNode>>>,
    /// By slot, as `nodes`.
    facts: Pages<Facts>,
    /// Number of nodes with a NUMA policy.
    with_policy: usize,
    /// Number of nodes that demand something of pods that ask for nothing.
    demanding: usize,
}

impl NumaNodes {
    /// Returns what is known of a node.
    #[inline]
    pub(super) fn on(&self, node: NodeIdx) -> Option<&OnNode> {
        self.nodes.get(node.index())?.as_deref()
    }

    /// Returns what most decisions read of a node.
    #[inline]
    pub(super) fn facts(&self, node: NodeIdx) -> Facts {
        self.facts.get(node.index()).copied().unwrap_or_default()
    }

    /// Returns whether some node has a NUMA policy.
    pub(super) fn has_policies(&self) -> bool {
        self.with_policy > 0
    }

    /// Returns whether some node demands something of pods that ask for nothing.
    pub(super) fn is_demanding(&self) -> bool {
        self.demanding > 0
    }

    /// What holds of all nodes and decides whether and how pods are checked at all.
    fn outlines(&self) -> [bool; 3] {
        [self.is_empty(), self.has_policies(), self.is_demanding()]
    }

    /// Returns whether there is no NodeResourceTopology.
    pub(super) fn is_empty(&self) -> bool {
        self.topologies.is_empty()
    }

    /// Iterates over the NodeResourceTopologies by name, in no particular order.
    pub(super) fn topologies(&self) -> impl Iterator<Item = (&Name, &Arc<NodeTopology>)> {
        self.topologies.iter()
    }

    /// Returns the CPUs of a topology, the same for all machines that are alike.
    fn machine(&mut self, topology: Option<&NodeTopology>) -> Option<Arc<CpuTopology>> {
        let cpus = topology?.cpus.as_ref()?;
        if let Some(known) = self.machines.iter().find(|known| ***known == *cpus) {
            return Some(known.clone());
        }
        self.machines.retain(|machine| Arc::strong_count(machine) > 1);
        let made = Arc::new(cpus.clone());
        if self.machines.len() < MOST_KINDS {
            self.machines.push(made.clone());
        }
        Some(made)
    }

    fn change(&mut self, node: NodeIdx, change: impl FnOnce(&mut OnNode)) {
        self.change_facts(node, change, |_, on| Facts::of(on));
    }

    /// Changes a node. `facts` makes its facts of those before, for changes that leave most of them.
    fn change_facts(
        &mut self,
        node: NodeIdx,
        change: impl FnOnce(&mut OnNode),
        facts: impl FnOnce(Facts, &OnNode) -> Facts,
    ) {
        let old = self.facts(node);
        self.nodes.grow(node.index() + 1);
        let Some(slot) = self.nodes.get_mut(node.index()) else { return };
        let on = Arc::make_mut(slot.get_or_insert_default());
        change(on);
        let new = facts(old, on);
        debug_assert_eq!(new, Facts::of(on), "facts follow the node");
        if on.is_empty() {
            *slot = None;
        }
        if old != new {
            let count = |all: usize, was: bool, is: bool| all + usize::from(is) - usize::from(was);
            self.with_policy = count(self.with_policy, old.has_policy, new.has_policy);
            self.demanding = count(self.demanding, old.is_demanding, new.is_demanding);
            self.facts.set(node.index(), new);
        }
    }
}

impl DerivedState for NumaNodes {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        NAME
    }

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let is_same =
            |old: &Node, new: &Node| (&old.labels, &old.annotations) == (&new.labels, &new.annotations);
        if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
            return Touched::Nothing;
        }
        let name = new.or(old).map(|n| n.name.clone()).unwrap_or_default();
        let topology = new.and_then(|_| self.topologies.get(&name).cloned());
        let before = self.outlines();
        let machine = self.machine(topology.as_deref());
        self.change(node, |on| {
            on.settings = new.map(|new| Arc::new(NodeSettings::of(new)));
            (on.topology, on.machine) = (topology, machine);
            on.refresh();
        });
        if before == self.outlines() { Touched::Nothing } else { Touched::All }
    }

    fn custom_changed(
        &mut self,
        cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let Some(object) = new.or(old).filter(|object| object.get::<NodeTopology>().is_some()) else {
            return Touched::Nothing;
        };
        let before = self.outlines();
        let topology: Option<Arc<NodeTopology>> = new.and_then(CustomObject::shared);
        match &topology {
            Some(topology) => drop(self.topologies.insert(object.name.clone(), topology.clone())),
            None => drop(self.topologies.remove(&object.name)),
        }
        let node = cx.find_node(&object.name);
        if let Some(node) = node {
            // A node without an object takes its topology when the object comes.
            let has_object = self.on(node).is_some_and(|on| on.settings.is_some());
            let topology = topology.filter(|_| has_object);
            let machine = self.machine(topology.as_deref());
            self.change(node, |on| {
                (on.topology, on.machine) = (topology, machine);
                on.refresh();
            });
        }
        // With the first topology all nodes begin to score; with the first demand all are checked.
        match node {
            _ if before != self.outlines() => Touched::All,
            Some(node) => Touched::node(node),
            None => Touched::Nothing,
        }
    }

    fn shares_holds(&self) -> bool {
        true
    }

    fn hold_left(&self, whole: &HoldValue, guests: &[HoldValue]) -> Option<HoldValue> {
        let guests = guests.iter().filter_map(|guest| guest.downcast_ref::<Holding>());
        let whole = whole.downcast_ref::<Holding>()?;
        Some(Arc::new(guests.fold(whole.clone(), |left, guest| left.less(guest))))
    }

    fn reserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.hold(placed, hold, true)
    }

    fn unreserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.hold(placed, hold, false)
    }

    fn bound_hold(
        &self,
        _cx: &HookContext<'_>,
        placed: &Placed<'_>,
        held: Option<&HoldValue>,
    ) -> Option<HoldValue> {
        let Some(read) = Holding::of(placed.pod) else { return held.cloned() };
        let is_same = |held: &&HoldValue| held.downcast_ref::<Holding>() == Some(&read);
        Some(held.filter(is_same).cloned().unwrap_or_else(|| Arc::new(read)))
    }

    fn merge(&mut self, other: Box<dyn DerivedState>) {
        debug_assert!((&*other as &dyn Any).is::<Self>(), "states of one type are merged");
    }
}

impl NumaNodes {
    fn hold(&mut self, placed: &Placed<'_>, hold: &HoldValue, begins: bool) -> Touched {
        let Ok(holding) = hold.clone().downcast::<Holding>() else { return Touched::Nothing };
        let hold = |on: &mut OnNode| on.hold(Holder { id: placed.id, holding }, begins);
        // What a node demands does not depend on its pods.
        self.change_facts(placed.node, hold, |facts, on| Facts { free: on.free_counts, ..facts });
        Touched::node(placed.node)
    }
}
