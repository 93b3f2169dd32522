//! `fields=`: which fields of its items a list returns.

use serde_json::{Map, Value};

use super::params::{FIELDS, invalid, words};
use crate::endpoint::{PathParams, ReadError};

/// Keeps only the fields that a request asks for in the items of a body's array. `known` are the names of the items'
/// fields. Fails when one is not among them.
pub fn select(body: &mut Value, array: &str, params: &PathParams, known: &[String]) -> Result<(), ReadError> {
    let Some(wanted) = words(params, FIELDS)? else { return Ok(()) };
    for path in &wanted {
        let first = path.split('.').next().unwrap_or_default();
        if !known.iter().any(|name| name == first) {
            return Err(invalid(FIELDS, path, &format!("known: {}", known.join(", "))));
        }
    }
    for item in body.get_mut(array).and_then(Value::as_array_mut).into_iter().flatten() {
        let mut kept = Map::new();
        for path in &wanted {
            keep(item, path, &mut kept);
        }
        *item = Value::Object(kept);
    }
    Ok(())
}

/// Returns what a path of names with dots leads to. A key may contain dots itself, as a resource's name does.
pub fn find<'v>(item: &'v Value, path: &str) -> Option<&'v Value> {
    let whole = || item.get(path);
    whole()
        .or_else(|| path.match_indices('.').find_map(|(at, _)| find(item.get(&path[..at])?, &path[at + 1..])))
}

/// Copies what a path leads to, see [`find`].
fn keep(from: &Value, path: &str, into: &mut Map<String, Value>) {
    if let Some(found) = from.get(path) {
        into.insert(path.to_owned(), found.clone());
        return;
    }
    let split = path.match_indices('.').map(|(at, _)| (&path[..at], &path[at + 1..]));
    let inner = split.filter_map(|(name, rest)| Some((name, rest, from.get(name)?)));
    let Some((name, rest, inner)) = inner.into_iter().find(|(_, rest, inner)| find(inner, rest).is_some())
    else {
        return;
    };
    if let Value::Object(into) = into.entry(name).or_insert_with(|| Value::Object(Map::new())) {
        keep(inner, rest, into);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selected(fields: &str) -> Result<Value, ReadError> {
        let item = json!({"name": "a", "free": {"cpu": 1, "example.com/gpu": 2}, "pods": 3});
        let mut body = json!({"meta": {}, "nodes": [item, {"name": "b"}]});
        let known = ["name", "free", "pods"].map(String::from);
        select(&mut body, "nodes", &PathParams::from([(FIELDS.to_owned(), fields.to_owned())]), &known)?;
        Ok(body["nodes"].clone())
    }

    #[test]
    fn only_the_fields_that_are_asked_for_stay() {
        assert_eq!(selected("pods,name").unwrap(), json!([{"name": "a", "pods": 3}, {"name": "b"}]));
        assert_eq!(
            selected("free.cpu,free.example.com/gpu").unwrap(),
            json!([{"free": {"cpu": 1, "example.com/gpu": 2}}, {}])
        );
    }

    #[test]
    fn a_field_that_no_item_has_is_refused_with_those_that_it_has() {
        let Err(ReadError::BadRequest { message, .. }) = selected("nme") else { panic!("it is refused") };
        assert_eq!(message, "parameter `fields` has the value `nme`: known: name, free, pods");
    }
}
