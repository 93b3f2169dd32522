//! The four kinds of PATCH: json, merge, strategic merge, and apply.
//!
//! Strategic merge knows the merge keys of the lists that the API declares so; other lists are replaced.
//! Apply is a strategic merge for built-in kinds and a merge for custom ones: field ownership is not kept,
//! so there are no apply conflicts and nothing is taken away when a manager leaves a field out.

use serde_json::{Map, Value};

use super::errors::{ApiError, ApiResult};

/// The form of a patch, from its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' strategic merge.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// Reads a content type.
    pub(super) fn parse(content_type: &str) -> Option<Self> {
        match content_type {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// Returns `object` with the patch applied.
pub(super) fn apply(kind: PatchKind, object: &Value, patch: &Value, is_custom: bool) -> ApiResult<Value> {
    let mut patched = object.clone();
    match kind {
        PatchKind::Json => json(&mut patched, patch)?,
        PatchKind::Merge => json_patch::merge(&mut patched, patch),
        PatchKind::Apply if is_custom => json_patch::merge(&mut patched, patch),
        PatchKind::Strategic | PatchKind::Apply => strategic(&mut patched, patch, "")?,
    }
    Ok(patched)
}

fn json(object: &mut Value, patch: &Value) -> ApiResult<()> {
    let operations: json_patch::Patch = serde::Deserialize::deserialize(patch)
        .map_err(|e| ApiError::bad_request(format!("json patch: {e}")))?;
    json_patch::patch(object, &operations).map_err(|error| {
        let message = format!("the server rejected our request due to an error in our request: {error}");
        let mut refusal = ApiError::bad_request(message);
        (refusal.code, refusal.reason) = (422, "Invalid");
        refusal
    })
}

/// Returns the merge key of the list `key` inside `parent`, if it merges at all.
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

/// Adds the items that a list of plain values does not have.
fn union(slot: &mut Value, change: &Value) {
    let (Some(items), Some(changes)) = (slot.as_array_mut(), change.as_array()) else { return };
    for item in changes {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
}

/// Merges a list of objects by key. New items come first, as a real server puts them.
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

    #[test]
    fn an_item_without_its_key_is_refused() {
        let patch = json!({"spec": {"containers": [{"image": "x"}]}});
        assert!(apply(PatchKind::Strategic, &json!({}), &patch, false).is_err());
    }
}
