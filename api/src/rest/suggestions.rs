//! What prevents a pod from being placed, and what would help: all failed requirements per node, minimal conflicts,
//! fixes that were tried out, the nearest nodes, and how many copies would fit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::explain::{OwnerOf, ReasonBody, Shortfall};
use super::requirements::RequirementDetail;
use super::simulate::EditBody;
use super::standing::NotPending;

/// A requirement that a node fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedRequirement {
    /// Code of the registry.
    pub code: String,
    /// The plugin that refuses.
    pub plugin: String,
    /// What it is about: a resource, a taint as `key=value:effect`, a term, a host port, a claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Message in kube-scheduler's words.
    pub message: String,
    /// Whether removing pods cannot help.
    #[serde(rename = "static")]
    pub is_static: bool,
}

/// All that one node fails.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NodeRequirements {
    /// Every failed requirement; empty: the pod fits there.
    pub failed: Vec<FailedRequirement>,
    /// What plugins say of the node, with its own numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

/// How much a code is in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CodeWeight {
    /// Nodes that fail a requirement of this code.
    pub nodes_blocked: usize,
    /// Nodes that fail nothing else: they would take the pod without it.
    pub sole_blocker_nodes: usize,
    /// How many members of the pod's gang these nodes would take; absent for a pod without a gang.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sole_blocker_slots: Option<usize>,
}

/// Nodes that fail the same requirements.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MaskGroup {
    /// What they fail.
    pub failed: Vec<FailedRequirement>,
    /// Number of nodes.
    pub count: usize,
    /// Up to three of them, the first by name.
    pub example_nodes: Vec<String>,
}

/// `?mode=exhaustive` of a pod's explanation: every plugin asked about every node, as the state is now. A decision
/// stops at the first plugin that refuses a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exhaustive {
    /// Number of nodes.
    pub total_nodes: usize,
    /// Nodes that fail nothing.
    pub feasible_nodes: usize,
    /// Why the pod is refused as a whole; then no node was asked.
    pub pod_reasons: Vec<ReasonBody>,
    /// Per code, how much it is in the way.
    pub codes: BTreeMap<String, CodeWeight>,
    /// Nodes by what they fail, the largest group first. Counts and `feasibleNodes` add up to `totalNodes`.
    pub groups: Vec<MaskGroup>,
    /// What the pod requires and nodes do not have, term by term; those of the nearest nodes first, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementDetail>,
    /// The first nodes by name (`?nodes=`, 100 without it), each with all it fails.
    pub nodes: BTreeMap<String, NodeRequirements>,
    /// Not all nodes are listed, or there were too many requirements to tell apart.
    pub truncated: bool,
}

/// Requirements that no node satisfies together; without any one of them some node would.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Conflict {
    /// The requirements.
    pub requirements: Vec<FailedRequirement>,
    /// In words.
    pub text: String,
}

/// One part of a fix.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixPart {
    /// What to do, in words.
    pub text: String,
    /// The same as an edit of `POST /apis/v1/simulate`.
    pub edit: EditBody,
    /// A command that does it; absent when the pod must be made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Whether the pod must be made anew, because the API server does not let it be changed.
    pub recreate: bool,
    /// Who can usually do that.
    pub resolver: String,
    /// Of a change of the pod: the controller from whose template the pod is made, or the object for which it stands, which
    /// is what to change. Absent for a pod without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerOf>,
    /// How hard it is to do, in points; see docs/diagnostics.md.
    pub cost: u32,
}

/// A change that makes the pod fit, or gives the gang its quorum. Without any part of it, it does not.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fix {
    /// In words.
    pub text: String,
    /// How hard it is: the sum over its parts.
    pub cost: u32,
    /// It was planned on a copy of the state, with it and without each part.
    pub verified: bool,
    /// Where the pod would go if it were the only one to be placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Members of the gang that would have places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Whether the pod, or the gang's quorum, still gets its place when every pending pod of this scheduler is tried, in
    /// the order of the queue and with evictions, and controllers make new pods in place of deleted ones. `holds`: it
    /// does. `taken`: others get what the fix frees. `unknown`: it was not tried, or the end depends on what cannot be
    /// known, such as how fast one part follows another. Absent when nothing was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_company: Option<String>,
    /// With `holds`, where the pod goes among all others, if that does not depend on how the parts follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_in_company: Option<String>,
    /// With `taken`, the pods that get places where the pod, or the gang's members, would have gone: each as
    /// `namespace/name`, at most 5, in the order in which they are placed. A pod that replaces a deleted one has that
    /// one's name. Empty when nobody goes there: what is missing is taken elsewhere, such as the free places of a zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_by: Vec<String>,
    /// Whether some parts are needed only because of the other pending pods, so that the fix holds in company: fewer
    /// would do for the pod alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub widened: bool,
    /// The controller to change, if the fix changes the pod and the pod has one. Of a pod that stands for an object, such as a
    /// Reservation, the object, whose template is changed where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<OwnerOf>,
    /// What the fix does to the whole gang, in the fixes of gangs and of their members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<GangEffect>,
    /// What is to be done.
    pub parts: Vec<FixPart>,
    /// The parts' edits, for `POST /apis/v1/simulate` with the pod in `include` (the gang in `includeGangs`).
    pub edits: Vec<EditBody>,
}

/// What a fix does to the whole gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangEffect {
    /// `namespace/name` of the gang.
    pub gang: String,
    /// Members that have places with the fix, those that have them already included.
    pub placed: u32,
    /// Members that exist and have not ended.
    pub members: u32,
    /// Members of a quorum, with the fix.
    pub min: u32,
    /// Whether every member has a place, not only a quorum.
    pub all: bool,
    /// What the pending members are made from, each as `Kind/name`, at most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// In words.
    pub text: String,
}

/// `GET /apis/v1/explain/pods/:namespace/:name/suggestions` and the same of a gang.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suggestions {
    /// What state this was computed on.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// The pod fits, or the gang has its quorum, as things are: nothing is to be mended.
    pub fits_now: bool,
    /// Minimal conflicts, the smallest first. Of a gang: those of the member that stands for it.
    pub conflicts: Vec<Conflict>,
    /// Fixes, the easiest first; of equally easy ones, those that hold in company first.
    pub fixes: Vec<Fix>,
    /// Why there is no fix, when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Members that the gang's quorum needs and for which there is no place now. Absent when the gang cannot be planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_missing: Option<u32>,
    /// The gang that the fixes are for, `namespace/name`: the gang itself, or that of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gang: Option<String>,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}

/// A node and how far it is from taking a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NearNode {
    /// Node.
    pub node: String,
    /// The sum over what it fails: 1 for what removing pods can mend, 2 for what they cannot, 10 for being a node that
    /// the pod does not ask for, and per resource the missing part of the request.
    pub distance: f64,
    /// All it fails.
    pub failed: Vec<FailedRequirement>,
    /// What it lacks. What is promised to others (nominations) is not available.
    pub shortfalls: Vec<Shortfall>,
    /// What plugins say of the node, with its own numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Pods of which all would have to go, `namespace/name`, or kind and name of another object; absent when that would not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_free: Option<Vec<String>>,
}

/// `GET /apis/v1/explain/pods/:namespace/:name/nearest`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Nearest {
    /// What state this was computed on.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Nodes that take the pod now.
    pub feasible_nodes: usize,
    /// The closest of the others, the nearest first; at equal distance those that pods could be removed from come
    /// first, those that fail the same stand together, then by name.
    pub nodes: Vec<NearNode>,
    /// Why the pod is refused as a whole; then there are no nodes.
    pub pod_reasons: Vec<ReasonBody>,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}

/// Never or not now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FeasibilityVerdict {
    /// `FitsNow`, `FitsAfterPreemption`, `NotNow` (it would fit on the nodes without their pods) or `NeverFits`. Of a gang's
    /// member also `HeldBack` (the gang cannot be planned) and `NotKnown`.
    pub code: String,
    /// In words.
    pub message: String,
}

/// A pod like the one asked about that fits now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LargestNow {
    /// Where it would go.
    pub node: String,
    /// What it would request, as in a manifest.
    pub requests: BTreeMap<String, String>,
    /// The part of the request that is left of the resource that is cut most, in per cent.
    pub percent: u32,
}

/// The pod of a [`Feasibility`] as if it had no gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeasibilityAlone {
    /// The gang that it is planned with, `namespace/name`: `verdict`, `now`, `afterPreemption` and `emptyCluster` of the
    /// body are about the pod beside its quorum.
    pub gang: String,
    /// Never or not now, of the pod alone.
    pub verdict: FeasibilityVerdict,
    /// Whether the pod alone fits now.
    pub now: bool,
    /// Whether the pod alone would after preemption.
    pub after_preemption: bool,
    /// Whether the pod alone would fit on the nodes as they are, without the pods that can leave.
    pub empty_cluster: bool,
}

/// `GET /apis/v1/explain/pods/:namespace/:name/feasibility`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feasibility {
    /// What state this was computed on.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Never or not now.
    pub verdict: FeasibilityVerdict,
    /// Whether it fits now.
    pub now: bool,
    /// Whether it would after preemption.
    pub after_preemption: bool,
    /// Whether it would fit on the nodes as they are, without the pods that can leave.
    pub empty_cluster: bool,
    /// How many of it would fit now, one after another.
    pub max_copies_now: usize,
    /// How many would fit on the nodes without the pods that can leave and without Reservations of which it is no owner.
    pub max_copies_empty: usize,
    /// The counts are bounded by this many.
    pub copies_bound: usize,
    /// The largest pod of this kind that fits now, when only resources are in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_now: Option<LargestNow>,
    /// Of a pending member of a gang without its quorum: what the pod alone would do. The rest of the body, but for the
    /// copies, is about the pod with its gang.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<FeasibilityAlone>,
    /// Why it is not pending: where it is, how it ended, or whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_pending: Option<NotPending>,
}
