//! Bodies of the endpoints of Reservation.
//!
//! Amounts are quantities by resource name, as in Kubernetes (`cpu: 1500m`), but for those of `availableResource` and
//! `allocatedResource`. Names of `nodeReservations/:nodeName` are Koordinator's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Meta;

/// `Reservation/nodeReservations/:nodeName`: the available reservations of a node. Of a node that does not exist there are
/// none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReservations {
    /// The reservations, by name.
    pub items: Vec<NodeReservation>,
}

/// A reservation of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeReservation {
    /// Name of the reservation.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// `Reservation`.
    pub kind: String,
    /// Whether pods may use it.
    pub available: bool,
    /// Whether one owner uses it up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allocate_once: bool,
    /// What it holds.
    pub allocatable: BTreeMap<String, String>,
    /// What its owners request of that; with allocatePolicy Restricted, of the restricted resources alone. May exceed
    /// `allocatable` where owners use free room of the node too.
    pub allocated: BTreeMap<String, String>,
    /// What is left, in thousandths of a core and in bytes.
    pub available_resource: ReservedAmounts,
    /// What its owners request, likewise.
    pub allocated_resource: ReservedAmounts,
    /// `spec.owners` as it is written.
    pub owners: Value,
    /// `spec.allocatePolicy`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub allocate_policy: String,
    /// The pods in its room, by namespace and name.
    pub assigned_pods: Vec<AssignedReservationPod>,
}

/// Amounts as kube-scheduler names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct ReservedAmounts {
    /// CPU in thousandths of a core.
    #[serde(rename = "MilliCPU")]
    pub milli_cpu: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage: i64,
    /// 0: pods are not counted here.
    pub allowed_pod_number: i64,
    /// Other resources by name, in their base units; `null` when there are none.
    pub scalar_resources: Value,
}

/// A pod in the room of a reservation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
pub struct AssignedReservationPod {
    /// Namespace of the pod.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    #[serde(rename = "UID")]
    pub uid: String,
    /// What it requests.
    pub requests: BTreeMap<String, String>,
}

/// `Reservation/reservations`: reservations by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationList {
    /// When and on which state the answer was made, and the position of the page.
    #[serde(default)]
    pub meta: Meta,
    /// The reservations of the page.
    pub items: Vec<ReservationRow>,
    /// Whether there are more than the page shows.
    pub truncated: bool,
}

/// A reservation in short.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationRow {
    /// Name of the reservation.
    pub name: String,
    /// `Pending`, `Available`, `Succeeded` or `Failed`, as the object says.
    pub phase: String,
    /// The node that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What it holds.
    pub allocatable: BTreeMap<String, String>,
    /// What is left of it; nothing once it has ended.
    pub left: BTreeMap<String, String>,
    /// Number of pods in its room.
    pub owners: usize,
    /// When it expires; absent when it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Why it is pending, if it is: what is wrong with it, or why no node could take it at the last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `Reservation/reservations/:name`: a reservation, who uses it and who could.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationDetail {
    /// The reservation in short.
    #[serde(flatten)]
    pub row: ReservationRow,
    /// uid of the object.
    pub uid: String,
    /// Whether one owner uses it up.
    pub allocate_once: bool,
    /// `spec.allocatePolicy`; empty for the default.
    pub allocate_policy: String,
    /// `spec.owners` as it is written.
    pub owner_terms: Value,
    /// The pods in its room, by namespace and name.
    pub current_owners: Vec<AssignedReservationPod>,
    /// Pending pods that are its owners, by namespace and name, at most 100, each with what keeps it from the reservation.
    #[serde(default)]
    pub candidates: Vec<ReservationCandidate>,
    /// Whether there are more of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub candidates_truncated: bool,
    /// Where the verdict on it stands while it is pending: it is explained as a pod is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Where it stands what happened to it.
    #[serde(default)]
    pub history: String,
}

/// A pending pod that is an owner of a reservation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationCandidate {
    /// The pod, by namespace and name.
    pub pod: String,
    /// What keeps it from the reservation.
    pub reason: String,
}

/// `explain/pods/:namespace/:name/reservations`: the reservations that have a pending pod as an owner.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodReservations {
    /// The reservations, by name, at most 100.
    pub rows: Vec<PodReservation>,
    /// Whether there are more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A reservation that has a pod as an owner.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodReservation {
    /// Name of the reservation.
    pub reservation: String,
    /// Its phase.
    pub phase: String,
    /// The node that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What keeps the pod from it.
    pub reason: String,
}

/// `Reservation/state`: how many reservations there are, and what they hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationState {
    /// Number of reservations by phase.
    pub phases: BTreeMap<String, usize>,
    /// What the available ones hold altogether.
    pub allocatable: BTreeMap<String, String>,
    /// What is left of that.
    pub left: BTreeMap<String, String>,
    /// Number of pods in their room.
    pub owners: usize,
    /// Reservations that cannot be placed as they are written, by name, at most 1,000.
    pub problems: BTreeMap<String, String>,
}
