//! DeviceShare: gives pods GPUs, RDMA adapters and FPGAs card by card, whole or shared.
//!
//! See README.md for the rules. `device` reads what a node has, `request` and `hints` what a pod wants, `allocator`
//! chooses the cards, `gradient` rates cards and nodes by fragmentation, `allocation` is what a pod has of them, and
//! `node_devices` keeps a `row` of cards per node. `node_resource` is a controller that publishes what nodes have. `filter` and `numa` implement the extension points besides Reserve;
//! `advice`, `endpoints`, `fragmentation`, `problems` and
//! `explain` are for people.
//!
//! On a node without a Device, resources of devices are ordinary ones, which NodeResourcesFit counts.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds, HoldValue, Marks, NodeChange};
use pellucid_framework::plugin::{
    CycleValue, DeclaredKeys, Hint, Hints as EventHints, Plugin, QueueSort, Reservation, Reserve, Room,
};
use pellucid_framework::topology::NumaMask;
use pellucid_framework::{Cause, NumaAffinity, Registration, View, points};
use pellucid_model::custom::CustomKind;
use pellucid_model::effect::BindingMarks;
use pellucid_model::pages::AnyInPage;
use pellucid_model::{CustomObject, NodeIdx, Pod, PodSpec};
use serde_json::Value;

mod advice;
mod allocation;
mod allocator;
mod amounts;
mod args;
pub mod device;
mod endpoints;
mod explain;
mod filter;
mod fragmentation;
mod gradient;
mod hints;
mod node_devices;
mod node_resource;
mod numa;
mod problems;
#[cfg(test)]
mod reason_tests;
mod reasons;
mod request;
mod row;
#[cfg(test)]
mod tests;

pub use device::Device;

use allocation::Allocation;
use allocator::{Choices, Lack, Terms, allocate};
use args::DeviceArgs;
use gradient::{Prospect, TypicalPods};
use node_devices::NodeDevices;
use request::Request;
use row::Row;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "DeviceShare";

/// What the plugin reads of pods, and writes to them.
const KEYS: DeclaredKeys = DeclaredKeys {
    pod_labels: &[hints::ISOLATION_PROVIDER],
    pod_annotations: &[hints::ALLOCATE_HINT, hints::JOINT_ALLOCATE, hints::PARTITION_SPEC],
    binding_annotations: &[allocation::DEVICE_ALLOCATED],
    ..DeclaredKeys::NONE
};

/// Devices, one per node and with its name.
pub static DEVICE: CustomKind = CustomKind {
    group: "scheduling.koordinator.sh",
    version: "v1alpha1",
    kind: "Device",
    plural: "devices",
    qualified: "Device.scheduling.koordinator.sh",
    is_namespaced: false,
    is_required: false,
    is_decisive: true,
    verbs: &[],
    pod: None,
    decode: |manifest| Ok(Arc::new(Device::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, Device::manifest),
};

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Gives pods GPUs, RDMA adapters and FPGAs card by card, whole or shared";
    Registration::new(NAME, summary, args::schema, |args| {
        Ok(DeviceShare { args: Arc::new(DeviceArgs::read(args)?) })
    })
    .with_weight(1)
    .off_by_default()
    .with_keys(KEYS)
    .with_resource_aliases(&amounts::OLD_NAMES)
    .with_kinds([&DEVICE])
    .with_reasons(reasons::all())
    .with_endpoints(endpoints::all())
    .with_pod_read(advice::POD_READ)
    .with_gauges(&advice::gauges::ALL)
    .with_controllers(&node_resource::CONTROLLERS)
}

/// The plugin, as a profile uses it.
struct DeviceShare {
    args: Arc<DeviceArgs>,
}

impl Plugin for DeviceShare {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! { queue_sort, pre_filter, filter, pre_score, score, reserve, hints, topology_hints, advice }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        let mut states: Vec<Box<dyn DerivedState>> = vec![Box::new(NodeDevices::default())];
        if let Some(args) = &self.args.gradient {
            states.push(Box::new(TypicalPods::new(args.clone())));
        }
        states
    }
}

impl DeviceShare {
    /// Returns what a node gives a pod. `numa` are the NUMA nodes that devices may come from; `None` for all.
    fn allocate(
        &self,
        row: &Row,
        request: &Request,
        numa: Option<NumaMask>,
        prospect: Option<Prospect<'_>>,
    ) -> Result<Choices, Lack> {
        allocate(row, request, &Terms { scoring: &self.args.scoring, numa, is_empty: false, prospect })
    }

    /// Returns whether a node has what a pod requests, or what it lacks.
    fn fits(&self, row: &Row, request: &Request, prospect: Option<Prospect<'_>>) -> Result<(), Lack> {
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty: false, prospect };
        allocator::fits(row, request, &terms)
    }

    /// Returns whether a node would lack something even if no pod were on it.
    fn lacks_even_empty(&self, row: &Row, request: &Request) -> bool {
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty: true, prospect: None };
        allocator::fits(row, request, &terms).is_err()
    }

    fn cause(&self, row: &Row, request: &Request, lack: Lack) -> Cause {
        reasons::cause(lack, self.lacks_even_empty(row, request))
    }

    fn choose(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        node: NodeIdx,
        numa: Option<NumaMask>,
    ) -> Result<Option<Reservation>, Cause> {
        let Some(devices) = view.state::<NodeDevices>() else { return Ok(None) };
        let Some(row) = devices.row(node) else { return Ok(None) };
        self.choose_of((view, devices), (node, row), spec, numa)
    }

    fn choose_of(
        &self,
        (view, devices): (View<'_>, &NodeDevices),
        (node, row): (NodeIdx, &Row),
        spec: &PodSpec,
        numa: Option<NumaMask>,
    ) -> Result<Option<Reservation>, Cause> {
        let Some(request) = Request::of(spec).map_err(|invalid| reasons::refusal(&invalid))? else {
            return Ok(None);
        };
        self.choose_for((view, devices), (node, row), &request, numa)
    }

    fn choose_for(
        &self,
        (view, devices): (View<'_>, &NodeDevices),
        (node, row): (NodeIdx, &Row),
        request: &Request,
        numa: Option<NumaMask>,
    ) -> Result<Option<Reservation>, Cause> {
        // The pod is on the node already.
        let prospect = self.prospect(view, (node, row), 0);
        let terms = Terms { scoring: &self.args.scoring, numa, is_empty: false, prospect };
        let what = allocator::give(row, request, &terms).map_err(|lack| self.cause(row, request, lack))?;
        let report = devices.report(node);
        Ok(Some(Reservation { what, marks: report.map(|report| Marks::With(marks, report.erased())) }))
    }
}

/// Returns what the Binding adds to a pod for an allocation, on a node with a Device.
fn marks(what: &HoldValue, report: &AnyInPage) -> BindingMarks {
    let device = report.get::<Option<Arc<Device>>>().and_then(Option::as_deref);
    what.downcast_ref().map(|what: &Allocation| what.marks(device)).unwrap_or_default()
}

/// Takes pods by priority, and of those that enter the queue in the same window the one first that requests most GPUs,
/// then CPU: large pods are hard to place once small ones are spread.
impl QueueSort for DeviceShare {
    fn rank(&self, pod: &Pod) -> i64 {
        i64::from(pod.priority)
    }

    fn window(&self) -> Duration {
        self.args.queue_window
    }

    fn size(&self, pod: &Pod) -> i64 {
        let percent = Request::of(&pod.spec).ok().flatten().map_or(0, |request| request.gpu_percent());
        let milli_cpu = pod.spec.requests.list.milli_cpu.clamp(0, i64::from(u32::MAX));
        (percent.clamp(0, i64::from(i32::MAX)) << 32) + milli_cpu
    }

    fn only_when_named(&self) -> bool {
        true
    }
}

impl Reserve for DeviceShare {
    fn may_hold(&self, _view: View<'_>, spec: &PodSpec) -> bool {
        !matches!(Request::of(spec), Ok(None))
    }

    fn prefetch(&self, view: View<'_>, node: NodeIdx) {
        if let Some(devices) = view.state::<NodeDevices>() {
            devices.prefetch(node);
        }
    }

    fn reserve(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Result<Option<Reservation>, Cause> {
        self.choose(view, &pod.spec, node, None)
    }

    fn reserve_prepared(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        prepared: &CycleValue,
    ) -> Result<Option<Reservation>, Cause> {
        let Some(request) = prepared.downcast_ref::<Request>() else {
            return self.choose(view, &pod.spec, node, None);
        };
        let Some(devices) = view.state::<NodeDevices>() else { return Ok(None) };
        let Some(row) = devices.row(node) else { return Ok(None) };
        self.choose_for((view, devices), (node, row), request, None)
    }

    fn reserve_aligned(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        affinity: NumaAffinity,
    ) -> Result<Option<Reservation>, Cause> {
        self.choose(view, &pod.spec, node, Some(affinity.mask).filter(|_| !self.args.ignores_numa))
    }

    fn reserve_within(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        affinity: Option<NumaAffinity>,
        room: &Room,
    ) -> Result<Option<Reservation>, Cause> {
        let numa = affinity.map(|affinity| affinity.mask).filter(|_| !self.args.ignores_numa);
        let devices = view.state::<NodeDevices>();
        let row = devices.and_then(|devices| Some((devices, devices.row(node)?)));
        let within =
            row.zip(room.what.downcast_ref()).map(|((devices, row), room)| (devices, row.within(room)));
        let found =
            within.map(|(devices, within)| self.choose_of((view, devices), (node, &within), &pod.spec, numa));
        match found {
            Some(Err(cause)) if room.is_limit => Err(cause),
            Some(Ok(chosen)) => Ok(chosen),
            _ => self.choose(view, &pod.spec, node, numa),
        }
    }
}

impl EventHints for DeviceShare {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD
            .with(EventKinds::NODE_LABEL)
            .with(EventKinds::POD_DELETE)
            .with(EventKinds::POD_SCALE_DOWN)
            .with(EventKinds::POD_SELF)
            .with(EventKinds::CUSTOM_OBJECT)
            .with(EventKinds::PLUGIN_STATE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let helps = match event {
            ClusterEvent::NodeAdded(node) => self.accepts(view, pod, *node),
            ClusterEvent::NodeUpdated { node, change, .. } if change.any(NodeChange::LABELS) => {
                self.accepts(view, pod, *node)
            }
            ClusterEvent::PodReleased { node, .. } | ClusterEvent::PodShrunk { node, .. } => {
                self.accepts(view, pod, *node)
            }
            ClusterEvent::NominationEnded { node, .. } => {
                let node = view.cluster().find_node(node);
                node.is_some_and(|node| self.accepts(view, pod, node))
            }
            ClusterEvent::PluginStateChanged { nodes } => {
                nodes.iter().any(|node| self.accepts(view, pod, *node))
            }
            ClusterEvent::CustomChanged { old, new } => {
                let object: Option<&CustomObject> = new.as_deref().or(old.as_deref());
                let device = object.filter(|object| object.get::<Device>().is_some());
                let node = device.and_then(|device| view.cluster().find_node(&device.name));
                // Without any Device no request is refused.
                let is_last =
                    device.is_some() && view.state::<NodeDevices>().is_none_or(NodeDevices::is_idle);
                is_last || node.is_some_and(|node| self.accepts(view, pod, node))
            }
            ClusterEvent::PendingUpdated { old, .. } => old.spec != pod.spec,
            _ => false,
        };
        if helps { Hint::Queue } else { Hint::Skip }
    }
}

impl DeviceShare {
    /// Returns whether the filter accepts a node for a pod.
    fn accepts(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> bool {
        let Some(row) = NodeDevices::row_in(view, node) else {
            return true;
        };
        match Request::of(&pod.spec) {
            Ok(Some(request)) => {
                let prospect = self.prospect(view, (node, row), pod.spec.requests.list.milli_cpu);
                self.fits(row, &request, prospect).is_ok()
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }
}
