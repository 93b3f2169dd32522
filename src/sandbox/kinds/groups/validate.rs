//! Validation of native PodGroups and Workloads, as on an API server with all feature gates of native gangs on.
//!
//! A value that did not change is not validated again.

use pellucid_model::naming::is_subdomain;
use serde_json::{Value, json};

use crate::errors::FieldError;
use crate::fields::{list, text};
use crate::kinds::validate::{SUBDOMAIN, among, immutable, required_label, required_text};

const HIGHEST_PRIORITY: i64 = 1_000_000_000;
const MOST_TEMPLATES: usize = 8;
const MOST_CLAIMS: usize = 4;

/// Checks a PodGroup.
pub(crate) fn pod_group(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Vec::new();
    if let Some(old) = old.map(|old| &old["spec"]) {
        const FIXED: [&str; 7] = [
            "podGroupTemplateRef",
            "schedulingPolicy",
            "schedulingConstraints",
            "resourceClaims",
            "disruptionMode",
            "priorityClassName",
            "priority",
        ];
        errors.extend(immutable(spec, Some(old), &FIXED, "spec."));
    } else {
        errors.extend(template_reference(&spec["podGroupTemplateRef"]));
        errors.extend(group(spec, "spec"));
    }
    let statuses = list(&object["status"]["resourceClaimStatuses"]);
    errors.extend(too_many("status.resourceClaimStatuses", statuses, MOST_CLAIMS));
    errors
}

/// Checks a Workload.
pub(crate) fn workload(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    if let Some(old) = old {
        return immutable(spec, Some(&old["spec"]), &["controllerRef", "podGroupTemplates"], "spec.");
    }
    let mut errors = controller_reference(&spec["controllerRef"]);
    let templates = list(&spec["podGroupTemplates"]);
    if templates.is_empty() {
        errors.push(FieldError::required("spec.podGroupTemplates", ""));
    }
    errors.extend(too_many("spec.podGroupTemplates", templates, MOST_TEMPLATES));
    errors.extend(unique(templates, "spec.podGroupTemplates"));
    for (index, template) in templates.iter().enumerate() {
        let here = format!("spec.podGroupTemplates[{index}]");
        errors.extend(required_label(template, &here, "name"));
        errors.extend(group(template, &here));
    }
    errors
}

/// Checks the fields that PodGroups and templates share.
fn group(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = policy(&spec["schedulingPolicy"], &format!("{path}.schedulingPolicy"));
    errors.extend(constraints(&spec["schedulingConstraints"], &format!("{path}.schedulingConstraints")));
    errors.extend(claims(&spec["resourceClaims"], &format!("{path}.resourceClaims")));
    errors.extend(among(&spec["disruptionMode"], format!("{path}.disruptionMode"), &["Pod", "PodGroup"]));
    let class = &spec["priorityClassName"];
    if !text(class).is_empty() && !is_subdomain(text(class)) {
        errors.push(FieldError::invalid(format!("{path}.priorityClassName"), class, SUBDOMAIN));
    }
    if spec["priority"].as_i64().is_some_and(|priority| priority > HIGHEST_PRIORITY) {
        let why = format!("must be less than or equal to {HIGHEST_PRIORITY}");
        errors.push(FieldError::invalid(format!("{path}.priority"), &spec["priority"], &why));
    }
    errors
}

fn policy(policy: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = one_of(policy, path, ["basic", "gang"]);
    let gang = &policy["gang"];
    if gang.is_object() {
        let field = format!("{path}.gang.minCount");
        match gang["minCount"].as_i64().unwrap_or_default() {
            0 => errors.push(FieldError::required(field, "")),
            1.. => {}
            _ => {
                let why = "must be greater than or equal to 1";
                errors.push(FieldError::invalid(field, &gang["minCount"], why));
            }
        }
    }
    errors
}

/// Checks that exactly one member of a union is set.
fn one_of(union: &Value, path: &str, members: [&str; 2]) -> Vec<FieldError> {
    let all = members.map(|member| format!("`{member}`")).join(", ");
    let given: Vec<&str> = members.into_iter().filter(|member| !union[*member].is_null()).collect();
    match given.len() {
        0 => vec![FieldError::invalid(path, &"".into(), &format!("must specify one of: {all}"))],
        1 => Vec::new(),
        _ => {
            let value = format!("{{{}}}", given.join(", "));
            vec![FieldError::invalid(path, &value.into(), &format!("must specify exactly one of: {all}"))]
        }
    }
}

fn constraints(constraints: &Value, path: &str) -> Vec<FieldError> {
    let topology = list(&constraints["topology"]);
    let path = format!("{path}.topology");
    let mut errors: Vec<FieldError> = too_many(&path, topology, 1).into_iter().collect();
    for (index, constraint) in topology.iter().enumerate() {
        errors.extend(required_text(&constraint["key"], format!("{path}[{index}].key")));
    }
    errors
}

fn claims(claims: &Value, path: &str) -> Vec<FieldError> {
    let claims = list(claims);
    let mut errors: Vec<FieldError> = too_many(path, claims, MOST_CLAIMS).into_iter().collect();
    errors.extend(unique(claims, path));
    for (index, claim) in claims.iter().enumerate() {
        let here = format!("{path}[{index}]");
        errors.extend(one_of(claim, &here, ["resourceClaimName", "resourceClaimTemplateName"]));
        errors.extend(required_label(claim, &here, "name"));
    }
    errors
}

fn template_reference(reference: &Value) -> Vec<FieldError> {
    if reference.is_null() {
        return Vec::new();
    }
    let path = "spec.podGroupTemplateRef";
    let workload = &reference["workload"];
    if workload.is_null() {
        return vec![FieldError::invalid(path, &"".into(), "must specify one of: `workload`")];
    }
    let names = ["workloadName", "podGroupTemplateName"];
    names.iter().filter_map(|name| required_label(workload, &format!("{path}.workload"), name)).collect()
}

fn controller_reference(reference: &Value) -> Vec<FieldError> {
    if reference.is_null() {
        return Vec::new();
    }
    let missing = |key: &str| required_text(&reference[key], format!("spec.controllerRef.{key}"));
    ["kind", "name"].into_iter().filter_map(missing).collect()
}

fn unique(items: &[Value], path: &str) -> Vec<FieldError> {
    let repeats = |(index, item): &(usize, &Value)| {
        items.iter().take(*index).any(|other| other["name"] == item["name"])
    };
    let repeated = items.iter().enumerate().filter(repeats);
    repeated
        .map(|(index, item)| {
            FieldError::duplicate(format!("{path}[{index}]"), &json!({"name": item["name"]}))
        })
        .collect()
}

fn too_many(path: &str, items: &[Value], most: usize) -> Option<FieldError> {
    (items.len() > most).then(|| FieldError::too_many(path, items.len(), most))
}
