//! The part of a dump that tells what was seen: verdicts, the queue, preemptions under way.

use pellucid_model::{Name, PodKey};
use serde::{Deserialize, Serialize};

/// What was seen.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Attempts so far.
    pub cycle: u64,
    /// The last verdict on each pod that is still there, by pod.
    pub verdicts: Vec<PastVerdict>,
    /// Units of the queue, by key.
    pub queue: Vec<QueuedUnit>,
    /// Preemptions under way, by preemptor.
    pub preemptions: Vec<Victims>,
}

/// A verdict.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastVerdict {
    /// The pod.
    pub pod: PodKey,
    /// Placed, Refused or Gated.
    pub outcome: String,
    /// The node of a placed one.
    pub node: Option<Name>,
    /// The attempt.
    pub cycle: u64,
    /// Attempts at the unit by then.
    pub attempts: u32,
    /// When, nanoseconds since 1970.
    pub at: u64,
    /// Whether a node, the pods on one, the pod itself, or what holds its gang back changed since.
    pub stale: bool,
    /// Hash of the decision.
    pub decision_hash: String,
    /// Codes of the reasons, each once.
    pub codes: Vec<String>,
    /// In words; empty when redacted.
    pub message: String,
}

/// A unit of the queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedUnit {
    /// Key of its pod, or of the first gang of its group.
    pub key: PodKey,
    /// Whether it is a gang group.
    pub is_gang: bool,
    /// Its pods, by name.
    pub pods: Vec<PodKey>,
    /// Stage, by its word.
    pub stage: String,
    /// What QueueSort gave.
    pub rank: i64,
    /// Attempts so far.
    pub attempts: u32,
}

/// A preemption under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Victims {
    /// The preemptor.
    pub preemptor: PodKey,
    /// The node.
    pub node: Name,
    /// Victims, and how far each is.
    pub victims: Vec<(PodKey, String)>,
}
