//! Bodies of the endpoints of DeviceShare.
//!
//! Names of `nodeDeviceSummaries` are Koordinator's. Amounts are quantities by resource name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `DeviceShare/nodeDeviceSummaries/:name`: the devices of a node, what is free of them, and who has them.
///
/// A device that is not healthy has nothing. What is free is never negative, so free and used may exceed the total where
/// others overcommitted a device.
#[expect(clippy::type_complexity, reason = "the shape is Koordinator's, and an alias would have no schema")]
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDeviceSummary {
    /// What all devices have.
    pub device_total: BTreeMap<String, String>,
    /// What is free of all devices.
    pub device_free: BTreeMap<String, String>,
    /// What pods have of all devices.
    pub device_used: BTreeMap<String, String>,
    /// What each device has, by type and minor.
    pub device_total_detail: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>,
    /// What is free of each device, by type and minor.
    pub device_free_detail: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>,
    /// What pods have of each device, by type and minor.
    pub device_used_detail: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>,
    /// What each pod has, by type, pod (`namespace/name`) and minor.
    pub allocate_set: BTreeMap<String, BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>>,
    /// What is wrong with the Device, and with what pods say that they have.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub problems: Vec<DeviceProblem>,
    /// Pods on the node that request devices and do not say which they have (`namespace/name`), sorted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unknown_pods: Vec<String>,
}

/// Something wrong with devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProblem {
    /// Name of the node.
    pub node_name: String,
    /// The pod (`namespace/name`), when its annotation is what is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The field of the Device or of the pod.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What is wrong, and what follows from it.
    pub problem: String,
}

/// `DeviceShare/state`: all devices in short, by node, type and minor.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceShareState {
    /// Number of nodes with a Device.
    pub nodes: usize,
    /// The devices, at most a thousand.
    pub rows: Vec<DeviceRow>,
    /// Whether there are more devices.
    pub truncated: bool,
    /// What is wrong, at most a thousand.
    pub problems: Vec<DeviceProblem>,
}

/// One device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRow {
    /// Name of the node.
    pub node_name: String,
    /// Type: `gpu`, `rdma`, `fpga`, or another one.
    pub device_type: String,
    /// Number among the devices of that type on the node.
    pub minor: i64,
    /// Id of the device.
    pub id: String,
    /// Whether it is healthy.
    pub healthy: bool,
    /// Number of its NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<i64>,
    /// Id of its PCIe switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_id: Option<String>,
    /// What it has.
    pub total: BTreeMap<String, String>,
    /// What is free of it.
    pub free: BTreeMap<String, String>,
    /// Number of its virtual functions, and how many are in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_functions: Option<VirtualFunctionCount>,
    /// The pods that have a part of it (`namespace/name`), sorted.
    pub pods: Vec<String>,
    /// Its conditions.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub conditions: Vec<DeviceCondition>,
}

/// Virtual functions of a device.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualFunctionCount {
    /// All of them.
    pub total: usize,
    /// Those that pods have.
    pub used: usize,
}

/// A condition of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCondition {
    /// Type of the condition.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, as one word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
}

/// `DeviceShare/fragmentation`: how much of the GPUs is free, and how much of that is in parts of cards.
///
/// Percentages are of single cards: 350 is three and a half cards. What is free of a card is the less of computing power
/// and memory.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuFragmentation {
    /// Number of nodes with GPUs in a Device.
    pub nodes: usize,
    /// All nodes together; `nodeName` is empty.
    pub total: FragmentationRow,
    /// How many pods of a size would fit, each size for itself.
    pub room: Vec<GpuRoom>,
    /// What pods typically request, each with its room and with what of the free GPUs is of no use to it; at most 20.
    #[serde(default)]
    pub typical: Vec<TypicalPodRoom>,
    /// Where typical pods are known from: `typicalPods` (by `FragmentationGradient`, of the configuration or counted) or
    /// `pods` (all pods with GPUs that are here).
    #[serde(default)]
    pub typical_from: String,
    /// The nodes, by name, at most a thousand.
    pub rows: Vec<FragmentationRow>,
    /// Whether there are more nodes.
    pub truncated: bool,
}

/// The GPUs of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FragmentationRow {
    /// Name of the node.
    pub node_name: String,
    /// Number of GPUs.
    pub cards: usize,
    /// GPUs that are not healthy.
    pub unhealthy: usize,
    /// GPUs of which no pod has a part.
    pub unused: usize,
    /// GPUs of which pods have a part and a part is free.
    pub shared: usize,
    /// GPUs of which pods have all.
    pub full: usize,
    /// What is free, in percent of a card.
    pub free_percent: i64,
    /// What is free of shared GPUs, in percent of a card: no whole card can come of it.
    pub fragment_percent: i64,
}

/// Room for what pods typically request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TypicalPodRoom {
    /// Number of GPUs.
    pub gpus: u32,
    /// Percent of each.
    pub percent: u8,
    /// CPU, as a quantity.
    pub cpu: String,
    /// Whether such pods accept only some nodes, by nodeSelector or affinity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub selects_nodes: bool,
    /// How many pods request it, or its weight in the configuration.
    pub weight: i64,
    /// Number of nodes with room for one.
    pub nodes: usize,
    /// Number of pods that fit on all nodes, by GPUs and CPU.
    pub pods: i64,
    /// What of the free GPUs is of no use to such a pod, in percent of a card: all that is free of a node without room for
    /// one, and else the GPUs of which less is free than it requests of one.
    pub fragment_percent: i64,
}

/// Room for pods of one size.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuRoom {
    /// Size of the request, in percent of a card: 50 is half a card, 200 two whole ones.
    pub percent: i64,
    /// Number of nodes with room for one.
    pub nodes: usize,
    /// Number of pods that fit on all nodes, whatever else they request and by no hints.
    pub pods: usize,
}

/// `explain/pods/:namespace/:name/devices`: where a pod stands with devices.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodDevices {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Code of the reason of the nearest node, or of the pod as a whole; absent when a node has the devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The whole in a sentence; absent when no node refuses the pod for devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What the pod requests, by type.
    pub requests: Vec<RequestedDevices>,
    /// Number of nodes with a Device.
    pub total_nodes: usize,
    /// Number of them that have all the devices.
    pub accepting_nodes: usize,
    /// The nodes, the nearest first, at most a thousand.
    pub nodes: Vec<DevicesOnNode>,
    /// Whether there are more nodes.
    pub truncated: bool,
}

/// Requested devices of one type.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedDevices {
    /// Type.
    pub device_type: String,
    /// Number of devices.
    pub count: usize,
    /// What is requested of each, by resource.
    pub each: BTreeMap<String, String>,
    /// Number of nodes with as many devices with that much free.
    pub nodes_with_enough: usize,
    /// Number of nodes that would have them without any pods.
    pub nodes_with_enough_if_empty: usize,
    /// The node with the most such devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_node: Option<String>,
    /// How many it has.
    pub best_count: usize,
}

/// How a node stands towards a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicesOnNode {
    /// Name of the node.
    pub node_name: String,
    /// Whether it has all the devices, together and as the pod's hints demand.
    pub accepts: bool,
    /// Whether it would have them without any pods.
    pub if_empty: bool,
    /// Code of what it lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it lacks, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its devices, by requested type.
    pub requests: Vec<WantedOnNode>,
}

/// The devices of one type on a node, for one pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WantedOnNode {
    /// Type.
    pub device_type: String,
    /// Number of devices that the pod wants.
    pub wanted: usize,
    /// Number of devices that would do, each alone.
    pub fitting: usize,
    /// Number of devices of the type.
    pub devices: usize,
    /// Devices that would not do, counted by what they lack first: `health`, `selection`, `exclusive`, `gone`, or a resource
    /// such as `gpu-core`.
    pub lacking: BTreeMap<String, usize>,
}

/// `DeviceShare/nodes/:nodeName`: the devices of a node where they lie, with what each pod has of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicesOfNode {
    /// Name of the node.
    pub node_name: String,
    /// The devices, by type and minor; none of a node without a Device.
    pub devices: Vec<PlacedDevice>,
    /// What is wrong.
    pub problems: Vec<DeviceProblem>,
    /// Pods on the node that request devices and do not say which they have (`namespace/name`), sorted.
    pub unknown_pods: Vec<String>,
}

/// A device where it lies.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacedDevice {
    /// The device.
    #[serde(flatten)]
    pub device: DeviceRow,
    /// Number of its socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<i64>,
    /// Address on its bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_id: Option<String>,
    /// What is free of it, in percent: the least of its resources'.
    pub free_percent: i64,
    /// What pods have of it, by name of the pod.
    pub shares: Vec<DeviceShareOfPod>,
}

/// What a pod has of a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceShareOfPod {
    /// The pod (`namespace/name`).
    pub pod: String,
    /// The part of the device, in percent: the most of its resources'. Of a device that has nothing to give 100.
    pub percent: i64,
    /// The amounts by resource.
    pub amounts: BTreeMap<String, String>,
}

/// `DeviceShare/nodeResources`: what controller `noderesource` publishes of Devices, and what stands on the nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeResourcesState {
    /// Whether this process has the controller (`--controllers=noderesource`). Without it there are no nodes here.
    #[serde(rename = "enabled")]
    pub is_enabled: bool,
    /// Nodes that have what their Device comes to.
    pub in_step: usize,
    /// Nodes with a Device, or with amounts that only a Device gives, by name, at most a thousand.
    pub nodes: Vec<PublishedNode>,
    /// Whether there are more nodes.
    pub truncated: bool,
}

/// What a Device comes to, and what its node says.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishedNode {
    /// Name of the node.
    pub node_name: String,
    /// Whether the node says what it should, with labels.
    pub in_step: bool,
    /// What the healthy devices come to.
    pub of_devices: BTreeMap<String, String>,
    /// What of that the node has as allocatable.
    pub on_node: BTreeMap<String, String>,
    /// When this process last wrote to the node; `null` if it never did.
    pub last_written: Option<String>,
    /// Why the last write was refused; `null` when it was not.
    pub problem: Option<String>,
}
