//! Controller `noderesource`: writes what a node's healthy GPUs and RDMA adapters come to into its capacity and
//! allocatable, and their model, vendor and driver into its labels, as Koordinator's manager does.
//!
//! It works whether or not a profile enables DeviceShare, and writes what differs: at once when a Device or a Node
//! changes, and again at intervals. Not here: FPGAs, which a device plugin publishes, and who may write at all, which the
//! core decides.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::derived::{DerivedState, HookContext, Touched};
use pellucid_framework::{Controller, Right};
use pellucid_model::effect::{ObjectPart, ObjectRef, ObjectWrite, Precondition, WriteOutcome};
use pellucid_model::{CowMap, CustomObject, Name, Node, NodeIdx, Now};
use serde_json::{Map, Value, json};

use super::DEVICE;
use super::amounts::{CORE, MEMORY, NPU_CORE, NPU_CPU, NPU_DVPP, OLD_NAMES, RATIO, RDMA, Resource};
use super::device::{Device, DeviceType, GPU_LABELS, GPU_VENDOR};

mod read;
#[cfg(test)]
mod tests;

pub(super) use read::read;

/// Name of the controller.
const CONTROLLER: &str = "noderesource";

/// What the plugin brings.
pub(super) static CONTROLLERS: [Controller; 1] = [Controller {
    name: CONTROLLER,
    summary: "Publishes healthy GPUs and RDMA adapters of Devices as capacity, allocatable and labels of nodes",
    state: || Box::new(NodeResources::default()),
    kinds: &[&DEVICE],
    rights: &[
        Right { group: "", resource: "nodes", verbs: &["get", "patch"] },
        Right { group: "", resource: "nodes/status", verbs: &["patch"] },
    ],
}];

/// Computing power of all GPUs, under the name by which pods ask for whole and shared cards.
const GPU: &str = "koordinator.sh/gpu";
/// What is published, and taken away where no healthy device is left.
static PUBLISHED: [Resource; 7] = [CORE, MEMORY, RATIO, NPU_CORE, NPU_CPU, NPU_DVPP, RDMA];
/// Time between two looks at all nodes.
const INTERVAL: Duration = Duration::from_secs(300);
/// Time from a refused write to the next try.
const PAUSE: Duration = Duration::from_secs(10);
/// Time in which changes of a node are joined, and after which it is written to again at the earliest.
const SETTLING: Duration = Duration::from_secs(1);
/// Most nodes written to in that time.
const AT_A_TIME: usize = 256;

/// Amounts by name of the resource.
pub(super) type Published = BTreeMap<&'static str, i64>;
/// Labels by key.
type GpuLabels = BTreeMap<&'static str, Name>;

/// What the object of a node says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnObject {
    uid: Arc<str>,
    amounts: Published,
    labels: GpuLabels,
}

/// One node with what should stand on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// `None` while there is no node object.
    object: Option<OnObject>,
    /// What its Device comes to; empty without a Device.
    pub(super) amounts: Published,
    /// Labels that its Device asks for.
    labels: GpuLabels,
    /// Whether a Device of this name is there.
    has_device: bool,
    /// Writes that were ordered and have not come back.
    ordered: Vec<Arc<Value>>,
    /// When a write was last carried out, as wall time.
    pub(super) written: Option<Duration>,
    /// Why the last write was refused.
    pub(super) problem: Option<Arc<str>>,
}

/// What should stand on all nodes, and what is due.
#[derive(Clone, Default)]
pub(super) struct NodeResources {
    nodes: CowMap<Name, Arc<Entry>>,
    /// Nodes to look at.
    due: BTreeSet<Name>,
    /// Whether they are looked at now.
    is_ready: bool,
    /// Nodes whose write was refused.
    refused: BTreeSet<Name>,
    /// When they are tried again, on the monotonic clock.
    again: Option<Duration>,
    /// When all nodes are looked at, on the monotonic clock.
    next_look: Option<Duration>,
}

/// Returns what the healthy devices of a node come to.
fn amounts(device: &Device) -> Published {
    let mut made = Published::new();
    let of = |kind: &DeviceType| match kind {
        DeviceType::Gpu => &PUBLISHED[..6],
        DeviceType::Rdma => &PUBLISHED[6..],
        DeviceType::Fpga | DeviceType::Other(_) => &[],
    };
    for device in device.devices.iter().filter(|device| device.healthy) {
        for resource in of(&device.kind).iter().filter(|resource| device.resources.has(**resource)) {
            let sum = made.entry(resource.name()).or_default();
            *sum = sum.saturating_add(device.resources.get(*resource));
        }
    }
    let is_nvidia =
        device.gpu_labels.get(&GPU_VENDOR.into()).is_none_or(|vendor| vendor.as_str() == "nvidia");
    if let Some(core) = made.get(CORE.name()).copied().filter(|_| is_nvidia) {
        made.insert(GPU, core);
    }
    made
}

/// Returns the labels that a Device asks for while it has a healthy GPU.
fn labels(device: &Device) -> GpuLabels {
    let has_gpu = device.devices.iter().any(|device| device.healthy && device.kind == DeviceType::Gpu);
    let of = |key: &'static str| Some((key, device.gpu_labels.get(&key.into())?.clone()));
    GPU_LABELS.into_iter().filter(|_| has_gpu).filter_map(of).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    PUBLISHED.iter().map(|resource| resource.name()).chain([GPU])
}

impl OnObject {
    fn of(node: &Node) -> Self {
        let amount = |name: &'static str| {
            let mut scalars = node.allocatable.scalars.iter();
            Some((name, scalars.find(|(known, _)| known.as_str() == name)?.1))
        };
        let label = |key: &'static str| Some((key, node.labels.get(&key.into())?.clone()));
        Self {
            uid: node.uid.clone(),
            amounts: names().filter_map(amount).collect(),
            labels: GPU_LABELS.into_iter().filter_map(label).collect(),
        }
    }
}

impl Entry {
    /// Returns what stands on the node, if there is a node.
    pub(super) fn published(&self) -> Option<&Published> {
        self.object.as_ref().map(|object| &object.amounts)
    }

    /// Returns whether the node says what its Device comes to.
    pub(super) fn is_in_step(&self) -> bool {
        self.writes().is_empty()
    }

    /// Returns the patches that bring the node in step, as parts of its object.
    fn writes(&self) -> Vec<(ObjectPart, Arc<Value>)> {
        let Some(object) = &self.object else { return Vec::new() };
        let mut parts = Vec::new();
        let mut list = Map::new();
        for (name, amount) in &self.amounts {
            if object.amounts.get(name) != Some(amount) {
                let text = Resource::find(name).map_or_else(|| amount.to_string(), |r| r.format(*amount));
                list.insert((*name).to_owned(), json!(text));
            }
        }
        for name in object.amounts.keys().filter(|name| !self.amounts.contains_key(*name)) {
            // The node may have it under the name of Koordinator 0.7, which counts as the new one.
            let old = OLD_NAMES.iter().filter(|(_, new)| new == name).map(|(old, _)| *old);
            list.extend([*name].into_iter().chain(old).map(|name| (name.to_owned(), Value::Null)));
        }
        if !list.is_empty() {
            parts.push((ObjectPart::Status, json!({"status": {"allocatable": list, "capacity": list}})));
        }
        let differs = |(key, value): &(&&str, &Name)| object.labels.get(**key) != Some(*value);
        let labels: Map<String, Value> = self
            .labels
            .iter()
            .filter(differs)
            .map(|(key, value)| ((*key).to_owned(), json!(&**value)))
            .collect();
        if !labels.is_empty() {
            parts.push((ObjectPart::Main, json!({"metadata": {"labels": labels}})));
        }
        parts.into_iter().map(|(part, patch)| (part, Arc::new(patch))).collect()
    }
}

impl NodeResources {
    /// Iterates over the nodes that have a Device, or amounts that only a Device gives, in no particular order.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&Name, &Entry)> {
        let all = self.nodes.iter().map(|(name, entry)| (name, &**entry));
        all.filter(|(_, entry)| entry.has_device || entry.published().is_some_and(|all| !all.is_empty()))
    }

    /// Changes what is known of a node. A node of which nothing is left is forgotten.
    fn change(&mut self, name: &Name, change: impl FnOnce(&mut Entry)) {
        let mut entry = self.nodes.get(name).map(|entry| Entry::clone(entry)).unwrap_or_default();
        change(&mut entry);
        if entry.object.is_none() && !entry.has_device {
            self.nodes.remove(name);
            self.due.remove(name);
            self.refused.remove(name);
            return;
        }
        self.due.insert(name.clone());
        self.nodes.insert(name.clone(), Arc::new(entry));
    }

    /// Has all nodes looked at, also those whose writes have not come back.
    fn look_at_all(&mut self) {
        let names: Vec<Name> = self.nodes.iter().map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.change(name, |entry| entry.ordered.clear()));
    }
}

impl DerivedState for NodeResources {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        CONTROLLER
    }

    fn merge(&mut self, other: Box<dyn DerivedState>) {
        debug_assert!((&*other as &dyn Any).is::<Self>(), "states of one type are merged");
    }

    fn node_changed(&mut self, _node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        let (was, is) = (old.map(OnObject::of), new.map(OnObject::of));
        if let Some(name) = new.or(old).map(|node| node.name.clone()).filter(|_| was != is) {
            self.change(&name, |entry| {
                entry.object = is;
                entry.ordered.clear();
            });
        }
        Touched::Nothing
    }

    fn custom_changed(
        &mut self,
        _cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let Some(object) = new.or(old).filter(|object| object.get::<Device>().is_some()) else {
            return Touched::Nothing;
        };
        let device = new.and_then(|object| object.get::<Device>());
        self.change(&object.name, |entry| {
            entry.has_device = device.is_some();
            entry.amounts = device.map(amounts).unwrap_or_default();
            entry.labels = device.map(labels).unwrap_or_default();
        });
        Touched::Nothing
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, now: Now) -> Option<Duration> {
        let look = self.next_look.unwrap_or(now.monotonic + INTERVAL);
        let settled = (!self.due.is_empty()).then_some(now.monotonic + SETTLING);
        self.again.into_iter().chain(settled).chain([look]).min()
    }

    fn expire(&mut self, now: Now) -> Touched {
        if self.again.is_some_and(|at| at <= now.monotonic) {
            self.again = None;
            self.due.append(&mut self.refused);
        }
        if self.next_look.is_none_or(|at| at <= now.monotonic) {
            if self.next_look.is_some() {
                self.look_at_all();
            }
            self.next_look = Some(now.monotonic + INTERVAL);
        }
        self.is_ready = !self.due.is_empty();
        Touched::Nothing
    }

    fn due_writes(&mut self, _cx: &HookContext<'_>) -> Vec<ObjectWrite> {
        let mut all = Vec::new();
        let most = if std::mem::take(&mut self.is_ready) { AT_A_TIME } else { 0 };
        for _ in 0..most {
            let Some(name) = self.due.pop_first() else { break };
            let Some(entry) = self.nodes.get(&name) else { continue };
            let mut writes = entry.writes();
            writes.retain(|(_, patch)| !entry.ordered.contains(patch));
            let Some(object) = entry.object.as_ref().filter(|_| !writes.is_empty()) else { continue };
            let uid = object.uid.clone();
            let mut entry = Entry::clone(entry);
            entry.ordered.extend(writes.iter().map(|(_, patch)| patch.clone()));
            self.nodes.insert(name.clone(), Arc::new(entry));
            all.extend(writes.into_iter().map(|(part, patch)| ObjectWrite::Patch {
                object: ObjectRef {
                    group: "",
                    version: "v1",
                    plural: "nodes",
                    namespace: None,
                    name: name.clone(),
                },
                part,
                precondition: Precondition::uid(uid.clone()),
                patch,
            }));
        }
        all
    }

    fn write_settled(
        &mut self,
        cx: &HookContext<'_>,
        write: &ObjectWrite,
        outcome: &WriteOutcome,
    ) -> Touched {
        let ObjectWrite::Patch { object, patch, .. } = write else { return Touched::Nothing };
        let Some(entry) = self.nodes.get(&object.name) else { return Touched::Nothing };
        let mut entry = Entry::clone(entry);
        match outcome {
            WriteOutcome::Refused { status, message } => {
                entry.ordered.retain(|known| known != patch);
                entry.problem = Some(format!("{write}: {status} {message}").into());
                self.refused.insert(object.name.clone());
                self.again.get_or_insert(cx.now.monotonic + PAUSE);
            }
            WriteOutcome::Written | WriteOutcome::AlreadyExists => {
                (entry.written, entry.problem) = (Some(cx.now.wall), None);
            }
        }
        self.nodes.insert(object.name.clone(), Arc::new(entry));
        Touched::Nothing
    }
}
