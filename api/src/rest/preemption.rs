//! `/apis/v1/plugins/DefaultPreemption/state` and `/apis/v1/explain/pods/:namespace/:name/preemption`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::evictions::Lacked;
use super::explain::ReasonBody;
use super::standing::NotPending;

/// A pod that has to go.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VictimBody {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The object that the victim stands for, if it stands for one, such as `Reservation r1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// uid.
    pub uid: String,
    /// Priority.
    pub priority: i32,
    /// Whether evicting it goes beyond what a PodDisruptionBudget allows.
    pub violates_budget: bool,
    /// `ordered`, `terminating`, `gone`, `cancelled` (it was not bound yet: its placement was taken back) or
    /// `refused` (the API server did not delete it).
    pub state: String,
    /// What the API server said when it refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Seconds in this state.
    pub since_seconds: f64,
    /// Whether the eviction counts as this preemption's. Not when the pod was on its way already: deleted by
    /// somebody, or evicted for another pod, with whose preemption it is counted.
    pub counted: bool,
}

/// A preemption: one pod, the node it is nominated to, and its victims.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionBody {
    /// Namespace of the preemptor.
    pub namespace: String,
    /// Name of the preemptor.
    pub name: String,
    /// uid of the preemptor.
    pub uid: String,
    /// Priority of the preemptor.
    pub priority: i32,
    /// Node.
    pub node: String,
    /// Scheduling cycle that decided it.
    pub cycle: u64,
    /// Seconds since the decision.
    pub since_seconds: f64,
    /// Victims, the most important first; then those of an earlier choice of the same node.
    pub victims: Vec<VictimBody>,
    /// Victims that are not yet out of the way.
    pub waiting_for: usize,
    /// The gangs, `namespace/name`, whose members preempt as one and of which the preemptor is a member; empty: it
    /// preempts for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gangs: Vec<String>,
    /// What became of it: `bound`, or why the evictions were for nothing: `preemptor-gone`, `placed-elsewhere`,
    /// `node-gone`, `overtaken`, `nomination-changed`, `nothing-found`, `chosen-again`. Absent while under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// A member's part in the preemption of its gang.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangPartBody {
    /// Member, `namespace/name`.
    pub pod: String,
    /// The node it is nominated to.
    pub node: String,
    /// Those of the victims that are on this node and were found for this member, `namespace/name`.
    pub victims: Vec<String>,
}

/// The preemption of a whole gang: victims for all members of its quorum, or nobody.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangPreemptionBody {
    /// The gangs that are placed together, `namespace/name`.
    pub gangs: Vec<String>,
    /// Its members with what each needs, by name.
    pub parts: Vec<GangPartBody>,
    /// Victims of all members.
    pub victims: usize,
    /// Those that are not yet out of the way: the gang is tried again when none is left.
    pub waiting_for: usize,
}

/// A nomination.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NominationBody {
    /// Node.
    pub node: String,
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Priority of the pod: its room is kept from pods of no higher priority.
    pub priority: i32,
    /// `preemption` (ours), or `status` (somebody else set `nominatedNodeName`).
    pub by: String,
    /// Seconds since it was made.
    pub since_seconds: f64,
}

/// `GET /apis/v1/plugins/DefaultPreemption/state`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultPreemptionState {
    /// Searches for victims since the start; one for a whole gang is one.
    pub attempts: u64,
    /// Searches that chose a node; those that chose the same one again, for the same pod, are not counted. The
    /// preemption of a whole gang is one.
    pub preemptions: u64,
    /// Victims chosen, each once: these are the useful, the wasted and the refused evictions, and the counted
    /// ones of preemptions under way.
    pub victims: u64,
    /// Evictions whose preemptor ended bound to the node.
    pub useful_evictions: u64,
    /// Evictions for nothing, by what became of the preemption.
    pub wasted_evictions: BTreeMap<String, u64>,
    /// Evictions that the API server refused.
    pub refused_evictions: u64,
    /// Preemptions whose preemptor is not bound yet; the first thousand.
    pub under_way: Vec<PreemptionBody>,
    /// Nominations, by node; the first thousand.
    pub nominations: Vec<NominationBody>,
    /// Ended preemptions, the newest first; the last 256.
    pub ended: Vec<PreemptionBody>,
}

/// A node that would take the pod with others gone.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateBody {
    /// Place in the order of choice, from 1.
    pub rank: usize,
    /// Node.
    pub node: String,
    /// Who would have to go, `namespace/name`, the most important first.
    pub victims: Vec<String>,
    /// Criterion 1, the smaller wins: victims beyond what budgets allow.
    pub budget_violations: usize,
    /// Criterion 2, the smaller wins: priority of the most important victim.
    pub highest_priority: i32,
    /// Criterion 3, the smaller wins: sum over the victims of priority + 2^31.
    pub priority_sum: i64,
    /// Criterion 4, the smaller wins: number of victims.
    pub victim_count: usize,
    /// Criterion 5, the smaller wins: gangs that have their quorum and would lose it.
    pub broken_gangs: usize,
    /// Criterion 6, the later wins: first start among the victims of the highest priority, RFC 3339; absent when
    /// none of them has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earliest_start: Option<String>,
    /// Why the first candidate was preferred to this one; absent of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<String>,
}

/// Nodes that would not do.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedNodes {
    /// Number of nodes.
    pub count: usize,
    /// Why.
    pub reasons: Vec<ReasonBody>,
    /// The first of them by name.
    pub example_nodes: Vec<String>,
}

/// The last search for victims on behalf of the pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchBody {
    /// Nodes there were.
    pub total_nodes: usize,
    /// Nodes on which removing pods might have helped.
    pub potential_nodes: usize,
    /// Nodes that were tried; a search ends when it has candidates enough.
    pub tried_nodes: usize,
    /// Candidates found.
    pub candidates_found: usize,
    /// The best of them, the chosen one first.
    pub candidates: Vec<CandidateBody>,
    /// The first criterion by which the chosen one is better than the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// The nodes that would not do.
    pub rejected: Vec<RejectedNodes>,
    /// The scheduling cycle of the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<u64>,
    /// When it was made, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub at: Option<String>,
}

/// The pod as somebody's victim.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AsVictim {
    /// The preemption, with its preemptor.
    pub preemption: PreemptionBody,
    /// The rule, in a sentence.
    pub rule: String,
    /// The pod's own line of the victims.
    pub victim: VictimBody,
}

/// Whether a pod may evict others, and how far it is with that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreemptionVerdict {
    /// `PreemptionNotAllowed` (its policy or its priority forbids it), `PreemptionUnderWay` (it waits for its victims, or
    /// for its turn once they are gone), `Preempted` (it took the node of its last preemption), `NoCandidates` (the last
    /// search found none), `PreemptionEnded` (its last one ended before it had a place), `PreemptionNotNeeded` (it has a
    /// place) or `PreemptionNotTried`.
    pub code: String,
    /// The same for people.
    pub message: String,
}

/// `GET /apis/v1/explain/pods/:namespace/:name/preemption`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionExplanation {
    /// What state this was read from.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// In a sentence.
    pub summary: String,
    /// The node it is nominated to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nomination: Option<NominationBody>,
    /// The preemption it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionBody>,
    /// The whole of it, when the pod's gang preempts as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang_preemption: Option<GangPreemptionBody>,
    /// The last search for victims; of a pod that has a place, that of its last preemption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchBody>,
    /// What PostFilter said when it found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The pod as a victim: of the preemption under way, or of the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_victim: Option<AsVictim>,
    /// Its ended preemptions that are remembered, the newest first.
    pub ended: Vec<PreemptionBody>,
    /// The preemption whose victims went for it: the one under way, else the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<PreemptionBody>,
    /// Whether it may evict others, and how far it is with that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<PreemptionVerdict>,
    /// What the node lacked for it, with the victims of `chosen` still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacked: Option<Lacked>,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}
