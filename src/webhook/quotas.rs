//! Reviews of ElasticQuotas.

use pellucid_api::keys::elastic_quota as keys;
use pellucid_elastic_quota::ElasticQuota;
use pellucid_elastic_quota::rules::{self, Gates, Known, defaulting};
use serde_json::Value;

use crate::cache::{Objects, Quotas};
use crate::review::{Review, set_entries};

/// Answers the mutating webhook: fills in what is missing. What cannot be read is left to the validating one.
pub(crate) fn mutate(review: &Review<'_>, quotas: &Quotas, gates: Gates) -> Value {
    let Ok(new) = ElasticQuota::read(review.object) else { return review.allow(&[]) };
    if ElasticQuota::read(review.old)
        .is_ok_and(|old| review.operation == "UPDATE" && rules::is_unchanged(&old, &new))
    {
        return review.allow(&[]);
    }
    let none = |_: &str| Vec::new();
    let known = Known::new(quotas.values().map(|quota| &**quota), &none, gates);
    let defaults = defaulting::defaults(&known, &new);
    let mut patch = set_entries(review.object, "labels", &defaults.labels);
    patch.extend(set_entries(review.object, "annotations", &defaults.annotations));
    review.allow(&patch)
}

/// Returns whether the parent that a quota names is known, or none is named. From an unknown one nothing can be filled in.
pub(crate) fn has_parent(review: &Review<'_>, quotas: &Quotas) -> bool {
    let parent = review.object["metadata"]["labels"][keys::PARENT].as_str().unwrap_or_default();
    let is_root = parent.is_empty() || keys::ROOT_QUOTA.contains(&parent);
    is_root || quotas.keys().any(|(name, _)| **name == *parent)
}

/// Judges a quota. Returns a sentence per problem.
pub(crate) fn validate(review: &Review<'_>, objects: &Objects, quotas: &Quotas, gates: Gates) -> Vec<String> {
    let pods = |quota: &str| objects.pods_of(quotas, quota);
    let known = Known::new(quotas.values().map(|quota| &**quota), &pods, gates);
    let read = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let say = |e: pellucid_framework::manifest::FieldError| {
            vec![format!("quota {name}: {} {}: {}", e.field, e.value, e.problem)]
        };
        ElasticQuota::read(object).map_err(say)
    };
    let problems = match review.operation {
        // One that cannot be read has no children and no pods, and may be deleted and mended.
        "DELETE" => read(review.old).map(|old| rules::delete(&known, &old)).or_else(|_| Ok(Vec::new())),
        "UPDATE" => read(review.object).map(|new| match read(review.old) {
            Ok(old) => rules::update(&known, &old, &new),
            Err(_) => rules::create(&known, &new),
        }),
        _ => read(review.object).map(|new| rules::create(&known, &new)),
    };
    problems.map_or_else(|unreadable| unreadable, |all| all.iter().map(rules::sentence).collect())
}
