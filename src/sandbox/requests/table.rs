//! Tables for `kubectl get`.
//!
//! Columns and cells come from the kind; the cells of built-in kinds are in `printers.rs`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::printers;
use crate::kinds::registry::{Cell, Column, Kind};

/// Returns an object's metadata as a PartialObjectMetadata.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

/// Returns the table row of an object.
pub(crate) fn row(kind: &Kind, object: &Value, include: &str, now: Timestamp) -> Value {
    let cell = |column: &Column| match &column.cell {
        Cell::BuiltIn(rule) => rule.cell(object, now),
        Cell::Path(path) => custom_cell(object, &column.kind, path, now),
    };
    let cells: Vec<Value> = kind.columns.iter().map(cell).collect();
    match include {
        "None" => json!({"cells": cells}),
        "Object" => json!({"cells": cells, "object": kind.typed(object.clone())}),
        _ => json!({"cells": cells, "object": partial(object)}),
    }
}

/// Returns a table with the columns of a kind.
pub(crate) fn table(kind: &Kind, metadata: Value, rows: Vec<Value>) -> Value {
    let column = |c: &Column| json!({"name": c.name, "type": c.kind, "format": c.format, "description": c.about, "priority": c.priority});
    let columns: Vec<Value> = kind.columns.iter().map(column).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows
    })
}

/// Evaluates a simple JSON path such as `.status.phase` or `.spec.items[0].name`.
fn custom_cell(object: &Value, kind: &str, path: &str, now: Timestamp) -> Value {
    let pointer: String =
        path.replace("\\.", "\u{0}").replace(['.', '['], "/").replace(']', "").replace('\u{0}', ".");
    let condition = path.split_once("[?(@.type==").and_then(|(list, rest)| {
        let (wanted, field) = rest.split_once(")]")?;
        let items = object.pointer(&list.replace('.', "/"))?.as_array()?;
        let wanted = wanted.trim_matches(['"', '\'']);
        items.iter().find(|c| c["type"] == wanted)?.pointer(&field.replace('.', "/"))
    });
    let Some(value) = condition.or_else(|| object.pointer(&pointer)) else { return Value::Null };
    match (kind, value) {
        ("date", Value::String(time)) => printers::age(time, now).into(),
        ("string", Value::Object(_) | Value::Array(_)) => value.to_string().into(),
        _ => value.clone(),
    }
}
