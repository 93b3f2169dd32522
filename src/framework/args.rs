//! Parses plugin arguments strictly and collects all problems instead of stopping at the first.
//!
//! Not here: which arguments a plugin has, and where in a configuration file they stand.

pub use pellucid_model::naming::is_qualified_name;
use serde_json::{Map, Value, json};

use super::plugin::ArgsError;

/// Problems found so far, in the order of discovery.
#[derive(Debug, Default)]
pub struct Problems(Vec<ArgsError>);

impl Problems {
    /// Records a problem with the value of a field.
    pub fn add(&mut self, field: impl Into<String>, problem: impl Into<String>, value: &Value) {
        self.0.push(ArgsError { field: field.into(), problem: problem.into(), value: value.to_string() });
    }

    /// Returns `Err` with all problems if there is at least one.
    pub fn into_result(self) -> Result<(), Vec<ArgsError>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }

    /// Returns an object and records every field not in `known`; `None` when the value is absent or not an object. At
    /// the top level (`path` is empty) `apiVersion` and `kind` are also accepted.
    pub fn object<'a>(
        &mut self,
        path: &str,
        value: &'a Value,
        known: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        let fields = match value {
            Value::Null => return None,
            Value::Object(fields) => fields,
            other => {
                self.add(if path.is_empty() { "args" } else { path }, "must be an object", other);
                return None;
            }
        };
        for (name, value) in fields {
            let is_typemeta = path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind");
            if !is_typemeta && !known.contains(&name.as_str()) {
                self.add(join(path, name), "there is no such argument", value);
            }
        }
        Some(fields)
    }

    /// Returns the elements of a list; empty when absent or not a list.
    pub fn list<'a>(&mut self, path: &str, value: &'a Value) -> &'a [Value] {
        match value {
            Value::Null => &[],
            Value::Array(elements) => elements,
            other => {
                self.add(path, "must be a list", other);
                &[]
            }
        }
    }

    /// Returns a string; `None` when absent or not a string.
    pub fn text<'a>(&mut self, path: &str, value: &'a Value) -> Option<&'a str> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => {
                self.add(path, "must be a string", other);
                None
            }
        }
    }

    /// Returns the strings of a list, skipping elements that are not strings.
    pub fn texts<'a>(&mut self, path: &str, value: &'a Value) -> Vec<&'a str> {
        let mut all = Vec::new();
        for (i, element) in self.list(path, value).iter().enumerate() {
            match element {
                Value::String(text) => all.push(text.as_str()),
                other => self.add(format!("{path}[{i}]"), "must be a string", other),
            }
        }
        all
    }

    /// Returns an integer; `None` when absent or not an integer.
    pub fn integer(&mut self, path: &str, value: &Value) -> Option<i64> {
        if value.is_null() {
            return None;
        }
        let number = value.as_i64();
        if number.is_none() {
            self.add(path, "must be an integer", value);
        }
        number
    }
}

/// Returns the path of a field within the object at `path`.
pub fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Returns the value of a field, `Null` when absent.
pub fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a Value {
    fields.get(name).unwrap_or(&Value::Null)
}

/// Validates the arguments of a plugin without arguments: accepts absent, null or an empty object.
pub fn no_args(args: &Value) -> Result<(), Vec<ArgsError>> {
    let mut problems = Problems::default();
    let _ = problems.object("", args, &[]);
    problems.into_result()
}

/// Returns the JSON schema of the arguments of a plugin without arguments.
pub fn no_args_schema() -> Value {
    json!({"type": "object", "additionalProperties": false})
}
