//! The rows of all nodes, as derived state of the cluster: made of Devices and Nodes, and kept in step with the holds of
//! pods. A changed Device makes one row anew.

use std::any::Any;
use std::sync::Arc;

use pellucid_cluster::HoldValue;
use pellucid_cluster::derived::{DerivedState, HookContext, Placed, Touched};
use pellucid_framework::View;
use pellucid_model::pages::InPage;
use pellucid_model::{CowMap, CustomObject, Name, Node, NodeIdx, Pages};

use super::NAME;
use super::allocation::{Allocation, DEVICE_ALLOCATED};
use super::allocator::ScoringStrategy;
use super::device::{Device, GPU_MODEL, GPU_VENDOR, PARTITION_POLICY, PartitionPolicy};
use super::hints::ISOLATION_PROVIDER;
use super::request::{Plain, Request};
use super::row::{Glance, NodeFacts, Pair, PodOnCards, Row};

/// The rows of all nodes.
#[derive(Clone, Default)]
pub(super) struct NodeDevices {
    /// By name.
    devices: CowMap<Name, Arc<Device>>,
    nodes: Pages<Row>,
    /// By node. An order to bind a pod takes the Device from here, as a user of a page of them: the Device itself lies far away.
    reports: Pages<Option<Arc<Device>>>,
}

impl NodeDevices {
    /// Returns the row of a node that has a Device; `None` for others, whose resources are ordinary ones.
    #[inline]
    pub(super) fn row(&self, node: NodeIdx) -> Option<&Row> {
        self.nodes.get(node.index()).filter(|row| row.glance().has_device)
    }

    /// Returns the same by what a plugin may see.
    #[inline]
    pub(super) fn row_in<'a>(view: View<'a>, node: NodeIdx) -> Option<&'a Row> {
        view.state::<Self>()?.row(node)
    }

    /// Has the processor fetch the row of a node.
    pub(super) fn prefetch(&self, node: NodeIdx) {
        if let Some(row) = self.nodes.get(node.index()) {
            row.prefetch();
        }
    }

    /// Returns what of a node that has a Device is asked most.
    #[inline]
    pub(super) fn glance(&self, node: NodeIdx) -> Option<&Glance> {
        self.row(node).map(Row::glance)
    }

    /// Returns the index of the first node of which a glance does not tell that a plain request fits.
    pub(super) fn first_uncertain(&self, plain: Plain, nodes: &[NodeIdx]) -> Option<usize> {
        // A node without a Device has nothing left, so that it needs no look of its own.
        let fits = |node: &NodeIdx| self.nodes.get(node.index()).is_some_and(|row| row.glance().fits(plain));
        nodes.iter().position(|node| !fits(node))
    }

    /// Scores nodes for a request of two ordinary amounts, up to the first whose GPUs have others. Returns how many it scored. A
    /// function of its own, since what else a caller keeps in registers costs more than the call.
    #[inline(never)]
    pub(super) fn score_pairs<const IS_LEAST: bool>(
        &self,
        pair: Pair,
        nodes: &[NodeIdx],
        out: &mut [i64],
    ) -> usize {
        let strategy =
            if IS_LEAST { ScoringStrategy::LeastAllocated } else { ScoringStrategy::MostAllocated };
        for (at, (node, score)) in nodes.iter().zip(out).enumerate() {
            let row = self.nodes.get(node.index());
            let Some(known) = row.and_then(|row| row.glance().score_pair(pair, strategy)) else { return at };
            *score = known;
        }
        nodes.len()
    }

    /// Returns what is known of a node, with or without a Device.
    pub(super) fn known(&self, node: NodeIdx) -> Option<&Row> {
        self.nodes.get(node.index()).filter(|row| !row.is_empty())
    }

    /// Returns the Device of a node that had one, or has.
    pub(super) fn report(&self, node: NodeIdx) -> Option<InPage<Option<Arc<Device>>>> {
        (node.index() < self.reports.len()).then(|| self.reports.in_page(node.index()))
    }

    /// Returns whether no node has a Device.
    pub(super) fn is_idle(&self) -> bool {
        self.devices.is_empty()
    }

    /// Changes what a row is made of, and makes it anew.
    fn remake(&mut self, node: NodeIdx, facts: Option<NodeFacts>, device: Option<Arc<Device>>) {
        self.reports.set(node.index(), device.clone());
        self.change(node, |row| {
            row.describe(device, facts);
            row.rebuild();
        });
    }

    fn change(&mut self, node: NodeIdx, change: impl FnOnce(&mut Row)) {
        if node.index() >= self.nodes.len() {
            self.nodes.grow(node.index() + 1);
        }
        let row = &mut self.nodes[node.index()];
        change(row);
        row.note_left();
    }
}

fn facts(node: &Node) -> NodeFacts {
    let label = |key: &str| node.labels.get(&key.into());
    let is_nvidia = label(GPU_VENDOR).is_none_or(|vendor| ["", "nvidia"].contains(&vendor.as_str()));
    NodeFacts {
        policy: label(PARTITION_POLICY).and_then(|text| PartitionPolicy::read(text)),
        nvidia_model: label(GPU_MODEL).filter(|_| is_nvidia).cloned(),
        isolation: label(ISOLATION_PROVIDER).cloned(),
    }
}

impl DerivedState for NodeDevices {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        NAME
    }

    fn merge(&mut self, _other: Box<dyn DerivedState>) {}

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let now = new.map(facts);
        let is_same = old.is_some() && new.is_some() && old.map(facts) == now;
        if is_same || (new.is_none() && self.known(node).is_none()) {
            return Touched::Nothing;
        }
        let device = new.and_then(|new| self.devices.get(&new.name).cloned());
        self.remake(node, now, device);
        Touched::Nothing
    }

    fn custom_changed(
        &mut self,
        cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let Some(object) = new.or(old).filter(|object| object.get::<Device>().is_some()) else {
            return Touched::Nothing;
        };
        let was_idle = self.is_idle();
        let device: Option<Arc<Device>> = new.and_then(CustomObject::shared);
        match &device {
            Some(device) => drop(self.devices.insert(object.name.clone(), device.clone())),
            None => drop(self.devices.remove(&object.name)),
        }
        let node = cx.find_node(&object.name);
        let facts = |node: NodeIdx| self.known(node)?.node().cloned();
        let known = node.and_then(|node| Some((node, facts(node)?)));
        let node = known.map(|(node, facts)| {
            self.remake(node, Some(facts), device);
            node
        });
        match node {
            // Whether invalid requests are refused depends on whether there is any Device.
            _ if was_idle != self.is_idle() => Touched::All,
            Some(node) => Touched::node(node),
            None => Touched::Nothing,
        }
    }

    fn reserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        if let Ok(what) = hold.clone().downcast::<Allocation>() {
            let pod = PodOnCards { id: placed.id, what };
            self.change(placed.node, |row| row.add(pod));
        }
        Touched::Nothing
    }

    fn unreserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, _hold: &HoldValue) -> Touched {
        if self.known(placed.node).is_some() {
            self.change(placed.node, |row| row.remove(placed.id));
        }
        Touched::Nothing
    }

    fn shares_holds(&self) -> bool {
        true
    }

    fn hold_left(&self, whole: &HoldValue, guests: &[HoldValue]) -> Option<HoldValue> {
        let guests: Vec<&Allocation> =
            guests.iter().filter_map(|guest| guest.downcast_ref::<Allocation>()).collect();
        Some(Arc::new(whole.downcast_ref::<Allocation>()?.less(&guests)))
    }

    fn bound_hold(
        &self,
        _cx: &HookContext<'_>,
        placed: &Placed<'_>,
        held: Option<&HoldValue>,
    ) -> Option<HoldValue> {
        let Some(text) = placed.pod.marks.text(DEVICE_ALLOCATED) else { return held.cloned() };
        // The pod runs on, on the devices that it had.
        let Ok((mut read, _)) = Allocation::read(text) else { return held.cloned() };
        if read.given.is_empty() {
            return None;
        }
        read.exclusive = Request::exclusives(&placed.pod.spec);
        let is_same = |known: &&HoldValue| (***known).downcast_ref::<Allocation>() == Some(&read);
        let known = held.filter(is_same).cloned();
        known.or_else(|| Some(Arc::new(read) as Arc<dyn Any + Send + Sync>))
    }
}
