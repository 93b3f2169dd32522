//! JSON merge patches (RFC 7396) as values: joining two, and whether an object already has what one says.
//!
//! The API server applies them. Copies of the state, from which nothing is written, apply them to what was read.

use serde_json::Value;

/// Returns one patch that does what two do. Fails with the path of the first field that they set differently.
pub fn join(first: &Value, second: &Value) -> Result<Value, String> {
    let mut joined = first.clone();
    add(&mut joined, second, &mut Vec::new())?;
    Ok(joined)
}

fn add<'a>(joined: &mut Value, patch: &'a Value, path: &mut Vec<&'a str>) -> Result<(), String> {
    if *joined == *patch {
        return Ok(());
    }
    let (Value::Object(known), Value::Object(fields)) = (joined, patch) else { return Err(shown(path)) };
    for (name, value) in fields {
        match known.get_mut(name) {
            Some(old) => {
                path.push(name);
                add(old, value, path)?;
                path.pop();
            }
            None => {
                known.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// Applies a patch.
pub fn apply(patch: &Value, to: &mut Value) {
    let Value::Object(fields) = patch else {
        *to = patch.clone();
        return;
    };
    if !to.is_object() {
        *to = Value::Object(serde_json::Map::new());
    }
    for (name, value) in fields {
        match to.as_object_mut() {
            Some(known) if value.is_null() => _ = known.remove(name),
            Some(known) => apply(value, known.entry(name.as_str()).or_insert(Value::Null)),
            None => {}
        }
    }
}

/// Returns the annotations that a patch sets.
pub fn annotations(patch: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = patch["metadata"]["annotations"].as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Returns a path as people write it: `spec.claimRef`, `metadata.annotations[example.com/card]`.
fn shown(path: &[&str]) -> String {
    let mut text = String::new();
    for &name in path {
        if name.contains(['.', '/']) {
            text.extend(["[", name, "]"]);
        } else if text.is_empty() {
            text.push_str(name);
        } else {
            text.extend([".", name]);
        }
    }
    text
}

/// Returns whether the patch would change nothing: the object has the values that it sets, and lacks the fields that
/// it removes.
pub fn stands_on(patch: &Value, object: &Value) -> bool {
    match patch {
        Value::Object(fields) => {
            let has =
                |(name, value): (&String, &Value)| stands_on(value, object.get(name).unwrap_or(&Value::Null));
            // An empty object that is set may be left out by the server.
            (object.is_object() || object.is_null()) && fields.iter().all(has)
        }
        _ => patch == object,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_applied_stands() {
        let patch = json!({"status": {"phase": "Available", "old": null, "list": [1]}, "metadata": {"annotations": {"a": "1"}}});
        let mut object = json!({"status": {"phase": "Pending", "old": 1, "kept": true}, "spec": {}});
        apply(&patch, &mut object);
        let status = json!({"phase": "Available", "kept": true, "list": [1]});
        assert_eq!(object, json!({"status": status, "spec": {}, "metadata": {"annotations": {"a": "1"}}}));
        assert_eq!(annotations(&patch).collect::<Vec<_>>(), [("a", "1")]);
    }

    #[test]
    fn patches_of_different_fields_are_joined() {
        let first = json!({"metadata": {"annotations": {"a": "1"}}, "spec": {"x": 1}});
        let second = json!({"metadata": {"annotations": {"b": null}}, "spec": {"x": 1}});
        assert_eq!(
            join(&first, &second),
            Ok(json!({"metadata": {"annotations": {"a": "1", "b": null}}, "spec": {"x": 1}}))
        );
    }

    #[test]
    fn a_field_that_two_patches_set_differently_is_named() {
        let of = |value: Value| json!({"metadata": {"annotations": {"example.com/card": value}}});
        let field = || Err("metadata.annotations[example.com/card]".to_owned());
        assert_eq!(join(&of(json!("1")), &of(json!("2"))), field());
        assert_eq!(join(&of(json!("1")), &of(Value::Null)), field());
        assert_eq!(join(&json!({"spec": {"x": 1}}), &json!({"spec": 2})), Err("spec".to_owned()));
    }

    #[test]
    fn a_patch_stands_on_an_object_that_it_would_not_change() {
        let object = json!({"metadata": {"uid": "u", "labels": {"a": "1"}}, "spec": {"list": [1, 2]}});
        for (patch, stands) in [
            (json!({"metadata": {"labels": {"a": "1"}}}), true),
            (json!({"metadata": {"labels": {"a": "2"}}}), false),
            (json!({"metadata": {"labels": {"b": null}}}), true),
            (json!({"metadata": {"labels": {"a": null}}}), false),
            (json!({"metadata": {"annotations": {"a": null}}}), true),
            (json!({"metadata": {"annotations": {"a": "1"}}}), false),
            (json!({"spec": {"list": [1, 2]}}), true),
            (json!({"spec": {"list": [1]}}), false),
            (json!({"spec": {"list": {}}}), false),
            (json!({"status": {}}), true),
        ] {
            assert_eq!(stands_on(&patch, &object), stands, "{patch}");
        }
    }
}
