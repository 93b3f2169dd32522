//! Reviews of pods.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_elastic_quota::rules::pods::{PodLabels, judge};
use pellucid_elastic_quota::rules::{Gates, Known};
use serde_json::Value;

use crate::cache::Quotas;
use crate::review::Review;

/// Judges a pod. Returns a sentence per problem.
pub(crate) fn validate(review: &Review<'_>, quotas: &Quotas, gates: Gates) -> Vec<String> {
    if review.operation == "DELETE" {
        return Vec::new();
    }
    let none = |_: &str| Vec::new();
    let known = Known::new(quotas.values().map(|quota| &**quota), &none, gates);
    let metadata = &review.object["metadata"];
    let text = |key: &str| metadata[key].as_str().filter(|text| !text.is_empty());
    let name = text("name").or_else(|| text("generateName")).unwrap_or("without a name");
    let old = review.old.is_object().then(|| labels(review.old));
    judge(&known, name, old, labels(review.object))
}

fn labels(pod: &Value) -> PodLabels<'_> {
    let label = |key: &str| pod["metadata"]["labels"][key].as_str().unwrap_or_default();
    PodLabels { quota: label(keys::NAME), preemptible: label(keys::PREEMPTIBLE) }
}
