//! Validation of objects: names, quantities, and what an API server rejects per kind.
//!
//! Pure functions on JSON. The second argument is the stored object if this is an update. The rules are those that
//! schedulers and their users meet, not all of Kubernetes'.

use pellucid_model::naming::{is_label, is_subdomain};
use serde_json::Value;

use crate::errors::FieldError;
use crate::fields::{list, text};
use crate::kinds::annotations::usage;
use crate::kinds::placement;
use crate::kinds::pod_diff;
use crate::kinds::ports;

/// Most bytes of all annotations of an object, keys and values together.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// The rule for names of objects, in the words of a real server.
pub(crate) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
/// The rule for DNS labels, in the words of a real server.
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

pub(crate) const IMMUTABLE: &str = "field is immutable";
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Returns the error for a text that is missing or empty.
pub(crate) fn required_text(value: &Value, field: impl Into<String>) -> Option<FieldError> {
    text(value).is_empty().then(|| FieldError::required(field, ""))
}

/// Returns the error for a DNS label that is missing or malformed.
pub(crate) fn required_label(object: &Value, path: &str, key: &str) -> Option<FieldError> {
    let field = format!("{path}.{key}");
    match text(&object[key]) {
        "" => Some(FieldError::required(field, "")),
        name if is_label(name) => None,
        _ => Some(FieldError::invalid(field, &object[key], LABEL)),
    }
}

/// Returns the error for a value that is none of the known texts.
pub(crate) fn among(value: &Value, field: impl Into<String>, known: &[&str]) -> Option<FieldError> {
    let is_known = value.as_str().is_some_and(|text| known.contains(&text));
    (!is_known).then(|| FieldError::unsupported(field, value, known))
}

/// Returns the error for a text that is none of the known ones; it may be absent.
pub(crate) fn among_if_set(value: &Value, field: impl Into<String>, known: &[&str]) -> Option<FieldError> {
    value.as_str().and_then(|_| among(value, field, known))
}

/// Returns the errors for fields that an update changes although it may not. `path` precedes their names.
pub(crate) fn immutable(new: &Value, old: Option<&Value>, keys: &[&str], path: &str) -> Vec<FieldError> {
    let changed = keys.iter().filter(|key| old.is_some_and(|old| new[**key] != old[**key]));
    changed.map(|key| FieldError::invalid(format!("{path}{key}"), &new[*key], IMMUTABLE)).collect()
}

/// Checks the `metadata` of any kind.
pub(crate) fn metadata(object: &Value, is_namespace: bool) -> Vec<FieldError> {
    let meta = &object["metadata"];
    let mut errors = Vec::new();
    let name = text(&meta["name"]);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if is_namespace && !is_label(name) {
        errors.push(FieldError::invalid("metadata.name", &meta["name"], LABEL));
    } else if !is_subdomain(name) {
        errors.push(FieldError::invalid("metadata.name", &meta["name"], SUBDOMAIN));
    }
    for (key, value) in meta["labels"].as_object().into_iter().flatten() {
        let text = text(value);
        if text.len() > 63 || !text.chars().all(is_label_char) {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                and must start and end with an alphanumeric character";
            errors.push(FieldError::invalid("metadata.labels", value, why));
        }
        if key.is_empty() || key.rsplit('/').next().is_none_or(|n| n.is_empty() || n.len() > 63) {
            let why = "name part must be non-empty";
            errors.push(FieldError::invalid("metadata.labels", &key.as_str().into(), why));
        }
    }
    errors
}

/// Checks the total size of the annotations of any kind.
pub(crate) fn annotations(object: &Value) -> Option<FieldError> {
    let annotations = object["metadata"]["annotations"].as_object()?;
    let bytes = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    let total: usize = annotations.iter().map(bytes).sum();
    (total > MAX_ANNOTATIONS).then(|| FieldError::too_long("metadata.annotations", MAX_ANNOTATIONS))
}

fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

/// Returns whether a text is a quantity such as `100m` or `8Gi`.
pub(crate) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let is_number = number.chars().any(|c| c.is_ascii_digit()) && number.matches('.').count() <= 1;
    let is_exponent = suffix
        .strip_prefix(['e', 'E'])
        .map(|e| e.strip_prefix(['+', '-']).unwrap_or(e))
        .is_some_and(|e| !e.is_empty() && e.chars().all(|c| c.is_ascii_digit()));
    const SUFFIXES: [&str; 16] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    is_number && (is_exponent || SUFFIXES.contains(&suffix))
}

/// Fails with the reason if a quantity anywhere in the object is malformed.
pub(crate) fn quantities(object: &Value) -> Result<(), String> {
    match object {
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let holds_amounts = matches!(
                key.as_str(),
                "requests" | "limits" | "capacity" | "allocatable" | "overhead" | "hard"
            );
            match value {
                Value::Object(amounts) if holds_amounts => amounts.values().try_for_each(amount),
                _ => quantities(value),
            }
        }),
        Value::Array(items) => items.iter().try_for_each(quantities),
        _ => Ok(()),
    }
}

fn amount(value: &Value) -> Result<(), String> {
    let is_readable = match value {
        Value::String(text) => is_quantity(text),
        Value::Number(_) | Value::Null => true,
        // This is no map of quantities, for example the requests of a resource claim.
        _ => return quantities(value),
    };
    let why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    if is_readable { Ok(()) } else { Err(why.to_owned()) }
}

/// Checks a pod and, on an update, that only mutable fields change.
pub(crate) fn pod(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = pod_spec(&object["spec"], "spec");
    errors.extend(usage::invalid(object));
    if let Some(old) = old {
        errors.extend(pod_diff::check(&object["spec"], &old["spec"]));
    }
    errors
}

fn pod_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = list(&spec["containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for (index, container) in containers.iter().enumerate() {
        let here = format!("{path}.containers[{index}]");
        errors.extend(required_label(container, &here, "name"));
        if path == "spec" {
            errors.extend(required_text(&container["image"], format!("{here}.image")));
        }
        errors.extend(ports::of_container(container, &here));
        errors.extend(negative_requests(&container["resources"], &here));
    }
    for (index, container) in list(&spec["initContainers"]).iter().enumerate() {
        errors.extend(ports::of_container(container, &format!("{path}.initContainers[{index}]")));
    }
    errors.extend(placement::check(spec, path));
    let policies = ["Always", "OnFailure", "Never"];
    errors.extend(among_if_set(&spec["restartPolicy"], format!("{path}.restartPolicy"), &policies));
    errors
}

fn negative_requests(resources: &Value, path: &str) -> Vec<FieldError> {
    let requests = resources["requests"].as_object().into_iter().flatten();
    let negative = requests.filter(|(_, request)| text(request).starts_with('-'));
    let field = |name: &str| format!("{path}.resources.requests[{name}]");
    negative.map(|(name, request)| FieldError::invalid(field(name), request, NOT_NEGATIVE)).collect()
}

/// Checks a Deployment or ReplicaSet: its selector is set and matches the template.
pub(crate) fn workload(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = pod_spec(&spec["template"]["spec"], "spec.template.spec");
    let Some(selector) = crate::selectors::LabelSelector::from_object(&spec["selector"]) else {
        errors.insert(0, FieldError::required("spec.selector", ""));
        return errors;
    };
    let labels = crate::kinds::meta::labels(&spec["template"]);
    if selector.is_empty() {
        let why = "empty selector is invalid for deployment";
        errors.push(FieldError::invalid("spec.selector", &spec["selector"], why));
    } else if !selector.matches(&labels) {
        let why = "`selector` does not match template `labels`";
        let labels = &spec["template"]["metadata"]["labels"];
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
    errors.extend(immutable(spec, old.map(|old| &old["spec"]), &["selector"], "spec."));
    errors.extend(not_negative(spec, &["replicas"]));
    errors
}

/// Checks a StatefulSet: like other workloads, and its immutable fields.
pub(crate) fn stateful_set(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = workload(object, old);
    let spec = &object["spec"];
    let policies = ["OrderedReady", "Parallel"];
    if !spec["podManagementPolicy"].as_str().is_some_and(|policy| policies.contains(&policy)) {
        let why = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], why));
    }
    const FIXED: [&str; 3] = ["podManagementPolicy", "serviceName", "volumeClaimTemplates"];
    if old.is_some_and(|old| FIXED.iter().any(|key| old["spec"][*key] != spec[*key])) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

/// Checks a ReplicationController, whose selector is a plain map.
pub(crate) fn replication_controller(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = pod_spec(&spec["template"]["spec"], "spec.template.spec");
    let labels = &spec["template"]["metadata"]["labels"];
    let Some(selector) = spec["selector"].as_object().filter(|selector| !selector.is_empty()) else {
        errors.push(FieldError::required("spec.selector", ""));
        return errors;
    };
    if selector.iter().any(|(key, value)| labels[key] != *value) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
    errors.extend(not_negative(spec, &["replicas"]));
    errors
}

/// Checks a Service: unless it has no address, it needs ports.
pub(crate) fn service(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Vec::new();
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    errors.extend(among(&spec["type"], "spec.type", &kinds));
    let has_address = spec["type"] != "ExternalName" && spec["clusterIP"] != "None";
    if has_address && list(&spec["ports"]).is_empty() {
        errors.push(FieldError::required("spec.ports", ""));
    }
    errors.extend(ports::of_service(spec));
    let address = |object: &Value| object["spec"]["clusterIP"].clone();
    if old.is_some_and(|old| address(old).is_string() && address(old) != address(object)) {
        let field = FieldError::invalid("spec.clusterIPs[0]", &spec["clusterIP"], "may not change once set");
        errors.push(field);
    }
    errors
}

/// Checks a Job.
pub(crate) fn job(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = pod_spec(&spec["template"]["spec"], "spec.template.spec");
    let policy = &spec["template"]["spec"]["restartPolicy"];
    errors.extend(among(policy, "spec.template.spec.restartPolicy", &["OnFailure", "Never"]));
    errors.extend(immutable(spec, old.map(|old| &old["spec"]), &["completions"], "spec."));
    errors.extend(not_negative(spec, &["parallelism", "completions", "backoffLimit"]));
    errors
}

fn not_negative(spec: &Value, keys: &[&str]) -> Vec<FieldError> {
    let negative = keys.iter().filter(|key| spec[**key].as_i64().is_some_and(|n| n < 0));
    negative.map(|key| FieldError::invalid(format!("spec.{key}"), &spec[*key], NOT_NEGATIVE)).collect()
}

/// Checks a PodDisruptionBudget.
pub(crate) fn budget(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let why = "minAvailable and maxUnavailable cannot be both set";
        return vec![FieldError::invalid("spec", spec, why)];
    }
    Vec::new()
}

/// Checks a PriorityClass.
pub(crate) fn priority_class(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let value = object["value"].as_i64().unwrap_or_default();
    let name = text(&object["metadata"]["name"]);
    if value > 1_000_000_000 && !name.starts_with("system-") {
        let why = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden("value", why));
    }
    if old.is_some_and(|old| old["value"] != object["value"]) {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_told_from_other_texts() {
        for text in ["0", "1", "-1", "+1.5", "100m", "8Gi", "1e3", "1E-3", "5n", "2Ei", ".5", "1E"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "x", "1x", "1 Gi", "Gi", "1.2.3", "1mi", "--1", "1e", "."] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
