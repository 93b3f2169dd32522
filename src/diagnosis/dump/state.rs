//! The part of a dump that can be rebuilt.

use std::sync::Arc;

use pellucid_model::pod::PodPhase;
use pellucid_model::{GangKey, Name, Node, Object, Pod, PodKey};
use serde::{Deserialize, Serialize};

/// Objects, places, and what else decides.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// Seed of the tie order.
    pub seed: u64,
    /// Where the next sampled search of each profile begins (`percentageOfNodesToScore`).
    pub starts: Vec<usize>,
    /// The scheduler that is shadowed: its pods are decided on.
    pub shadow_of: Option<Name>,
    /// Nodes, by name.
    pub nodes: Vec<Arc<Node>>,
    /// Objects of all other kinds, by kind, namespace and name.
    pub objects: Vec<Arc<Object>>,
    /// Pods that wait or take room, by namespace and name.
    pub pods: Vec<PlacedPod>,
    /// Members of gangs whose pods have ended.
    pub ended: Vec<EndedPod>,
    /// What is remembered of gangs.
    pub gangs: Vec<KnownGang>,
    /// Claims on nodes, by pod.
    pub nominations: Vec<KnownNomination>,
    /// Objects that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// A pod and where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedPod {
    /// The object.
    pub pod: Arc<Pod>,
    /// Where it takes room.
    pub node: Option<Name>,
    /// Its stage, by its word.
    pub stage: String,
}

/// A member of a gang whose pod has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedPod {
    /// Namespace and name.
    pub key: PodKey,
    /// uid.
    pub uid: Arc<str>,
    /// Succeeded or Failed.
    pub phase: PodPhase,
    /// Its gang.
    pub gang: GangKey,
}

/// What is remembered of a gang besides its objects.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownGang {
    /// Namespace and name.
    pub key: GangKey,
    /// Whether its quorum was permitted once.
    pub once_satisfied: bool,
    /// Whether a quorum was permitted that is not yet bound.
    pub is_partial: bool,
    /// Whether it was short of pods for longer than it may be.
    pub is_overdue: bool,
    /// Whether a PodGroup was ever there.
    pub had_group: bool,
}

/// A claim of a pending pod on a node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownNomination {
    /// The pod.
    pub pod: PodKey,
    /// The node.
    pub node: Name,
    /// Whether our preemption made it; else somebody else's status did.
    pub is_ours: bool,
    /// Since when, nanoseconds since 1970.
    pub since: u64,
}

/// An object that cannot be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unreadable {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Arc<str>,
    /// uid, when that could be read.
    pub uid: Arc<str>,
    /// The field that cannot be read.
    pub field: Arc<str>,
    /// Its value; empty when redacted.
    pub value: Arc<str>,
    /// What is wrong with it; empty when redacted.
    pub problem: Arc<str>,
}
