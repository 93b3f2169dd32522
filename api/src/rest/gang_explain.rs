//! Explanations of gangs: `/apis/v1/explain/gangs/:namespace/:name` and `/apis/v1/gangs/interference`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::{NodeGroup, Outlook, ReasonBody, Shortfall};
use super::gangs::{GangCounts, GangMember, GangRelease, HeldResources, PartiallyBound};

/// A verdict on a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GangVerdict {
    /// Code of the registry (`/apis/v1/reasons`), or one of those for gangs that lack nothing: GangRunning,
    /// GangPlaced, GangPartiallyBound, GangWaiting, GangQueued, GangFinished, GangEmpty, GangNotScheduled.
    pub code: String,
    /// In words.
    pub message: String,
    /// What would mend it.
    pub remedy: String,
    /// Who can usually do that.
    pub resolver: String,
}

/// Members in numbers. `created` = `gated` + `pending` + `waiting` + `permitted` + `bound` + `finished`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GangNumbers {
    /// Members of a quorum.
    pub min: u32,
    /// Members that exist.
    pub created: u32,
    /// Members that the quorum lacks before it can be planned. Those held by gates of their own do not count.
    pub missing: u32,
    /// Held before the queue.
    pub gated: u32,
    /// In the queue.
    pub pending: u32,
    /// They have a place and wait for the others (NonStrict).
    pub waiting: u32,
    /// Released by Permit and not bound.
    pub permitted: u32,
    /// Bound.
    pub bound: u32,
    /// Ended.
    pub finished: u32,
    /// How many of the wanted members have places together, as things are now; absent when the group cannot be
    /// planned or has its quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeable: Option<u32>,
    /// How many members the quorum still needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<u32>,
}

/// The member that stands for a failed attempt.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangRootCause {
    /// `namespace/name` of the pod.
    pub pod: String,
    /// How many more of the wanted members have no place either.
    #[serde(default)]
    pub others: u32,
    /// Why no node took it beside the others.
    pub message: String,
    /// Number of nodes at the decision.
    pub total_nodes: usize,
    /// Nodes nobody looked at.
    pub not_evaluated: usize,
    /// Per resource that was lacking, the node that had the most of it.
    pub lacking: Vec<Shortfall>,
    /// The refused nodes by cause.
    pub node_groups: Vec<NodeGroup>,
    /// Reasons that concern the pod rather than nodes.
    pub pod_reasons: Vec<ReasonBody>,
}

/// What a gang waits for besides nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct GangBlocker {
    /// `gang` (another gang of its group is not ready) or `holders` (members of other gangs hold what it lacks).
    pub kind: String,
    /// The gangs it waits for, by name.
    pub gangs: Vec<String>,
    /// In words.
    pub message: String,
    /// What they hold and where, for kind `holders`.
    pub holders: Vec<InterferenceEdge>,
}

/// When a gang is tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangRetry {
    /// Queue stage: active, backoff, unschedulable or gated.
    pub stage: String,
    /// When its backoff ends, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_until: Option<String>,
    /// When it is tried at the latest, RFC 3339, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_the_latest: Option<String>,
    /// When the first wait of its members runs out, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ends: Option<String>,
    /// The events that can wake it, `Resource/Action` each.
    pub wakes_on: Vec<String>,
    /// In words.
    pub text: String,
}

/// Another gang of the group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupGang {
    /// `namespace/name`.
    pub gang: String,
    /// How it stands.
    pub state: String,
    /// Code of its verdict.
    pub code: String,
    /// Verdict in words.
    pub message: String,
    /// Members of its quorum.
    pub min: u32,
    /// Members that are there for it.
    pub have: u32,
}

/// The last attempt at a gang's group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangAttempt {
    /// Number of the cycle.
    pub cycle: u64,
    /// When, RFC 3339.
    pub at: String,
    /// `placed`, `waiting`, `refused` or `released`.
    pub outcome: String,
    /// Members that were placed or gave their place up.
    pub members: u32,
    /// Members that were not asked, because the outcome was clear.
    pub not_evaluated: u32,
    /// The orders in which members were tried; the first found the most places.
    pub orders: Vec<String>,
    /// Whether more could have been tried, orders or victims, and was not because of what it costs.
    pub truncated: bool,
}

/// `GET /apis/v1/explain/gangs/:namespace/:name`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangExplanation {
    /// What state and decision this is about.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// How it stands, in a word.
    pub state: String,
    /// The verdict, as things are now.
    pub verdict: GangVerdict,
    /// How it is declared.
    pub dialect: String,
    /// `Strict` or `NonStrict`.
    pub mode: String,
    /// What `waiting` means in this mode.
    pub mode_note: String,
    /// Numbers.
    pub counts: GangNumbers,
    /// Of a gang without its quorum: whether the quorum fits now, could fit later, or never, as the state is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    /// The member that stands for the failure, as the state is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<GangRootCause>,
    /// What it waits for besides nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocker: Option<GangBlocker>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_retry: Option<GangRetry>,
    /// Attempts so far.
    pub attempts: u32,
    /// Waits that ran out.
    pub timeouts: u32,
    /// The last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt: Option<GangAttempt>,
    /// What its last release of waiting members was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_release: Option<GangRelease>,
    /// Set while a part of the quorum is bound and the rest is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partially_bound: Option<PartiallyBound>,
    /// What its waiting and permitted members hold.
    pub held: HeldResources,
    /// The other gangs of its group.
    pub group: Vec<GroupGang>,
    /// The members, by name.
    pub members: Vec<GangMember>,
    /// What of its definition is ignored, and what stands in for it.
    pub warnings: Vec<String>,
}

/// The gang of a pod, in the pod's explanation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PodGang {
    /// `namespace/name` of the gang.
    pub gang: String,
    /// How the pod stands in it.
    pub member: String,
    /// How the gang stands.
    pub state: String,
    /// Code of the gang's verdict.
    pub code: String,
    /// The gang's verdict in words.
    pub message: String,
    /// Where the gang is explained.
    pub path: String,
    /// Of a pending member of a gang without its quorum: the outlook of the gang. That of the pod is the explanation's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
}

/// One gang in a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangLine {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// State, as in its explanation.
    pub state: String,
    /// Dialect in which it is declared.
    pub dialect: String,
    /// Strict or NonStrict.
    pub mode: String,
    /// Members of a quorum.
    pub min: u32,
    /// Its members by stage.
    pub counts: GangCounts,
    /// The highest priority of its members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// When its first member was created, RFC 3339; absent for a gang without live members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The controllers of its members, `Kind/name` each, at most 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// Code of its verdict.
    pub code: String,
    /// Its verdict in a sentence.
    pub message: String,
    /// What would help; empty for a gang that lacks nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Code of its outlook; empty where it has its quorum or waits for no place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outlook: String,
    /// When the first of its waiting members gives its place up, RFC 3339; absent when none waits until a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ends: Option<String>,
    /// The gangs that wait for each other, this one among them; empty when it is in no deadlock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadlock: Vec<String>,
}

/// `GET /apis/v1/explain/gangs`: every gang in a line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangList {
    /// What state this was read from.
    pub meta: Meta,
    /// Number of gangs that the filters admit, on all pages.
    pub count: usize,
    /// Sets of gangs that wait for each other, of all gangs.
    pub deadlocks: Vec<InterferenceCycle>,
    /// By namespace and name, unless the request sorts otherwise.
    pub gangs: Vec<GangLine>,
}

/// `GET /apis/v1/explain/gangs/:namespace/:name/feasibility`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangFeasibility {
    /// What state this was computed on.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Never or not now; absent when the gang has its quorum or nothing of it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlook: Option<Outlook>,
    /// Members of a quorum.
    pub min: u32,
    /// Members that count towards the quorum already.
    pub counted: u32,
    /// Members that the quorum still needs.
    pub wanted: u32,
    /// How many of the wanted members have places together now; absent when the group cannot be planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_now: Option<u32>,
    /// How many of them have places when every pod has left that can; absent when the quorum fits without that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_empty: Option<u32>,
    /// Wanted members without a place now: `wanted` less `slotsNow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_missing: Option<u32>,
    /// What would help.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Who can usually do that.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resolver: String,
}

/// A gang holds what another one waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterferenceEdge {
    /// The gang that holds.
    pub holder: String,
    /// The gang that waits.
    pub waiter: String,
    /// What the waiter's failed member lacks and the holder's waiting or permitted members take, on nodes that
    /// the member could use.
    pub resources: Vec<String>,
    /// Held amounts of these resources in base units.
    pub held: BTreeMap<String, i64>,
    /// The same for people.
    pub held_text: BTreeMap<String, String>,
    /// CPU the holder has there, in thousandths of a core.
    pub held_cpu_milli: i64,
    /// Memory the holder has there, in bytes.
    pub held_memory_bytes: i64,
    /// Members of the holder there.
    pub holder_pods: usize,
    /// The waiter's member that found no room.
    pub waiter_pod: String,
    /// Number of nodes where they meet.
    pub node_count: usize,
    /// Up to twenty of them, the first by name.
    pub nodes: Vec<String>,
    /// Since when the first of the holder's members holds its place, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Gangs that wait for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterferenceCycle {
    /// The gangs, by name.
    pub gangs: Vec<String>,
    /// The first deadline of a member that waits, RFC 3339: it breaks the cycle at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaks_at: Option<String>,
}

/// The gang that is planned next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GangTurn {
    /// The first gang of the group.
    pub gang: String,
    /// Its queue stage: active or backoff.
    pub stage: String,
    /// When its backoff ends, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// `GET /apis/v1/gangs/interference`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Interference {
    /// What state this was read from. `truncated`: there are more edges than listed.
    pub meta: Meta,
    /// Who holds what whom waits for, by holder and waiter.
    pub edges: Vec<InterferenceEdge>,
    /// Sets of gangs that wait for each other, all edges counted.
    pub cycles: Vec<InterferenceCycle>,
    /// Whose turn it is; absent when no gang can be tried now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<GangTurn>,
}
