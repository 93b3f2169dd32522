//! The typed reading of a built-in object: wrong types are refused, unknown fields are taken out and named.
//!
//! The object is read into the Kubernetes type and written back; what did not survive is unknown. What is
//! kept stays the client's JSON, so nothing is reformatted.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads `object` as a `T` and prunes it. Returns the paths that `T` does not know, or why it cannot be read.
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

/// Says whether a typed object may leave the value out without losing anything.
fn is_vacant(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
