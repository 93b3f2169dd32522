//! Events: one table, served by two APIs.
//!
//! They are stored in the core/v1 form. The events.k8s.io/v1 form has other names for the same fields.

use serde_json::Value;

use crate::errors::FieldError;
use crate::fields::text;
use crate::kinds::validate::{IMMUTABLE, required_text};

/// Names of the same field in events.k8s.io/v1 and core/v1.
const NAMES: &[(&str, &str)] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Converts an Event from the events.k8s.io form to the stored form.
pub(crate) fn store(object: &mut Value) {
    rename(object, |name| NAMES.iter().find(|(new, _)| *new == name).map(|(_, core)| *core));
}

/// Converts an Event from the stored form to the events.k8s.io form.
pub(crate) fn show(object: &mut Value) {
    rename(object, |name| NAMES.iter().find(|(_, core)| *core == name).map(|(new, _)| *new));
}

fn rename(object: &mut Value, name: impl Fn(&str) -> Option<&'static str>) {
    let Value::Object(fields) = object else { return };
    let old = std::mem::take(fields).into_iter();
    *fields = old.map(|(key, value)| (name(&key).map_or(key, str::to_owned), value)).collect();
}

/// Validates an Event that came through core/v1.
pub(crate) fn validate_core(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    namespace(object).into_iter().collect()
}

/// Validates an Event that came through events.k8s.io. The object is in the stored form.
pub(crate) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = namespace(object).into_iter().collect();
    if old.is_none() {
        for key in ["reportingComponent", "reportingInstance", "action", "reason"] {
            let shown = if key == "reportingComponent" { "reportingController" } else { key };
            errors.extend(required_text(&object[key], shown));
        }
        if object["eventTime"].is_null() {
            errors.push(FieldError::required("eventTime", ""));
        }
        if !matches!(object["type"].as_str(), Some("Normal" | "Warning")) {
            errors.push(FieldError::invalid("type", &object["type"], "has invalid value: "));
        }
    }
    if object["message"].as_str().is_some_and(|m| m.len() > 1024) {
        errors.push(FieldError::invalid("message", &"".into(), "can have at most 1024 characters"));
    }
    if let Some(old) = old {
        errors.extend(unchanged(object, old));
    }
    errors
}

/// Checks that an update changes only the series and the metadata.
fn unchanged(object: &Value, old: &Value) -> Vec<FieldError> {
    const FIXED: [&str; 9] = [
        "involvedObject",
        "reason",
        "message",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    let changed = FIXED.into_iter().filter(|key| object.get(*key) != old.get(*key));
    changed.map(|key| FieldError::invalid(key, &object[key], IMMUTABLE)).collect()
}

fn namespace(object: &Value) -> Option<FieldError> {
    let about = &object["involvedObject"]["namespace"];
    let own = text(&object["metadata"]["namespace"]);
    let fits = text(about) == own || (text(about).is_empty() && own == "default");
    let why = "does not match event.namespace";
    (!fits).then(|| FieldError::invalid("involvedObject.namespace", about, why))
}
