//! The four forms of PATCH: JSON patch, merge patch, strategic merge patch, and server-side apply.
//!
//! Strategic merge knows the merge keys that the API declares for lists; other lists are replaced. Apply is a strategic
//! merge for built-in kinds and a merge patch for custom ones. Field ownership is not tracked, so there are no apply
//! conflicts, and a field that a manager omits is not removed.

use json_patch::PatchOperation;
use serde_json::{Map, Value};

use crate::errors::{ApiError, ApiResult};
use crate::requests::render::json_size;

/// Most operations of a JSON patch.
const MAX_OPERATIONS: usize = 10_000;
/// Most bytes that all operations of a JSON patch may copy together.
const MAX_COPIED: usize = 3 * 1024 * 1024;
/// Deepest nesting that a JSON patch may create, which is that of request bodies.
const MAX_DEPTH: usize = 127;

/// The form of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// JSON patch, RFC 6902.
    Json,
    /// JSON merge patch, RFC 7386.
    Merge,
    /// Strategic merge patch of Kubernetes.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// Returns the form for a content type, or `None` if it is unknown.
    pub(crate) fn parse(content_type: &str) -> Option<Self> {
        match content_type {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// Returns `object` with the patch applied, or why the patch is refused.
pub(crate) fn apply(kind: PatchKind, object: &Value, patch: &Value, is_custom: bool) -> ApiResult<Value> {
    let mut patched = object.clone();
    match kind {
        PatchKind::Json => json(&mut patched, patch)?,
        PatchKind::Merge => json_patch::merge(&mut patched, patch),
        PatchKind::Apply if is_custom => json_patch::merge(&mut patched, patch),
        PatchKind::Strategic | PatchKind::Apply => strategic(&mut patched, patch, "")?,
    }
    Ok(patched)
}

/// Applies a JSON patch within the limits of a real server on operations and copied bytes. The nesting is limited like
/// that of a request body, because nested copies could nest without end.
fn json(object: &mut Value, patch: &Value) -> ApiResult<()> {
    let count = patch.as_array().map_or(0, Vec::len);
    if count > MAX_OPERATIONS {
        let message =
            format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}");
        return Err(ApiError::entity_too_large(&message));
    }
    let operations: json_patch::Patch = serde::Deserialize::deserialize(patch)
        .map_err(|e| ApiError::bad_request(format!("json patch: {e}")))?;
    let mut copied = 0;
    for (index, operation) in operations.iter().enumerate() {
        bounded(object, operation, &mut copied).map_err(|why| unprocessable(&why))?;
        json_patch::patch_unsafe(object, std::slice::from_ref(operation)).map_err(|mut error| {
            error.operation = index;
            unprocessable(&error.to_string())
        })?;
    }
    Ok(())
}

fn unprocessable(why: &str) -> Box<ApiError> {
    let message = format!("the server rejected our request due to an error in our request: {why}");
    let mut refusal = ApiError::bad_request(message);
    (refusal.code, refusal.reason) = (422, "Invalid".into());
    refusal
}

/// Fails if an operation would copy too many bytes or nest too deep. `copied` counts the bytes of all operations so
/// far.
fn bounded(object: &Value, operation: &PatchOperation, copied: &mut usize) -> Result<(), String> {
    let target = operation.path().count();
    let from = match operation {
        PatchOperation::Copy(copy) => Some(&copy.from),
        // A value that moves sideways or up gets no deeper.
        PatchOperation::Move(moved) if moved.from.count() < target => Some(&moved.from),
        _ => None,
    };
    let from = from.and_then(|from| object.pointer(from.as_str()));
    *copied += from.map_or(0, json_size);
    let value = match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        _ => from,
    };
    if *copied > MAX_COPIED {
        return Err(format!(
            "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit \
             {MAX_COPIED}"
        ));
    }
    let depth = target + value.map_or(0, depth);
    if depth > MAX_DEPTH {
        return Err(format!(
            "{} would be nested {depth} levels deep, exceeding the limit {MAX_DEPTH}",
            operation.path()
        ));
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the merge key of the list `key` inside `parent`, or `None` if the list is replaced.
fn merge_key(parent: &str, key: &str) -> Option<&'static str> {
    Some(match key {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "imagePullSecrets"
        | "resourceClaims"
        | "drivers"
        | "schedulingGates" => "name",
        "conditions" => "type",
        "ports" if parent == "spec" => "port",
        "ports" => "containerPort",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "addresses" => "type",
        "ownerReferences" => "uid",
        "hostAliases" | "podIPs" | "hostIPs" => "ip",
        "topologySpreadConstraints" => "topologyKey",
        _ => return None,
    })
}

fn strategic(target: &mut Value, patch: &Value, parent: &str) -> ApiResult<()> {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return Ok(()) };
    match changes.get("$patch").and_then(Value::as_str) {
        Some("replace") => fields.clear(),
        Some("delete") => {
            fields.clear();
            return Ok(());
        }
        _ => {}
    }
    if let Some(kept) = changes.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|key, _| kept.iter().any(|k| k == key.as_str()));
    }
    for (key, change) in changes {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let Some(items) = fields.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !change.as_array().is_some_and(|gone| gone.contains(item)));
            }
        } else if key.starts_with('$') {
        } else if change.is_null() {
            fields.remove(key);
        } else if let (Value::Array(changes), Some(merge)) = (change, merge_key(parent, key)) {
            let slot = fields.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new()));
            list(slot, changes, merge, key)?;
        } else if key == "finalizers" {
            union(fields.entry(key.clone()).or_insert_with(|| Value::Array(Vec::new())), change);
        } else if change.is_object() {
            strategic(fields.entry(key.clone()).or_insert(Value::Null), change, key)?;
        } else {
            fields.insert(key.clone(), change.clone());
        }
    }
    Ok(())
}

/// Adds the missing items to a list of plain values.
fn union(slot: &mut Value, change: &Value) {
    let (Some(items), Some(changes)) = (slot.as_array_mut(), change.as_array()) else { return };
    for item in changes {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
}

/// Merges a list of objects by key. New items come first, as on a real server.
fn list(slot: &mut Value, changes: &[Value], merge: &str, key: &str) -> ApiResult<()> {
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Some(items) = slot.as_array_mut() else { return Ok(()) };
    if changes.iter().any(|c| c["$patch"] == "replace") {
        *items = changes.iter().filter(|c| c["$patch"] != "replace").cloned().collect();
        return Ok(());
    }
    let mut added = Vec::new();
    for change in changes {
        let id = &change[merge];
        if id.is_null() {
            let message = format!("map: {change} does not contain declared merge key: {merge}");
            return Err(ApiError::bad_request(message));
        }
        if change["$patch"] == "delete" {
            items.retain(|item| item[merge] != *id);
        } else if let Some(item) = items.iter_mut().find(|item| item[merge] == *id) {
            strategic(item, change, key)?;
        } else {
            let mut item = Value::Null;
            strategic(&mut item, change, key)?;
            added.push(item);
        }
    }
    added.append(items);
    *items = added;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(object: Value, patch: Value, expected: Value) {
        let patched = apply(PatchKind::Strategic, &object, &patch, false).expect("a patch");
        assert_eq!(patched, expected);
    }

    #[test]
    fn strategic_merges_lists_by_their_keys() {
        check(
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}),
            json!({"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]}}),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "2"}, {"name": "b"}]}}),
        );
        check(
            json!({"status": {"conditions": [{"type": "A", "status": "False"}]}}),
            json!({"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "$patch": "delete"}]}}),
            json!({"status": {"conditions": [{"type": "A", "status": "True"}]}}),
        );
    }

    #[test]
    fn strategic_replaces_other_lists_and_removes_nulls() {
        check(
            json!({"spec": {"tolerations": [{"key": "a"}], "nodeName": "n"}}),
            json!({"spec": {"tolerations": [{"key": "b"}], "nodeName": null}}),
            json!({"spec": {"tolerations": [{"key": "b"}]}}),
        );
        check(
            json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}),
            json!({"metadata": {"labels": {"c": "3"}}}),
        );
        check(
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}),
            json!({"metadata": {"finalizers": ["b", "c"]}}),
        );
    }

    #[track_caller]
    fn refused(patch: Value) -> (u16, String) {
        let object = json!({"metadata": {"annotations": {"a": "x".repeat(1000)}}});
        let refusal = apply(PatchKind::Json, &object, &patch, false).expect_err("a refusal");
        (refusal.code, refusal.message)
    }

    #[test]
    fn copies_cannot_double_without_end() {
        // Each copy doubles the object: 25 copies made 34 million annotations.
        let copies =
            (0..25).map(|n| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/c{n}")}));
        let (code, message) = refused(copies.collect());
        assert_eq!(code, 422);
        assert!(message.contains("the accumulated size increase of copy is"), "{message}");
        assert!(message.ends_with("exceeding the limit 3145728"), "{message}");
    }

    #[test]
    fn operations_are_counted_and_failures_named() {
        let same = json!({"op": "test", "path": "/metadata/x", "value": 1});
        let (code, message) = refused(vec![same.clone(); 10_001].into());
        let expected =
            "Request entity is too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
        assert_eq!((code, message.as_str()), (413, expected));
        let fine = json!({"op": "add", "path": "/metadata/y", "value": 1});
        let (code, message) = refused(json!([fine, same]));
        assert_eq!(code, 422);
        assert!(message.contains("operation '/1' failed at path '/metadata/x'"), "{message}");
    }

    #[test]
    fn nothing_nests_without_end() {
        let mut patch = Vec::new();
        for level in 1..=1000 {
            patch.push(json!({"op": "add", "path": "/a".repeat(level), "value": {}}));
        }
        let (code, message) = refused(patch.into());
        assert_eq!(code, 422);
        assert!(message.ends_with("would be nested 128 levels deep, exceeding the limit 127"), "{message}");
        let mut patch = vec![json!({"op": "add", "path": "/a", "value": {}})];
        for _ in 0..1000 {
            patch.push(json!({"op": "add", "path": "/b", "value": {"c": {}}}));
            patch.push(json!({"op": "move", "from": "/a", "path": "/b/c/a"}));
            patch.push(json!({"op": "move", "from": "/b", "path": "/a"}));
        }
        let (code, message) = refused(patch.into());
        assert!(code == 422 && message.ends_with("exceeding the limit 127"), "{message}");
    }

    #[test]
    fn an_item_without_its_key_is_refused() {
        let patch = json!({"spec": {"containers": [{"image": "x"}]}});
        assert!(apply(PatchKind::Strategic, &json!({}), &patch, false).is_err());
    }
}
