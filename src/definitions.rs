//! Definitions of custom resources that others own, for sandboxes which need them without their owner.

use pellucid_plugins::elastic_quota::ELASTIC_QUOTA;
use pellucid_plugins::reservation::RESERVATION;
use serde_json::{Value, json};

/// Returns the definition of ElasticQuota, as Koordinator installs it. It must exist before the scheduler starts, which
/// otherwise finds the kind only when it looks again.
pub(crate) fn elastic_quota() -> Value {
    let kind = &ELASTIC_QUOTA;
    let quantity = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
    });
    let list = json!({"type": "object", "additionalProperties": quantity});
    let lists = |names: &[&str]| {
        let each = names.iter().map(|name| ((*name).to_owned(), list.clone()));
        json!({"type": "object", "properties": each.collect::<serde_json::Map<_, _>>()})
    };
    let schema = json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
        "spec": lists(&["min", "max"]), "status": lists(&["used"]),
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, kind.group), "annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52",
        }},
        "spec": {
            "group": kind.group, "scope": "Namespaced",
            "names": {"plural": kind.plural, "singular": "elasticquota", "kind": kind.kind, "shortNames": ["eq", "eqs"]},
            "versions": [{
                "name": kind.version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// Returns the definition of Reservation. As with the one above, it must exist before the scheduler starts.
pub(crate) fn reservation() -> Value {
    let kind = &RESERVATION;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, kind.group)},
        "spec": {
            "group": kind.group, "scope": "Cluster",
            "names": {"plural": kind.plural, "singular": "reservation", "kind": kind.kind},
            "versions": [{
                "name": kind.version, "served": true, "storage": true, "subresources": {"status": {}}, "schema": schema,
            }],
        },
    })
}
