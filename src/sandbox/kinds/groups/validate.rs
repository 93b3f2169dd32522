//! Validation of native PodGroups and Workloads, as on an API server with all feature gates of native gangs on.
//!
//! A value that did not change is not validated again.

use pellucid_model::naming::{is_label, is_subdomain};
use serde_json::Value;

use crate::errors::FieldError;
use crate::kinds::validate::{LABEL, SUBDOMAIN};

const IMMUTABLE: &str = "field is immutable";
const MODES: [&str; 2] = ["Pod", "PodGroup"];
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
        errors.extend(immutable(spec, old, &FIXED));
    } else {
        errors.extend(template_reference(&spec["podGroupTemplateRef"]));
        errors.extend(group(spec, "spec"));
    }
    let statuses = object["status"]["resourceClaimStatuses"].as_array().map_or(0, Vec::len);
    errors.extend(too_many("status.resourceClaimStatuses", statuses, MOST_CLAIMS));
    errors
}

/// Checks a Workload.
pub(crate) fn workload(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    if let Some(old) = old {
        return immutable(spec, &old["spec"], &["controllerRef", "podGroupTemplates"]);
    }
    let mut errors = controller_reference(&spec["controllerRef"]);
    let templates = spec["podGroupTemplates"].as_array().map_or(&[][..], Vec::as_slice);
    if templates.is_empty() {
        errors.push(FieldError::required("spec.podGroupTemplates", ""));
    }
    errors.extend(too_many("spec.podGroupTemplates", templates.len(), MOST_TEMPLATES));
    errors.extend(unique(templates, "spec.podGroupTemplates"));
    for (index, template) in templates.iter().enumerate() {
        let here = format!("spec.podGroupTemplates[{index}]");
        errors.extend(short_name(template, &here, "name"));
        errors.extend(group(template, &here));
    }
    errors
}

/// Checks the fields that PodGroups and templates share.
fn group(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = policy(&spec["schedulingPolicy"], &format!("{path}.schedulingPolicy"));
    errors.extend(constraints(&spec["schedulingConstraints"], &format!("{path}.schedulingConstraints")));
    errors.extend(claims(&spec["resourceClaims"], &format!("{path}.resourceClaims")));
    let mode = &spec["disruptionMode"];
    if !mode.as_str().is_some_and(|mode| MODES.contains(&mode)) {
        errors.push(FieldError::unsupported(format!("{path}.disruptionMode"), mode, &MODES));
    }
    let class = spec["priorityClassName"].as_str().unwrap_or_default();
    if !class.is_empty() && !is_subdomain(class) {
        let field = format!("{path}.priorityClassName");
        errors.push(FieldError::invalid(field, &spec["priorityClassName"], SUBDOMAIN));
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
    let topology = constraints["topology"].as_array().map_or(&[][..], Vec::as_slice);
    let mut errors: Vec<FieldError> =
        too_many(&format!("{path}.topology"), topology.len(), 1).into_iter().collect();
    for (index, constraint) in topology.iter().enumerate() {
        if constraint["key"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("{path}.topology[{index}].key"), ""));
        }
    }
    errors
}

fn claims(claims: &Value, path: &str) -> Vec<FieldError> {
    let claims = claims.as_array().map_or(&[][..], Vec::as_slice);
    let mut errors: Vec<FieldError> = too_many(path, claims.len(), MOST_CLAIMS).into_iter().collect();
    errors.extend(unique(claims, path));
    for (index, claim) in claims.iter().enumerate() {
        let here = format!("{path}[{index}]");
        errors.extend(one_of(claim, &here, ["resourceClaimName", "resourceClaimTemplateName"]));
        errors.extend(short_name(claim, &here, "name"));
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
    names.iter().filter_map(|name| short_name(workload, &format!("{path}.workload"), name)).collect()
}

fn controller_reference(reference: &Value) -> Vec<FieldError> {
    if reference.is_null() {
        return Vec::new();
    }
    let missing = |key: &&&str| reference[**key].as_str().is_none_or(str::is_empty);
    let missing = ["kind", "name"]
        .iter()
        .filter(missing)
        .map(|key| format!("spec.controllerRef.{key}"))
        .collect::<Vec<_>>();
    missing.into_iter().map(|field| FieldError::required(field, "")).collect()
}

fn short_name(object: &Value, path: &str, key: &str) -> Option<FieldError> {
    let field = format!("{path}.{key}");
    match object[key].as_str().unwrap_or_default() {
        "" => Some(FieldError::required(field, "")),
        name if is_label(name) => None,
        _ => Some(FieldError::invalid(field, &object[key], LABEL)),
    }
}

fn unique(items: &[Value], path: &str) -> Vec<FieldError> {
    let repeats = |(index, item): &(usize, &Value)| {
        items.iter().take(*index).any(|other| other["name"] == item["name"])
    };
    let key =
        |item: &Value| Value::from(serde_json::Map::from_iter([("name".to_owned(), item["name"].clone())]));
    let repeated = items.iter().enumerate().filter(repeats);
    repeated.map(|(index, item)| FieldError::duplicate(format!("{path}[{index}]"), &key(item))).collect()
}

fn too_many(path: &str, count: usize, most: usize) -> Option<FieldError> {
    (count > most).then(|| FieldError::too_many(path, count, most))
}

fn immutable(new: &Value, old: &Value, keys: &[&str]) -> Vec<FieldError> {
    let changed = keys.iter().filter(|key| new[**key] != old[**key]);
    changed.map(|key| FieldError::invalid(format!("spec.{key}"), &new[*key], IMMUTABLE)).collect()
}
