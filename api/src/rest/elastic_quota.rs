//! Bodies of the endpoints of ElasticQuota.
//!
//! Amounts are quantities by resource name, as in Kubernetes (`cpu: 1500m`). Names of `quotas`, `quotas/:name` and
//! `quota/:name` are Koordinator's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::sharing::SharingRound;

/// `ElasticQuota/quotas/:name`, and the values of `quotas`: what a quota may use and what its pods request and use.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaSummary {
    /// Name of the quota.
    pub name: String,
    /// Namespace of its object; absent for a built-in quota without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of its parent.
    pub parent_name: String,
    /// Whether it may have children.
    pub is_parent: bool,
    /// Whether others may use what it does not request of its min.
    pub allow_lent_resource: bool,
    /// Another number whenever its runtime is another.
    pub runtime_version: u64,
    /// Name of its tree; empty for the default tree.
    pub tree: String,
    /// What it never exceeds.
    pub max: BTreeMap<String, String>,
    /// What it gets whatever others request.
    pub min: BTreeMap<String, String>,
    /// Its min as far as there is enough for the mins of all siblings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub auto_scale_min: BTreeMap<String, String>,
    /// What pods with a place use, in it and below it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, String>,
    /// The part of `used` of pods that are not preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub non_preemptible_used: BTreeMap<String, String>,
    /// What it asks for: `childRequest`, or at least its min when it does not lend.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request: BTreeMap<String, String>,
    /// What pods that are not preemptible request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub non_preemptible_request: BTreeMap<String, String>,
    /// Its weight in the distribution of what is left over.
    pub shared_weight: BTreeMap<String, String>,
    /// What it may use now.
    pub runtime: BTreeMap<String, String>,
    /// What its pods request and its children ask for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub child_request: BTreeMap<String, String>,
    /// What its pods use and is guaranteed to its children; only where usage is guaranteed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocated: BTreeMap<String, String>,
    /// The greater of min and `allocated`; only where usage is guaranteed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guaranteed: BTreeMap<String, String>,
    /// What its own pods use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub self_used: BTreeMap<String, String>,
    /// What its own pods use that are not preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub self_non_preemptible_used: BTreeMap<String, String>,
    /// What its own pods request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub self_request: BTreeMap<String, String>,
    /// What its own pods request that are not preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub self_non_preemptible_request: BTreeMap<String, String>,
    /// Its own pods, by namespace and name, if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_cache: Option<BTreeMap<String, QuotaPod>>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<QuotaProblem>,
}

/// A pod of a quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaPod {
    /// Whether it has a place.
    pub is_assigned: bool,
    /// What it requests, of all resources.
    pub resource: BTreeMap<String, String>,
}

/// Something wrong with a quota. Everything else goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaProblem {
    /// Name of the quota.
    pub quota: String,
    /// Namespace of the quota.
    pub namespace: String,
    /// The field, label or annotation.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What is wrong, and what holds instead.
    pub problem: String,
}

/// `ElasticQuota/state`: how many quotas there are, those that are over or short of their share, and all problems.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaState {
    /// Number of quotas, without built-in ones.
    pub quotas: usize,
    /// Number of pods that are counted.
    pub pods: usize,
    /// What the default tree has to share out.
    pub total: BTreeMap<String, String>,
    /// One row per quota, by tree and name, the first thousand.
    pub rows: Vec<QuotaRow>,
    /// What is wrong with quotas.
    pub problems: Vec<QuotaProblem>,
    /// Pods that name a quota that does not exist, by that name. They belong to the default quota.
    pub unknown_quotas: BTreeMap<String, usize>,
    /// Whether rows are missing.
    pub truncated: bool,
}

/// One quota and one resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaRow {
    /// Name of the quota.
    pub quota: String,
    /// Name of the parent.
    pub parent: String,
    /// The resource.
    pub resource: String,
    /// Its min.
    pub min: String,
    /// Its max.
    pub max: String,
    /// What it asks for.
    pub request: String,
    /// What it may use now.
    pub runtime: String,
    /// What its pods use.
    pub used: String,
    /// What its runtime has beyond its min.
    #[serde(default)]
    pub borrowed: String,
}

/// `explain/quotas/:name`: how a quota's runtime comes about.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaExplanation {
    /// Name of the quota.
    pub name: String,
    /// Name of its tree; empty for the default tree.
    pub tree: String,
    /// The quotas from the root down to it.
    pub path: Vec<String>,
    /// In one sentence per resource, how it stands.
    pub sentences: Vec<String>,
    /// By resource.
    pub resources: Vec<QuotaShare>,
    /// Its overuse; absent while it is within its runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overuse: Option<QuotaOveruse>,
    /// What is wrong with it.
    pub problems: Vec<QuotaProblem>,
}

/// One resource of a quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaShare {
    /// The resource.
    pub resource: String,
    /// Its min.
    pub min: String,
    /// Its min as far as there is enough for the mins of all siblings.
    pub scaled_min: String,
    /// How mins are scaled; absent when there is enough for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaling: Option<MinScaling>,
    /// Its max; absent when it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<String>,
    /// Its weight.
    pub weight: i64,
    /// What its pods and children ask for.
    pub request: String,
    /// What it asks of its parent: its request, at most max.
    pub limited_request: String,
    /// What it may use now.
    pub runtime: String,
    /// What its pods use.
    pub used: String,
    /// What its parent shares out.
    pub total: String,
    /// What its runtime has beyond its min.
    pub borrowed: String,
    /// What others may use of its min.
    pub lent: String,
    /// Of whose min it may use how much; what belongs to nobody's min is `""`.
    pub borrows_from: BTreeMap<String, String>,
    /// Who may use how much of its min.
    pub lends_to: BTreeMap<String, String>,
    /// What keeps it from more; absent when its request is met.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<QuotaLimit>,
    /// It and its siblings, by name, as they take part.
    pub siblings: Vec<QuotaClaim>,
    /// The rounds in which is shared out what is left over once all have their first part.
    pub rounds: Vec<SharingRound>,
}

/// How mins are scaled down to what there is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinScaling {
    /// What there is.
    pub total: String,
    /// Sum of the mins of all siblings.
    pub mins: String,
}

/// What keeps a quota from more.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaLimit {
    /// The quota where it is short: itself, or one above it.
    pub quota: String,
    /// `max`: that quota's max; `share`: what its parent has is shared with siblings; `weight`: it has no weight.
    pub reason: String,
}

/// A quota in the distribution.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaClaim {
    /// Name of the quota.
    pub quota: String,
    /// What it asks for.
    pub request: String,
    /// What it gets first, if it asks for that much.
    pub guaranteed: String,
    /// Its weight.
    pub weight: i64,
    /// Whether it lends what it does not request.
    pub lends: bool,
    /// What it may use in the end.
    pub runtime: String,
}

/// The overuse of a quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaOveruse {
    /// By how much it uses more than its runtime.
    pub excess: BTreeMap<String, String>,
    /// Whether pods are evicted for it (`monitorAllQuotas`).
    pub monitored: bool,
    /// For how long it is over, in seconds, since its last eviction; absent where it is not monitored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<u64>,
    /// In how many seconds pods are evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evicts_in_seconds: Option<u64>,
    /// The pods that would be evicted now, in order.
    pub would_evict: Vec<String>,
    /// The pods that would go before some of them, but for the PodDisruptionBudget named beside each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held_back: BTreeMap<String, String>,
}

/// `explain/pods/:namespace/:name/quota`: where a pod stands with its quota and the quotas above it, as the state is now.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodQuota {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// The pod's quota.
    pub quota: String,
    /// Code of the reason for which its quota, or one above it, refuses the pod; absent when they take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How it stands, in one sentence; absent when there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The quotas from the root down to the pod's own.
    pub path: Vec<QuotaLevel>,
}

/// One quota on the way from the root to a pod's quota.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaLevel {
    /// Name of the quota.
    pub quota: String,
    /// Whether pods are checked against it.
    pub checked: bool,
    /// Whether it is the one that refuses the pod.
    pub blocking: bool,
    /// The amounts of the resource in which the pod is too much; of a pod that fits, of the first that it requests.
    #[serde(flatten)]
    pub amounts: LevelAmounts,
    /// The same of every resource that the pod requests, the first one included.
    pub resources: Vec<LevelAmounts>,
    /// Of the quota that refuses the pod, the pods that use most of the resource, at most five.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumers: Vec<QuotaConsumer>,
}

/// One resource of a quota beside a pod's request, in base units: thousandths of a core, bytes, or units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LevelAmounts {
    /// The resource; empty when the quota counts none.
    pub resource: String,
    /// Its min; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// Its max; absent when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// What is used that counts against the limit: of a pod that is not preemptible and too much for min, by pods of that
    /// kind.
    pub used: i64,
    /// What it may use now; of the root, what there is.
    pub runtime: i64,
    /// What it asks for.
    pub request: i64,
    /// What its runtime has beyond its min.
    pub borrowed: i64,
    /// What the pod requests.
    pub requested: i64,
    /// What may be used; absent where nothing limits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Limit minus used; below 0 when the quota is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<i64>,
    /// By how much the pod is too much: used plus requested minus limit, 0 where it fits.
    pub shortfall: i64,
}

/// A pod that uses what another one lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaConsumer {
    /// The pod, `namespace/name`.
    pub pod: String,
    /// What it uses, in base units.
    pub used: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Amounts that are empty are left out of an answer, so a reader has to do without them.
    #[test]
    fn a_quota_without_amounts_is_read_back() {
        let written =
            serde_json::to_string(&QuotaSummary { name: "team-a".to_owned(), ..QuotaSummary::default() });
        let written = written.expect("JSON");
        assert!(!written.contains("autoScaleMin"), "{written}");
        let read: QuotaSummary = serde_json::from_str(&written).expect("a quota");
        assert_eq!(read.name, "team-a");
        assert!(read.auto_scale_min.is_empty() && read.used.is_empty() && read.problems.is_empty());
    }
}
