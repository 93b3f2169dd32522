//! The load of every node: what its NodeMetric reports, and what is estimated for the pods assigned since.
//!
//! For each set of arguments there is one [`Load`] per node, kept in step with pods, nodes, NodeMetrics and time, so that
//! a decision compares integers. A pod adds its contribution when it takes its place and removes the same when it
//! leaves. Only whether a NodeMetric is expired depends on time; `expire` recomputes a node whose deadline has passed.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use pellucid_cluster::derived::{DerivedState, HookContext, Placed, Touched};
use pellucid_model::requests::ResourceList;
use pellucid_model::{
    CowMap, CustomObject, Name, Node, NodeIdx, Now, Pages, Pod, PodId, PodKey, PodSpec, quantity,
};

use super::args::LoadAwareArgs;
use super::estimate::Estimate;
use super::load::{Load, contribution, load};
use super::node_metric::NodeMetric;

/// Annotation of a node with thresholds of its own.
pub(super) const USAGE_THRESHOLDS: &str = "scheduling.koordinator.sh/usage-thresholds";
/// Annotation of an amplified node with the amounts it really has.
pub(super) const RAW_ALLOCATABLE: &str = "node.koordinator.sh/raw-allocatable";

/// A pod that uses a node.
#[derive(Clone, Debug)]
pub(super) struct Assigned {
    id: PodId,
    pub(super) key: PodKey,
    pub(super) spec: Arc<PodSpec>,
    /// When it was assigned, in milliseconds since 1970.
    pub(super) since: i64,
    /// When it was initialized, in milliseconds since 1970.
    pub(super) initialized: Option<i64>,
}

impl Assigned {
    /// Makes a pod of namespace `default`, with times in seconds since 1970.
    #[cfg(test)]
    pub(super) fn testing(name: &str, spec: PodSpec, scheduled: i64, initialized: Option<i64>) -> Self {
        Self {
            id: PodId(0),
            key: PodKey::new("default", name),
            spec: Arc::new(spec),
            since: millis(scheduled),
            initialized: initialized.map(millis),
        }
    }

    /// Returns until when reports do not show what the pod will use, in milliseconds since 1970; `None` without such a
    /// time. Scheduling does not count any more once the pod is initialized.
    pub(super) fn estimated_until(&self, estimate: &Estimate) -> Option<i64> {
        let after = |seconds: Option<i64>, from: i64| {
            seconds.filter(|seconds| *seconds > 0).map(|seconds| from.saturating_add(millis(seconds)))
        };
        let initialized = self.initialized.and_then(|at| after(estimate.after_initialized, at));
        initialized.or_else(|| after(estimate.after_scheduled, self.since))
    }
}

/// What is known of a node, whatever the arguments.
#[derive(Clone, Debug, Default)]
pub(super) struct OnNode {
    /// The amounts that usage is compared with; `None` while there is no node object.
    pub(super) allocatable: Option<ResourceList>,
    /// Annotation [`USAGE_THRESHOLDS`].
    pub(super) thresholds: Option<Name>,
    pub(super) metric: Option<Arc<NodeMetric>>,
    pub(super) assigned: Vec<Assigned>,
}

/// The loads of all nodes, as derived state of the cluster.
pub(super) struct NodeLoads {
    args: Arc<[Arc<LoadAwareArgs>]>,
    metrics: CowMap<Name, Arc<NodeMetric>>,
    nodes: Pages<Option<Arc<OnNode>>>,
    /// By set of arguments.
    loads: Vec<Pages<Option<Arc<Load>>>>,
    /// When nodes change by time alone, with entries that may be outdated. Only of the writer.
    due: BinaryHeap<Reverse<(i64, NodeIdx)>>,
    /// Milliseconds since 1970 up to which deadlines have been handled.
    now: i64,
}

impl NodeLoads {
    /// Makes an empty state for these sets of arguments.
    pub(super) fn new(args: Vec<Arc<LoadAwareArgs>>) -> Self {
        Self {
            loads: args.iter().map(|_| Pages::default()).collect(),
            args: args.into(),
            metrics: CowMap::default(),
            nodes: Pages::default(),
            due: BinaryHeap::new(),
            now: 0,
        }
    }

    /// Returns whether some node reports what is used there.
    pub(super) fn has_reports(&self) -> bool {
        !self.metrics.is_empty()
    }

    /// Returns the sets of arguments, one per profile whose arguments differ.
    pub(super) fn args(&self) -> &[Arc<LoadAwareArgs>] {
        &self.args
    }

    /// Returns the resources of the first set of arguments, which endpoints show.
    pub(super) fn resources(&self) -> &[Name] {
        &self.args[0].resources
    }

    /// Returns the position of a set of arguments, to be used with [`Self::load`].
    pub(super) fn position(&self, args: &LoadAwareArgs) -> Option<usize> {
        let is_same = |known: &Arc<LoadAwareArgs>| std::ptr::eq(&**known, args);
        self.args.iter().position(is_same).or_else(|| self.args.iter().position(|known| **known == *args))
    }

    /// Returns the load of a node; `None` when nothing is known of the node.
    pub(super) fn load(&self, position: usize, node: NodeIdx) -> Option<&Load> {
        self.loads[position].get(node.index())?.as_deref()
    }

    /// Returns the pods and the NodeMetric of a node; `None` when nothing is known of the node.
    pub(super) fn on(&self, node: NodeIdx) -> Option<&OnNode> {
        self.nodes.get(node.index())?.as_deref()
    }

    fn on_mut(&mut self, node: NodeIdx) -> &mut OnNode {
        self.nodes.grow(node.index() + 1);
        Arc::make_mut(self.nodes[node.index()].get_or_insert_default())
    }

    /// Computes the loads of a node anew.
    fn refresh(&mut self, node: NodeIdx) {
        let on = self.nodes.get(node.index()).and_then(Option::clone);
        for (args, loads) in self.args.iter().zip(&mut self.loads) {
            loads.grow(node.index() + 1);
            let load = on.as_ref().map(|on| Arc::new(load(args, on, self.now)));
            if let Some(at) = load.as_ref().and_then(|load| load.expires) {
                self.due.push(Reverse((at, node)));
            }
            loads[node.index()] = load;
        }
    }

    /// Adds the contribution of a pod to the loads of its node, or removes it.
    fn count(&mut self, node: NodeIdx, pod: &Assigned, sign: i64) {
        let metric = self.nodes[node.index()].as_ref().and_then(|on| on.metric.clone());
        for (args, loads) in self.args.iter().zip(&mut self.loads) {
            loads.grow(node.index() + 1);
            let load = loads[node.index()].get_or_insert_with(|| Arc::new(Load::empty(args.resources.len())));
            Arc::make_mut(load).count(&contribution(args, metric.as_deref(), pod), sign);
        }
    }

    fn set_metric(&mut self, name: &Name, metric: Option<Arc<NodeMetric>>, cx: &HookContext<'_>) -> Touched {
        match &metric {
            Some(metric) => drop(self.metrics.insert(name.clone(), metric.clone())),
            None => drop(self.metrics.remove(name)),
        }
        let Some(node) = cx.find_node(name) else { return Touched::Nothing };
        self.on_mut(node).metric = metric;
        self.refresh(node);
        Touched::node(node)
    }
}

/// Returns a node's allocatable amounts, those before amplification where it is amplified.
fn allocatable(node: &Node) -> ResourceList {
    let mut list = node.allocatable.clone();
    let raw = node.annotations.get(&RAW_ALLOCATABLE.into());
    let raw = raw.and_then(|text| serde_json::from_str::<serde_json::Map<_, _>>(text).ok());
    for (name, value) in raw.into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        match name.as_str() {
            "cpu" => list.milli_cpu = quantity::milli(text).unwrap_or(list.milli_cpu),
            "memory" => list.memory = quantity::units(text).unwrap_or(list.memory),
            _ => {}
        }
    }
    list
}

fn millis(seconds: i64) -> i64 {
    seconds.saturating_mul(1000)
}

fn assigned(placed: &Placed<'_>) -> Assigned {
    let pod = placed.pod;
    let since = pod.scheduled_at.map_or(placed.since.as_millis() as i64, millis);
    Assigned {
        id: placed.id,
        key: pod.key.clone(),
        spec: pod.spec.clone(),
        since,
        initialized: pod.initialized_at.map(millis),
    }
}

impl DerivedState for NodeLoads {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(Self {
            args: self.args.clone(),
            metrics: self.metrics.clone(),
            nodes: self.nodes.clone(),
            loads: self.loads.clone(),
            due: BinaryHeap::new(),
            now: self.now,
        })
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        // The pod of an object, such as a Reservation, runs nothing, and no NodeMetric reports it.
        if placed.pod.stands_for.is_some() {
            return;
        }
        let pod = assigned(placed);
        self.on_mut(placed.node);
        self.count(placed.node, &pod, 1);
        self.on_mut(placed.node).assigned.push(pod);
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        let on = self.on_mut(placed.node);
        if let Some(at) = on.assigned.iter().rposition(|pod| pod.id == placed.id) {
            let pod = on.assigned.swap_remove(at);
            self.count(placed.node, &pod, -1);
        }
    }

    fn placed_pod_changed(&mut self, placed: &Placed<'_>, old: &Pod) -> Touched {
        if (old.scheduled_at, old.initialized_at) == (placed.pod.scheduled_at, placed.pod.initialized_at) {
            return Touched::Nothing;
        }
        self.pod_removed(placed);
        self.pod_added(placed);
        Touched::node(placed.node)
    }

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let is_same = |old: &Node, new: &Node| {
            (&old.allocatable, &old.annotations) == (&new.allocatable, &new.annotations)
        };
        if old.zip(new).is_some_and(|(old, new)| is_same(old, new)) {
            return Touched::Nothing;
        }
        let name = new.or(old).map(|n| n.name.clone()).unwrap_or_default();
        let metric = new.and_then(|_| self.metrics.get(&name).cloned());
        let on = self.on_mut(node);
        on.allocatable = new.map(allocatable);
        on.thresholds = new.and_then(|n| n.annotations.get(&USAGE_THRESHOLDS.into()).cloned());
        on.metric = metric;
        if new.is_none() && on.assigned.is_empty() {
            self.nodes[node.index()] = None;
        }
        self.refresh(node);
        Touched::Nothing
    }

    fn custom_changed(
        &mut self,
        cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let Some(object) = new.or(old).filter(|object| object.get::<NodeMetric>().is_some()) else {
            return Touched::Nothing;
        };
        self.set_metric(&object.name, new.and_then(CustomObject::shared), cx)
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, now: Now) -> Option<std::time::Duration> {
        let Reverse((at, _)) = self.due.peek()?;
        let left = at.saturating_sub(now.wall.as_millis() as i64).max(0);
        Some(now.monotonic + std::time::Duration::from_millis(left.unsigned_abs()))
    }

    fn expire(&mut self, now: Now) -> Touched {
        self.now = self.now.max(now.wall.as_millis() as i64);
        let mut touched = Touched::Nothing;
        while let Some(Reverse((at, node))) =
            self.due.peek().copied().filter(|Reverse((at, _))| *at <= self.now)
        {
            self.due.pop();
            let is_due = |loads: &Pages<Option<Arc<Load>>>| {
                let load = loads.get(node.index()).and_then(Option::as_deref);
                load.is_some_and(|load| load.expires.is_some_and(|expires| expires <= at))
            };
            if self.loads.iter().any(is_due) {
                self.refresh(node);
                touched.add(node);
            }
        }
        touched
    }

    fn merge(&mut self, other: Box<dyn DerivedState>) {
        let Some(other) = (&*other as &dyn Any).downcast_ref::<Self>() else { return };
        let mut args = self.args.to_vec();
        args.extend(other.args.iter().filter(|new| !self.args.contains(new)).cloned());
        *self = Self::new(args);
    }
}
