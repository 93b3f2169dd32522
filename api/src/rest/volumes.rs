//! Bodies of the endpoints of the volume, device and feature plugins: `/apis/v1/plugins/VolumeBinding/state` and the
//! like.
//!
//! Sizes are in bytes. Lists are sorted; a truncated list sets `truncated`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `VolumeRestrictions/state`: claims that pods on nodes use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeRestrictionsState {
    /// The claims, those that exclude a second pod first, then by namespace and name.
    pub claims: Vec<ClaimInUse>,
    /// Number of claims in use that have access mode ReadWriteOncePod.
    pub exclusive_claims: usize,
    /// Number of all claims in use.
    pub total_claims: usize,
    /// Whether there are more claims than listed.
    pub truncated: bool,
}

/// A claim that pods on nodes use.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimInUse {
    /// `namespace/name` of the claim.
    pub claim: String,
    /// Whether it has access mode ReadWriteOncePod: no second pod may use it.
    pub exclusive: bool,
    /// Number of pods that use it.
    pub pods: u32,
    /// Up to five of their nodes, sorted.
    pub nodes: Vec<String>,
}

/// `NodeVolumeLimits/state`: volumes per node and CSI driver, the fullest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeVolumeLimitsState {
    /// One row per node and driver with a limit, the one with the fewest volumes left first.
    pub limits: Vec<VolumeLimit>,
    /// Number of rows with no volume left.
    pub full: usize,
    /// Whether there are more rows than listed.
    pub truncated: bool,
}

/// `NodeVolumeLimits/nodes/:nodeName`: the volumes of one node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeVolumeLimitsOfNode {
    /// Name of the node.
    pub node_name: String,
    /// Its drivers, by name.
    pub limits: Vec<VolumeLimit>,
}

/// The volumes of a CSI driver on a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeLimit {
    /// Name of the node.
    pub node_name: String,
    /// Name of the driver.
    pub driver: String,
    /// `allocatable.count` of the CSINode; absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Volumes that pods on the node use, and those that are attached besides.
    pub used: usize,
    /// Volumes of these that are attached and that no pod on the node uses.
    pub attached_only: usize,
}

/// `VolumeBinding/state`: what is held for pods on their way to a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeBindingState {
    /// One row per pod and claim, by pod.
    pub held: Vec<HeldClaim>,
    /// Number of claims that are not bound.
    pub unbound_claims: usize,
    /// Number of volumes that are free and held for nobody.
    pub free_volumes: usize,
    /// Whether there are more rows than listed.
    pub truncated: bool,
}

/// A claim that a pod with a node waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldClaim {
    /// `namespace/name` of the pod.
    pub pod: String,
    /// Name of the claim.
    pub claim: String,
    /// Node that the pod was given.
    pub node_name: String,
    /// Volume that is held for the claim; absent: one is to be provisioned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// What is still to come: `write`, `bind`, `failed: ...`, or `done`.
    pub waits_for: String,
}

/// `VolumeBinding/volumes`: the PersistentVolumes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeBindingVolumes {
    /// The volumes, by name.
    pub volumes: Vec<VolumeView>,
    /// Whether there are more volumes than listed.
    pub truncated: bool,
}

/// A PersistentVolume as the scheduler sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeView {
    /// Name.
    pub volume: String,
    /// Storage class, empty when it has none.
    pub storage_class: String,
    /// Capacity, bytes.
    pub capacity_bytes: i64,
    /// Whether it may be bound to a claim that is looking for one.
    pub free: bool,
    /// `namespace/name` of its claim, in the cluster or held by us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Whether the claim is held by us and not yet in the cluster.
    pub assumed: bool,
    /// Whether only some nodes can reach it (`spec.nodeAffinity`).
    pub limited_to_nodes: bool,
}

/// `VolumeZone/state`: volumes that are tied to a zone or region.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeZoneState {
    /// One row per label and value of volumes.
    pub zones: Vec<ZoneOfVolumes>,
    /// Number of volumes without such a label.
    pub unzoned_volumes: usize,
    /// Whether there are more rows than listed.
    pub truncated: bool,
}

/// Volumes with the same zone or region label.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZoneOfVolumes {
    /// Label key.
    pub label: String,
    /// Label value; several zones are separated by `__`.
    pub value: String,
    /// Number of volumes that have it.
    pub volumes: usize,
    /// Number of nodes that suit them as far as this label goes.
    pub nodes: usize,
}

/// `NodeDeclaredFeatures/state`: features that nodes declare or waiting pods require.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDeclaredFeaturesState {
    /// The features, by name.
    pub features: Vec<FeatureUse>,
    /// Number of all nodes.
    pub total_nodes: usize,
    /// Whether there are more features than listed.
    pub truncated: bool,
}

/// A feature, the nodes that declare it and the waiting pods that require it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureUse {
    /// Name of the feature.
    pub feature: String,
    /// Number of nodes that declare it.
    pub nodes: usize,
    /// Number of waiting pods that require it.
    pub pending_pods: usize,
}

/// `DynamicResources/state`: waiting pods that are refused because they use resource claims.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicResourcesState {
    /// The pods, by namespace and name.
    pub pods: Vec<PodWithResourceClaims>,
    /// Number of all such pods.
    pub total_pods: usize,
    /// Whether there are more pods than listed.
    pub truncated: bool,
}

/// A waiting pod that uses resource claims.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodWithResourceClaims {
    /// `namespace/name` of the pod.
    pub pod: String,
    /// Names in `spec.resourceClaims`.
    pub resource_claims: Vec<String>,
}
