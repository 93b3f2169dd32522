//! ElasticQuota: pods of a quota use no more than the quota's fair share of the cluster.
//!
//! `quota` reads the objects.

use std::sync::Arc;

use pellucid_model::custom::CustomKind;
use serde_json::Value;

pub mod quota;

pub use quota::ElasticQuota;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "ElasticQuota";

/// ElasticQuotas.
pub static ELASTIC_QUOTA: CustomKind = CustomKind {
    group: "scheduling.sigs.k8s.io",
    version: "v1alpha1",
    kind: "ElasticQuota",
    plural: "elasticquotas",
    qualified: "ElasticQuota.scheduling.sigs.k8s.io",
    is_namespaced: true,
    is_required: false,
    is_decisive: true,
    verbs: &["get", "patch", "status/patch"],
    decode: |manifest| Ok(Arc::new(ElasticQuota::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, ElasticQuota::manifest),
};
