//! Reads plugin arguments strictly and collects every problem at once.

use pellucid_framework::plugin::ArgsError;
pub(super) use pellucid_model::naming::is_qualified_name;
use serde_json::{Map, Value};

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<ArgsError>);

impl Problems {
    /// Records a problem with a value.
    pub(super) fn add(&mut self, field: impl Into<String>, problem: impl Into<String>, value: &Value) {
        self.0.push(ArgsError { field: field.into(), problem: problem.into(), value: value.to_string() });
    }

    /// Succeeds when there is no problem.
    pub(super) fn into_result(self) -> Result<(), Vec<ArgsError>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }

    /// Returns an object with these fields at most; `None` when absent or not an object. At the top
    /// (`path` is empty) `apiVersion` and `kind` are accepted too.
    pub(super) fn object<'a>(
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

    /// Returns the elements of a list; none when absent or not a list.
    pub(super) fn list<'a>(&mut self, path: &str, value: &'a Value) -> &'a [Value] {
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
    pub(super) fn text<'a>(&mut self, path: &str, value: &'a Value) -> Option<&'a str> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => {
                self.add(path, "must be a string", other);
                None
            }
        }
    }

    /// Returns the strings of a list.
    pub(super) fn texts<'a>(&mut self, path: &str, value: &'a Value) -> Vec<&'a str> {
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
    pub(super) fn integer(&mut self, path: &str, value: &Value) -> Option<i64> {
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

/// Returns the path of a field.
pub(super) fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Returns a field, `Null` when absent.
pub(super) fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a Value {
    fields.get(name).unwrap_or(&Value::Null)
}
