//! Decodes built-in objects into their Kubernetes types: wrong types are rejected, unknown fields are removed and
//! reported.
//!
//! The object is decoded and serialised again; fields that did not survive are unknown. The remaining JSON stays the
//! client's, so nothing is reformatted.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Decodes `object` as a `T` and removes unknown fields. Returns their paths, or why decoding fails.
pub(crate) fn typed<T: DeserializeOwned + Serialize>(object: &mut Value) -> Result<Vec<String>, String> {
    let typed: T = serde::Deserialize::deserialize(&*object).map_err(|e| e.to_string())?;
    let known = serde_json::to_value(&typed).map_err(|e| e.to_string())?;
    let mut unknown = Vec::new();
    prune(object, &known, &mut String::new(), &mut unknown);
    Ok(unknown)
}

fn prune(given: &mut Value, known: &Value, path: &mut String, unknown: &mut Vec<String>) {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => given.retain(|key, value| {
            let length = path.len();
            let separator = if path.is_empty() { "" } else { "." };
            path.push_str(separator);
            path.push_str(key);
            let keep = match known.get(key) {
                Some(known) => {
                    prune(value, known, path, unknown);
                    true
                }
                None if is_vacant(value) || path == "apiVersion" || path == "kind" => true,
                None => {
                    unknown.push(path.clone());
                    false
                }
            };
            path.truncate(length);
            keep
        }),
        (Value::Array(given), Value::Array(known)) => {
            for (index, (value, known)) in given.iter_mut().zip(known).enumerate() {
                let length = path.len();
                path.push_str(&format!("[{index}]"));
                prune(value, known, path, unknown);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Returns whether a type may omit the value without losing anything.
fn is_vacant(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
