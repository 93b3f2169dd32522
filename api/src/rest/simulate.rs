//! `POST /apis/v1/simulate`: what would be decided after hypothetical edits. The live state does not change.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Meta;
use super::explain::{NodeGroup, Outlook, ReasonBody};
use super::gang_explain::GangVerdict;
use super::scores::ScoreTable;

/// The pods that a change is about: one of the two fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodsOf {
    /// `namespace/name` of a pending pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// `namespace/name` of a gang: its members that are not placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
}

/// Another quorum for a gang: the number that its PodGroup declares, or its pods if they define it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetQuorum {
    /// `namespace/name` of the gang.
    pub gang: String,
    /// Members of a quorum, at least 1.
    pub min: u32,
}

/// How much of a resource must be free before a gang is planned, in its PodGroup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetMinResource {
    /// `namespace/name` of the gang.
    pub gang: String,
    /// Name of the resource.
    pub resource: String,
    /// Amount, as in a manifest.
    pub amount: String,
}

/// A taint of a node, or the toleration of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaintOf {
    /// Key.
    pub key: String,
    /// Value; empty when absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// An empty copy of a node, open for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CopyNode {
    /// The node that is copied, without its pods.
    pub node: String,
    /// Name of the new one.
    pub name: String,
}

/// A node's taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveTaint {
    /// Node.
    pub node: String,
    /// Key of the taint.
    pub key: String,
    /// Only those with this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// A node's label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelNode {
    /// Node.
    pub node: String,
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

/// A label that a node loses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RemoveLabel {
    /// Node.
    pub node: String,
    /// Key.
    pub key: String,
}

/// Another request of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetRequest {
    /// `namespace/name` of a pending pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// `namespace/name` of a gang: its members that are not placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Resource.
    pub resource: String,
    /// Amount, as in a manifest: `500m`, `2Gi`. 0 takes the request away.
    pub amount: String,
    /// A resource whose request goes with it, such as `nvidia.com/gpu` for a share of a card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// A toleration for pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddToleration {
    /// `namespace/name` of a pending pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// `namespace/name` of a gang: its members that are not placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// The taint that is tolerated.
    pub taint: TaintOf,
}

/// A label of pods. A pod keeps its place in the queue with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelPod {
    /// `namespace/name` of a pending pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// `namespace/name` of a gang: its members that are not placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

/// An annotation of pods. A pod keeps its place in the queue with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnotatePod {
    /// `namespace/name` of a pending pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// `namespace/name` of a gang: its members that are not placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

/// Another node for a placed pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MovePod {
    /// `namespace/name` of a placed pod.
    pub pod: String,
    /// Name of the other node.
    pub node: String,
}

/// Another weight of a plugin's scores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetWeight {
    /// Plugin.
    pub plugin: String,
    /// 0 to 100; 0 takes its scores away.
    #[schema(minimum = 0, maximum = 100)]
    pub weight: i64,
}

/// An object of a kind that a plugin brings, or a Queue of kube-batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectOf {
    /// Its kind, with the group where several plugins' kinds have the name: `NodeMetric`, or
    /// `NodeMetric.slo.koordinator.sh`. A Queue always with its group: `Queue.scheduling.incubator.k8s.io`.
    pub kind: String,
    /// Namespace; `default` when absent. Not given for a kind without namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// One change of the cluster, or of how it is scheduled. An object with one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum EditBody {
    /// A Node manifest: the node is added, or becomes this one.
    AddNode(Value),
    /// An empty node like one that is there.
    CopyNode(CopyNode),
    /// A node goes, by name. Its pods keep their places on it.
    RemoveNode(String),
    /// A node loses taints.
    RemoveTaint(RemoveTaint),
    /// A node is open for pods again, by name.
    Uncordon(String),
    /// A node has a label.
    LabelNode(LabelNode),
    /// A node loses a label.
    RemoveLabel(RemoveLabel),
    /// A pod goes (it ends or is deleted), by `namespace/name`.
    DeletePod(String),
    /// Pods request something else.
    SetRequest(SetRequest),
    /// Pods tolerate a taint.
    AddToleration(AddToleration),
    /// Pods have a label.
    LabelPod(LabelPod),
    /// Pods have an annotation. It matters when an enabled plugin reads it.
    AnnotatePod(AnnotatePod),
    /// A placed pod is made anew, and only another node may take it.
    MovePod(MovePod),
    /// Pods do not choose nodes by name or label any more.
    DropNodeAffinity(PodsOf),
    /// Pods take no ports of their host.
    DropHostPorts(PodsOf),
    /// Pods only prefer to be spread.
    RelaxSpread(PodsOf),
    /// Pods only prefer other pods beside them, with weight 100.
    RelaxPodAffinity(PodsOf),
    /// Pods only prefer other pods to stay away, with weight 100.
    RelaxPodAntiAffinity(PodsOf),
    /// Pods do not require other pods beside them.
    DropPodAffinity(PodsOf),
    /// Pods do not require other pods to stay away.
    DropPodAntiAffinity(PodsOf),
    /// Pods have no scheduling gates.
    RemoveGates(PodsOf),
    /// A gang has another quorum.
    SetQuorum(SetQuorum),
    /// The PodGroup of a gang asks for another amount in `spec.minResources`.
    SetMinResource(SetMinResource),
    /// A plugin's scores have another weight, in every profile.
    SetWeight(SetWeight),
    /// A manifest of a kind that an enabled plugin brings, such as a NodeMetric, or of a Queue of kube-batch: the object is
    /// added, or becomes this one.
    ApplyObject(Value),
    /// An object of such a kind goes.
    DeleteObject(ObjectOf),
}

/// The question. At least one pod must be asked for, or changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimulateRequest {
    /// Pod manifests that are created and planned. Without a namespace: `default`; without a scheduler name:
    /// the first profile's.
    #[serde(default)]
    pub pods: Vec<Value>,
    /// PodGroup manifests that are there before the pods.
    #[serde(default)]
    pub pod_groups: Vec<Value>,
    /// Changes, in this order.
    #[serde(default)]
    pub edits: Vec<EditBody>,
    /// Pending pods to plan too, `namespace/name`. Pods that are changed are planned anyway.
    #[serde(default)]
    pub include: Vec<String>,
    /// Gangs whose members are planned too, `namespace/name`.
    #[serde(default)]
    pub include_gangs: Vec<String>,
    /// Whether pods leave. With `true`, pods that would be evicted for one of higher priority are removed and that one
    /// is placed; evictions that are under way are carried out, and pods that are being deleted leave in the end. With
    /// `false` every pod keeps its place: who needs an eviction is refused, and `victims` names whom it would evict.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub evict: bool,
    /// So many rows of the score table of each placed pod; 0: none. Times the pods that are planned at most 20000.
    #[serde(default)]
    #[schema(maximum = 1000)]
    pub scores: usize,
    /// Whether the hash of the state it starts from is wanted. It takes a walk over all pods.
    #[serde(default)]
    pub state_hash: bool,
}

fn yes() -> bool {
    true
}

/// A pod that would have a place.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedPlacement {
    /// `namespace/name`.
    pub pod: String,
    /// Node.
    pub node: String,
    /// `reserved`, `waiting` (NonStrict gangs) and so on: the stage it would come to. That a wait runs out, and others get what was held, is
    /// not looked at.
    pub stage: String,
    /// Total score; absent when only one node was feasible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<i64>,
    /// Number of feasible nodes.
    pub feasible_nodes: usize,
}

/// A pod that would not.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedRefusal {
    /// `namespace/name`.
    pub pod: String,
    /// Why, in a sentence.
    pub summary: String,
    /// Message in kube-scheduler's grammar.
    pub message: String,
    /// Number of nodes.
    pub total_nodes: usize,
    /// Nodes nobody looked at.
    pub not_evaluated: usize,
    /// The refused nodes by cause.
    pub node_groups: Vec<NodeGroup>,
    /// Reasons that concern the pod rather than nodes.
    pub pod_reasons: Vec<ReasonBody>,
    /// The reason that keeps it pending, as in its explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_reason: Option<ReasonBody>,
    /// Whether it could fit later, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    /// What would help.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// A pod that would have to go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedVictim {
    /// `namespace/name`, or an object such as `Reservation r1`.
    pub pod: String,
    /// Where it is.
    pub node: String,
    /// `namespace/name` of the pod it would make room for.
    pub preemptor: String,
}

/// What would become of a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedGang {
    /// `namespace/name`.
    pub gang: String,
    /// Members of a quorum.
    pub min: u32,
    /// Members with a place, bound ones included.
    pub placed: u32,
    /// Whether that is a quorum, or none is needed any more: a gang with match policy once-satisfied had one before.
    pub has_quorum: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GangVerdict>,
}

/// `POST /apis/v1/simulate`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Simulation {
    /// The state it started from.
    pub meta: Meta,
    /// Hash of that state, as `/apis/v1/statehash` says it, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_hash: Option<String>,
    /// Pods with a place, by name.
    pub placements: Vec<SimulatedPlacement>,
    /// Pods without one, by name.
    pub refused: Vec<SimulatedRefusal>,
    /// Gangs of the pods, by name.
    pub gangs: Vec<SimulatedGang>,
    /// Pods that would have to go, by name.
    pub victims: Vec<SimulatedVictim>,
    /// Score tables, when asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<ScoreTable>,
}

/// `GET /apis/v1/statehash`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateHash {
    /// What state this was read from.
    pub meta: Meta,
    /// 64 bits in hexadecimal, over nodes, pods with their places, objects and nominations. It does not depend on
    /// time, process or generation.
    pub hash: String,
    /// Number of nodes in it.
    pub nodes: usize,
    /// Number of pods in it.
    pub pods: usize,
}
