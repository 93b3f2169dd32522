//! The part of a dump that records what was observed: verdicts, the queue, preemptions in progress.

use pellucid_model::{Name, PodKey};
use serde::{Deserialize, Serialize};

/// What was observed when the snapshot was published.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Number of attempts so far.
    pub cycle: u64,
    /// The last verdict on each pod that still exists, sorted by pod.
    pub verdicts: Vec<PastVerdict>,
    /// Units of the queue, sorted by key.
    pub queue: Vec<QueuedUnit>,
    /// Preemptions in progress, sorted by preemptor.
    pub preemptions: Vec<Victims>,
}

/// The last verdict on a pod.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastVerdict {
    /// Namespace and name of the pod.
    pub pod: PodKey,
    /// `Placed`, `Refused` or `Gated`.
    pub outcome: String,
    /// Node of a placed pod.
    pub node: Option<Name>,
    /// Number of the attempt.
    pub cycle: u64,
    /// Number of attempts at the unit so far.
    pub attempts: u32,
    /// Time of the verdict, in nanoseconds since 1970.
    pub at: u64,
    /// Whether a node, the pods on one, the pod itself, or what holds its gang back changed since.
    pub stale: bool,
    /// Hash of the decision: 16 hexadecimal digits.
    pub decision_hash: String,
    /// Reason codes, each once.
    pub codes: Vec<String>,
    /// Message of a refusal; empty when redacted.
    pub message: String,
}

/// A unit of the queue: a pod or a gang group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedUnit {
    /// Key of the pod, or of the first gang of the group.
    pub key: PodKey,
    /// Whether the unit is a gang group.
    pub is_gang: bool,
    /// Pods of the unit, sorted by name.
    pub pods: Vec<PodKey>,
    /// Stage, in the words of `QueueStage::as_str`.
    pub stage: String,
    /// Rank that QueueSort assigned.
    pub rank: i64,
    /// Number of attempts so far.
    pub attempts: u32,
}

/// A preemption in progress.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Victims {
    /// Namespace and name of the preemptor.
    pub preemptor: PodKey,
    /// Node that the victims leave.
    pub node: Name,
    /// Victims, each with its state.
    pub victims: Vec<(PodKey, String)>,
}
