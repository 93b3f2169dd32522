//! Lays out JSON bodies as tables, as each read declares.
//!
//! A table is made from the JSON body alone, so the two cannot disagree.

use pellucid_diagnosis::reads::{RowSpec, Spread};
use pellucid_framework::list::fields::find;
use pellucid_http::Table;
use serde_json::Value;

/// Lays out a body as a table. The columns are the fields that the request asks for, else the declared ones, else the fields
/// of the first object.
pub(crate) fn table(spec: &RowSpec, body: &Value, fields: Option<&str>) -> Table {
    let objects = objects(spec, body);
    let rows: Vec<(&Value, &Value)> = match spec.nested {
        None => objects.iter().map(|object| (*object, *object)).collect(),
        Some(nested) => objects.iter().flat_map(|o| elements(o, nested).map(move |row| (*o, row))).collect(),
    };
    if let Some(fields) = fields {
        let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
        let line = |(_, row): &(&Value, &Value)| fields.iter().map(|field| cell(find(row, field))).collect();
        let header = fields.iter().map(|field| (*field).to_owned()).collect();
        return Table { header, rows: rows.iter().map(line).collect() };
    }
    let columns: Vec<(String, String)> = if spec.columns.is_empty() {
        let first = objects.first().and_then(|o| o.as_object());
        let fields = first.into_iter().flat_map(|o| o.iter());
        fields.map(|(name, _)| (name.clone(), format!("/{name}"))).collect()
    } else {
        split(spec.columns).map(|(h, p)| (h.to_string(), p.to_string())).collect()
    };
    let mut table = Table {
        header: columns.iter().map(|(h, _)| h.clone()).collect(),
        rows: rows.iter().map(|(of, row)| columns.iter().map(|(_, p)| at(of, row, p)).collect()).collect(),
    };
    if let Some(spread) = &spec.spread {
        add_spread(&mut table, spread, &rows);
    }
    table
}

/// Adds the columns that depend on the data. Rows may have different elements: the columns of all elements are added in
/// the order of their names, and are empty in rows without that element.
fn add_spread(table: &mut Table, spread: &Spread, rows: &[(&Value, &Value)]) {
    let name = |element: &Value| cell(element.pointer(spread.name));
    let mut names: Vec<String> =
        rows.iter().flat_map(|(_, row)| elements(row, spread.array)).map(name).collect();
    names.sort();
    names.dedup();
    for of in &names {
        table.header.extend(split(spread.columns).map(|(what, _)| format!("{of} {what}")));
    }
    for (line, (_, row)) in table.rows.iter_mut().zip(rows) {
        for of in &names {
            let element = elements(row, spread.array).find(|e| name(e) == *of);
            line.extend(split(spread.columns).map(|(_, p)| cell(element.and_then(|e| e.pointer(p)))));
        }
    }
}

/// Splits columns into headings and JSON pointers.
fn split(columns: &str) -> impl Iterator<Item = (&str, &str)> {
    columns.split(", ").map(|column| column.rsplit_once(' ').unwrap_or((column, "")))
}

/// Returns the objects that become rows: an array of the body, or the values of a body that is a map.
fn objects<'b>(spec: &RowSpec, body: &'b Value) -> Vec<&'b Value> {
    if spec.array.is_empty() {
        return body.as_object().into_iter().flat_map(|map| map.values()).collect();
    }
    elements(body, &format!("/{}", spec.array.trim_start_matches('/'))).collect()
}

fn elements<'b>(body: &'b Value, pointer: &str) -> impl Iterator<Item = &'b Value> {
    body.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Returns a cell from the row or, with the prefix `..`, from the object that contains the row.
fn at(of: &Value, row: &Value, pointer: &str) -> String {
    match pointer.strip_prefix("..") {
        Some(outer) => cell(of.pointer(outer)),
        None => cell(row.pointer(pointer)),
    }
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_come_from_the_data_where_a_read_says_so() {
        let spec = RowSpec {
            array: "/tables",
            nested: Some("/rows"),
            columns: "Pod ../name, Total /total",
            spread: Some(Spread { array: "/plugins", name: "/plugin", columns: "raw /raw, w /w" }),
        };
        let body = json!({"tables": [
            {"name": "a", "rows": [
                {"total": 3, "plugins": [{"plugin": "Fit", "raw": 1, "w": 2}]},
                {"total": 2, "plugins": [{"plugin": "Fit", "raw": 0, "w": 1}]},
            ]},
            {"name": "b", "rows": [{"total": 1, "plugins": [{"plugin": "Affinity", "raw": 9, "w": 1}]}]},
        ]});
        let table = table(&spec, &body, None);
        assert_eq!(table.header, ["Pod", "Total", "Affinity raw", "Affinity w", "Fit raw", "Fit w"]);
        assert_eq!(
            table.rows,
            [["a", "3", "", "", "1", "2"], ["a", "2", "", "", "0", "1"], ["b", "1", "9", "1", "", ""],]
        );
    }

    #[test]
    fn without_columns_the_fields_of_the_first_object_are() {
        let body = json!({"a": {"x": 1, "y": null}, "b": {"x": "t"}});
        let table = table(&RowSpec::default(), &body, None);
        assert_eq!((table.header, table.rows.len()), (vec!["x".to_owned(), "y".to_owned()], 2));
        assert_eq!(table.rows[1], ["t", ""]);
    }
}
