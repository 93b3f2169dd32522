//! Gangs: `/apis/v1/plugins/Coscheduling/gangs`, `…/gang/:namespace/:name`, and `…/state`.
//!
//! Field names are Koordinator's where it has them, both those of release 0.7 and the current ones. A set, which
//! Koordinator serialises as `{"ns/pod": {}}`, has the same keys here, with the details as values.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The empty value of a set's key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetEntry {}

/// A member of a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangMember {
    /// `namespace/name`.
    pub pod: String,
    /// `Gated`, `Queued` (not tried yet), `Failed`, `Evaluated` (it would have been placed) or `NotEvaluated` in
    /// the last attempt; `Waiting`, `Permitted`, `Bound` or `Finished`.
    pub state: String,
    /// Stage: pending, reserved, waiting, permitted, pre-binding, binding or bound; the phase of one that ended.
    pub stage: String,
    /// Where it takes room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When it entered its stage, RFC 3339, when that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Until when it waits at Permit, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// Queue stage of a pending member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_stage: Option<String>,
    /// First code of a pending member's verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why it is pending, as in its condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Members by stage: `created` is the sum of the others, each member being in exactly one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GangCounts {
    /// Members that exist.
    pub created: u32,
    /// Held before the queue: by gates of their own, or because their group cannot be planned yet.
    pub gated: u32,
    /// In the queue.
    pub pending: u32,
    /// They have a place and wait for the others (NonStrict).
    pub waiting: u32,
    /// Released by Permit; pre-binding and binding ones are among them.
    pub permitted: u32,
    /// Confirmed by the API server.
    pub bound: u32,
    /// Their pods ended, and the objects are still there.
    pub finished: u32,
}

/// Resources that members hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldResources {
    /// Members that hold them.
    pub pods: usize,
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Every resource in base units: thousandths of a core, bytes, pieces.
    pub amounts: BTreeMap<String, i64>,
    /// The same for people.
    pub text: BTreeMap<String, String>,
}

/// Waiting members were given up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangRelease {
    /// Code of the registry.
    pub code: String,
    /// When, RFC 3339.
    pub at: String,
    /// How many members gave their place up.
    pub members: u32,
}

/// A quorum was permitted and is not bound as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartiallyBound {
    /// Bound members.
    pub bound: u32,
    /// Members of a quorum.
    pub min: u32,
    /// What keeps the others.
    pub reason: String,
}

/// Koordinator's `GangGroupInfo`. It has no field tags there, so the names begin with capitals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct GangGroupInfo {
    /// Whether every gang of the group is defined and names the others.
    pub initialized: bool,
    /// The gangs, sorted, joined by commas.
    pub gang_group_id: String,
    /// The gangs.
    pub gang_group: Vec<String>,
    /// Whether the whole group had its quorum once.
    pub once_resource_satisfied: bool,
    /// The gangs that are short of their quorum.
    #[serde(rename = "WaitingGangIDs")]
    pub waiting_gang_ids: BTreeMap<String, SetEntry>,
    /// The pod that stands for the group: the first of those that are not placed.
    pub representative_pod_key: String,
    /// Members that are permitted and not bound.
    pub binding_member_pods: BTreeMap<String, SetEntry>,
}

/// `plugins/Coscheduling/gang/:namespace/:name`, and each value of `plugins/Coscheduling/gangs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangSummary {
    /// `namespace/name`.
    pub name: String,
    /// How long members wait for each other, in nanoseconds. Strict gangs hold nothing while they wait: for them
    /// it is how long they may be short of pods before they are marked unschedulable.
    pub wait_time: i64,
    /// Creation, RFC 3339: of the PodGroup if there is one, else of the first pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_time: Option<String>,
    /// `Strict` or `NonStrict`.
    pub mode: String,
    /// What `waiting` means in this mode.
    pub mode_note: String,
    /// Which members count towards the quorum: `only-waiting`, `waiting-and-running` or `once-satisfied`. Dialects
    /// other than Koordinator's have a fixed rule, which this names.
    pub gang_match_policy: String,
    /// Members of a quorum.
    pub min_required_number: u32,
    /// Members there will be: as declared, else the quorum.
    pub total_children_num: u32,
    /// The gangs that it names as its group; itself when it names none.
    pub gang_group: Vec<String>,
    /// All members.
    pub children: BTreeMap<String, GangMember>,
    /// Those in the queue.
    pub pending_children: BTreeMap<String, GangMember>,
    /// Those that have a place and are not bound: waiting and permitted ones, each with its stage.
    pub waiting_for_bind_children: BTreeMap<String, GangMember>,
    /// The bound ones.
    pub bound_children: BTreeMap<String, GangMember>,
    /// Those released by Permit and not bound.
    pub permitted_children: BTreeMap<String, GangMember>,
    /// Those held before the queue.
    pub gated_children: BTreeMap<String, GangMember>,
    /// Those whose pods ended.
    pub finished_children: BTreeMap<String, GangMember>,
    /// Those of the pending ones that no node took in the last attempt.
    pub failed_children: BTreeMap<String, GangMember>,
    /// Those of the pending ones that were not asked in the last attempt, because its outcome was clear.
    pub not_evaluated_children: BTreeMap<String, GangMember>,
    /// Members by stage.
    pub counts: GangCounts,
    /// Whether its quorum was permitted once.
    pub once_resource_satisfied: bool,
    /// Its group.
    pub gang_group_info: GangGroupInfo,
    /// `GangFromPodGroupCrd` or `GangFromPodAnnotation` (labels too).
    pub gang_from: String,
    /// Whether it is defined.
    pub has_gang_init: bool,
    /// Round of attempts (Koordinator 0.7), from 1.
    pub schedule_cycle: u64,
    /// Whether no member has failed in this round.
    pub schedule_cycle_valid: bool,
    /// The round in which each member was tried last; 0 before the first.
    pub children_schedule_round_map: BTreeMap<String, u64>,
    /// Attempts at it.
    pub attempts: u32,
    /// Waits that ran out.
    pub timeouts: u32,
    /// `unicore`, `coscheduling`, `koordinator`, `kube-batch` or `native`.
    pub dialect: String,
    /// What of its definition is ignored, and what stands in for it.
    pub warnings: Vec<String>,
    /// What its waiting and permitted members hold.
    pub held: HeldResources,
    /// How it stands, in a word: see docs/diagnostics.md.
    pub state: String,
    /// What its last release of waiting members was for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_release: Option<GangRelease>,
    /// Set while a part of the quorum is bound and the rest is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partially_bound: Option<PartiallyBound>,
}

/// `plugins/Coscheduling/state`: all gangs in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoschedulingState {
    /// Gangs that are known.
    pub gangs: usize,
    /// Those that have their quorum.
    pub satisfied_gangs: usize,
    /// Those that are not defined, such as for want of their PodGroup.
    pub undefined_gangs: usize,
    /// Gangs by dialect.
    pub dialects: BTreeMap<String, usize>,
    /// Members that are not placed.
    pub pending_members: u32,
    /// Members that hold a place and wait for others.
    pub waiting_members: u32,
    /// Members that are permitted and not bound.
    pub permitted_members: u32,
    /// Bound members.
    pub bound_members: u32,
    /// Members whose pods ended.
    pub finished_members: u32,
}
