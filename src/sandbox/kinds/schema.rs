//! Structural schemas of custom resources: defaults, pruning and validation.
//!
//! They cover what definitions use in practice: types, properties, items, required, bounds, enums and lengths, and only
//! the pattern of quantities. Other patterns and CEL rules (`x-kubernetes-validations`) are not evaluated.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::errors::FieldError;
use crate::kinds::validate::is_quantity;

/// The pattern that definitions use for quantities.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// A schema, as the JSON of the definition.
#[derive(Clone, Debug)]
pub(crate) struct Schema(Value);

impl Schema {
    /// Wraps an `openAPIV3Schema`. A missing schema accepts everything.
    pub(crate) fn new(schema: Option<&Value>) -> Self {
        let open = serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
        Self(schema.cloned().unwrap_or(open))
    }

    /// Sets missing fields to their defaults.
    pub(crate) fn fill(&self, object: &mut Value) {
        fill(&self.0, object);
    }

    /// Removes the fields that the schema does not know, and returns their paths.
    pub(crate) fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut gone = Vec::new();
        prune(&self.0, object, "", &mut gone);
        gone
    }

    /// Returns the violations of the schema.
    pub(crate) fn check(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        check(&self.0, object, "", &mut errors);
        errors
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == Value::Bool(true)
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, schema) in properties(schema).into_iter().flatten() {
                if let (None, Some(default)) = (fields.get(key), schema.get("default")) {
                    fields.insert(key.clone(), default.clone());
                }
                if let Some(value) = fields.get_mut(key) {
                    fill(schema, value);
                }
            }
            if let Some(schema @ Value::Object(_)) = schema.get("additionalProperties") {
                fields.values_mut().for_each(|value| fill(schema, value));
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(schema, item));
            }
        }
        _ => {}
    }
}

fn prune(schema: &Value, value: &mut Value, path: &str, gone: &mut Vec<String>) {
    let keeps_all = flag(schema, "x-kubernetes-preserve-unknown-fields");
    match value {
        Value::Object(fields) => {
            let known = properties(schema);
            let rest = schema.get("additionalProperties");
            let is_resource = path.is_empty() || flag(schema, "x-kubernetes-embedded-resource");
            fields.retain(|key, value| {
                let is_meta = is_resource && matches!(key.as_str(), "metadata" | "apiVersion" | "kind");
                let here = join(path, key);
                match (known.and_then(|k| k.get(key)), rest) {
                    _ if is_meta => true,
                    (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                        prune(schema, value, &here, gone);
                        true
                    }
                    (None, Some(Value::Bool(true))) => true,
                    _ if keeps_all => true,
                    _ => {
                        gone.push(here);
                        false
                    }
                }
            });
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    prune(schema, item, &format!("{path}[{index}]"), gone);
                }
            }
        }
        _ => {}
    }
}

fn check(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if value.is_null() && flag(schema, "nullable") {
        return;
    }
    if let Some(wanted) = wrong_type(schema, value) {
        let why = format!("{path} in body must be of type {wanted}: \"{}\"", type_name(value));
        errors.push(FieldError::wrong_type(path, value, &why));
        return;
    }
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        let known: Vec<&str> = known.iter().filter_map(Value::as_str).collect();
        errors.push(FieldError::unsupported(path, value, &known));
    }
    match value {
        Value::Number(_) => check_number(schema, value, path, errors),
        Value::String(text) => {
            if schema["pattern"] == QUANTITY && !is_quantity(text) {
                let why = format!("{path} in body should match '{QUANTITY}'");
                errors.push(FieldError::invalid(path, value, &why));
            }
            check_size(schema, text.chars().count(), ["minLength", "maxLength"], value, path, errors)
        }
        Value::Array(items) => {
            check_size(schema, items.len(), ["minItems", "maxItems"], value, path, errors);
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(schema, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        Value::Object(fields) => check_object(schema, fields, path, errors),
        _ => {}
    }
}

fn check_object(schema: &Value, fields: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(join(path, name), ""));
        }
    }
    for (key, value) in fields {
        let known = properties(schema).and_then(|p| p.get(key));
        let rest = schema.get("additionalProperties").filter(|s| s.is_object());
        if let Some(schema) = known.or(rest) {
            check(schema, value, &join(path, key), errors);
        }
    }
}

fn check_number(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let number = value.as_f64().unwrap_or_default();
    for (key, exclusive, wrong, rule) in [
        ("minimum", "exclusiveMinimum", Ordering::Less, "greater than"),
        ("maximum", "exclusiveMaximum", Ordering::Greater, "less than"),
    ] {
        let Some(bound) = schema[key].as_f64() else { continue };
        let is_strict = flag(schema, exclusive);
        let order = number.partial_cmp(&bound);
        if order == Some(wrong) || (is_strict && order == Some(Ordering::Equal)) {
            let equal = if is_strict { "" } else { " or equal to" };
            let why = format!("{path} in body should be {rule}{equal} {bound}");
            errors.push(FieldError::invalid(path, value, &why));
        }
    }
}

fn check_size(
    schema: &Value,
    size: usize,
    bounds: [&str; 2],
    value: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let unit = if value.is_string() { "chars long" } else { "items" };
    if schema[bounds[0]].as_u64().is_some_and(|least| (size as u64) < least) {
        let why = format!("{path} in body should be at least {} {unit}", schema[bounds[0]]);
        errors.push(FieldError::invalid(path, value, &why));
    }
    if schema[bounds[1]].as_u64().is_some_and(|most| (size as u64) > most) {
        let why = format!("{path} in body should be at most {} {unit}", schema[bounds[1]]);
        errors.push(FieldError::invalid(path, value, &why));
    }
}

/// Returns the type that the schema requires, if the value has another one.
fn wrong_type<'a>(schema: &'a Value, value: &Value) -> Option<&'a str> {
    if flag(schema, "x-kubernetes-int-or-string") {
        let fits = value.is_string() || value.is_i64() || value.is_u64();
        return (!fits).then_some("integer,string");
    }
    let wanted = schema["type"].as_str()?;
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    };
    (!fits).then_some(wanted)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
