//! Fields of JSON objects, each of which may be absent.

use serde_json::Value;

/// Returns the items of a list, none if it is absent.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a text, empty if it is absent.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Copies a field, or removes it if it is absent.
pub(crate) fn copy(from: &Value, to: &mut Value, key: &str) {
    let Some(fields) = to.as_object_mut() else { return };
    match from.get(key) {
        Some(value) => fields.insert(key.to_owned(), value.clone()),
        None => fields.remove(key),
    };
}

/// Sets a field if it is absent. A null stays.
pub(crate) fn add(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry(key).or_insert(value);
    }
}

/// Returns the first condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&object["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}
