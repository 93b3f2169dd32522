//! The part of a dump that can be rebuilt.

use std::sync::Arc;

use pellucid_model::effect::BindingMarks;
use pellucid_model::pod::PodPhase;
use pellucid_model::{GangKey, Name, Node, Object, Pod, PodKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that decisions depend on, except the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Seed of the tie-break order.
    pub seed: u64,
    /// Index at which each profile's next sampled search begins (`percentageOfNodesToScore`).
    pub starts: Vec<usize>,
    /// Name of the shadowed scheduler, whose pods are decided on.
    pub shadow_of: Option<Name>,
    /// Whether another instance was the leader, and this one stood by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_standby: bool,
    /// Nodes, sorted by name.
    pub nodes: Vec<Arc<Node>>,
    /// Objects of all other kinds, sorted by kind, namespace and name.
    pub objects: Vec<Arc<Object>>,
    /// Objects of plugins' kinds, sorted by kind, namespace and name.
    pub plugin_objects: Vec<PluginObject>,
    /// Time up to which plugins' deadlines had been handled, in nanoseconds since 1970.
    pub plugin_time: u64,
    /// Pods that are pending or use resources of a node, sorted by namespace and name.
    pub pods: Vec<PlacedPod>,
    /// Gang members whose pods have ended.
    pub ended: Vec<EndedPod>,
    /// History of gangs that have pods or had a PodGroup.
    pub gangs: Vec<KnownGang>,
    /// Nominations, sorted by pod.
    pub nominations: Vec<KnownNomination>,
    /// Objects that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// A pod and its place.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedPod {
    /// The pod object.
    pub pod: Arc<Pod>,
    /// Node whose resources the pod uses.
    pub node: Option<Name>,
    /// Stage, in the words of `Stage::as_str`.
    pub stage: String,
    /// When the pod took its place, in nanoseconds since 1970; `None` exactly when it has none.
    pub since: Option<u64>,
    /// What its Binding adds to it, while its object does not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marks: Option<Arc<BindingMarks>>,
}

/// An object of a kind that a plugin brings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginObject {
    /// Name of the kind (`CustomKind::qualified`).
    pub kind: String,
    /// Namespace; empty for a kind without namespaces.
    pub namespace: Name,
    /// Name of the object.
    pub name: Name,
    /// UID of the object.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion` of the object.
    pub resource_version: Arc<str>,
    /// What the plugin read, as `CustomKind::encode` writes it.
    pub content: Value,
}

/// A gang member whose pod has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedPod {
    /// Namespace and name of the pod.
    pub key: PodKey,
    /// UID of the pod.
    pub uid: Arc<str>,
    /// `Succeeded` or `Failed`.
    pub phase: PodPhase,
    /// The gang that the pod belongs to.
    pub gang: GangKey,
}

/// History of a gang that its objects do not show.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownGang {
    /// Namespace and name of the gang.
    pub key: GangKey,
    /// Whether its quorum was ever permitted.
    pub once_satisfied: bool,
    /// Whether a quorum was permitted that is not yet fully bound.
    pub is_partial: bool,
    /// Whether it lacked pods for longer than its time limit.
    pub is_overdue: bool,
    /// Whether it ever had a PodGroup.
    pub had_group: bool,
}

/// The nomination of a pending pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownNomination {
    /// Namespace and name of the nominated pod.
    pub pod: PodKey,
    /// Name of the nominated node.
    pub node: Name,
    /// Whether our preemption made the nomination; otherwise it came from a status that others wrote.
    pub is_ours: bool,
    /// Time of the nomination, in nanoseconds since 1970.
    pub since: u64,
}

/// An object that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unreadable {
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: Name,
    /// Name of the object.
    pub name: Arc<str>,
    /// UID of the object, if it could be read.
    pub uid: Arc<str>,
    /// Field that cannot be read.
    pub field: Arc<str>,
    /// Value of the field; empty when redacted.
    pub value: Arc<str>,
    /// Problem with the value; empty when redacted.
    pub problem: Arc<str>,
}
