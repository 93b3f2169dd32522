//! The gang custom resources, as Rust types.
//!
//! Groups, names and fields are those of scheduler-plugins, Koordinator and kube-batch, so that objects made for them
//! work unchanged. `api/crds/*.yaml` is generated from [`definitions`]; [`crate::definitions`] has it as text. Only
//! what a schema can say is here, not who schedules a group and when. The native PodGroup is not a custom resource, so
//! it is not here.

mod amount;
pub mod kube_batch_incubator;
pub mod kube_batch_sigs;
pub mod pod_group;
pub mod pod_group_sigs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use amount::{Amount, ResourceList};

/// Annotation that says who approved a definition in a group that ends in `.k8s.io`; an API server requires it.
const API_APPROVED: &str = "api-approved.kubernetes.io";
/// The approval of both PodGroups of scheduler-plugins.
const APPROVAL: &str = "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50";
/// For kube-batch's group, which is older than the rule.
const UNAPPROVED: &str = "unapproved, older than the policy";

/// Returns the definitions of all custom resources, the most common first.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        pod_group::PodGroup::crd(),
        approved(pod_group_sigs::PodGroup::crd(), APPROVAL),
        approved(kube_batch_incubator::PodGroup::crd(), UNAPPROVED),
        approved(kube_batch_incubator::Queue::crd(), UNAPPROVED),
        kube_batch_sigs::PodGroup::crd(),
        kube_batch_sigs::Queue::crd(),
    ]
}

fn approved(mut definition: CustomResourceDefinition, by: &str) -> CustomResourceDefinition {
    let annotations = definition.metadata.annotations.get_or_insert_default();
    annotations.insert(API_APPROVED.to_owned(), by.to_owned());
    definition
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn definitions_are_named_after_group_and_plural() {
        let names: Vec<String> = definitions().into_iter().filter_map(|d| d.metadata.name).collect();
        let wanted = [
            "podgroups.scheduling.x-k8s.io",
            "podgroups.scheduling.sigs.k8s.io",
            "podgroups.scheduling.incubator.k8s.io",
            "queues.scheduling.incubator.k8s.io",
            "podgroups.scheduling.sigs.dev",
            "queues.scheduling.sigs.dev",
        ];
        assert_eq!(names, wanted);
    }

    /// Lists where a schema breaks the rules of an API server: a type at every node, and nothing that it refuses.
    fn complaints(schema: &Value, path: &str, out: &mut Vec<String>) {
        let is_amount = schema["x-kubernetes-int-or-string"] == true;
        if schema["type"].is_string() == is_amount {
            out.push(format!("{path}: {schema}"));
        }
        let refused = ["$ref", "definitions", "$defs", "additionalItems", "uniqueItems", "anyOf", "default"];
        out.extend(refused.iter().filter(|key| !schema[**key].is_null()).map(|key| format!("{path}: {key}")));
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            complaints(inner, &format!("{path}.{name}"), out);
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                complaints(&schema[key], &format!("{path}.{key}"), out);
            }
        }
    }

    #[test]
    fn schemas_are_structural_and_a_quorum_has_its_bound() {
        let mut found = Vec::new();
        let mut least = Vec::new();
        for definition in definitions() {
            let definition = serde_json::to_value(definition).expect("JSON");
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            complaints(schema, name, &mut found);
            least.extend(schema["properties"]["spec"]["properties"]["minMember"]["minimum"].as_f64());
            assert!(definition["spec"]["versions"][0]["subresources"]["status"].is_object(), "{name}");
        }
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(least, [1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn protected_groups_say_who_approved_them() {
        for definition in definitions() {
            let is_protected = definition.spec.group.ends_with(".k8s.io");
            let annotations = definition.metadata.annotations.unwrap_or_default();
            assert_eq!(annotations.contains_key(API_APPROVED), is_protected, "{}", definition.spec.group);
        }
    }
}
