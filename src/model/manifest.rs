//! Reads fields of a manifest, for the kinds that plugins bring.
//!
//! An absent field (or `null`) reads as `None`. A field that cannot be read fails with its path and value, and the object
//! is quarantined; nothing is guessed.

use std::fmt::{Display, Write};
use std::time::Duration;

use crate::selector::{LabelSelector, Operator, Requirement};
use crate::{Name, duration, quantity};
use serde_json::Value;

/// A field of an object that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem} ({value})")]
pub struct FieldError {
    /// Path of the field, such as `status.podsMetric[0].podUsage`.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What is wrong with the value.
    pub problem: String,
}

/// One step from an object to a field.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Name(&'a str),
    Index(usize),
}

/// A field of a manifest, with its path.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    value: &'a Value,
    path: Vec<Step<'a>>,
}

impl<'a> Field<'a> {
    /// Makes the field that is the whole object.
    pub fn root(value: &'a Value) -> Self {
        Self { value, path: Vec::new() }
    }

    fn step(&self, step: Step<'a>, value: &'a Value) -> Self {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(&self.path);
        path.push(step);
        Self { value, path }
    }

    /// Returns the error for this field.
    pub fn error(&self, problem: impl Display) -> FieldError {
        let mut field = String::new();
        for step in &self.path {
            let _ = match step {
                Step::Name(name) if field.is_empty() => write!(field, "{name}"),
                Step::Name(name) => write!(field, ".{name}"),
                Step::Index(i) => write!(field, "[{i}]"),
            };
        }
        FieldError { field, value: self.value.to_string(), problem: problem.to_string() }
    }

    /// Returns whether the field is absent or `null`.
    pub fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    /// Returns a field of this object, absent when this is absent. Fails when this is not an object.
    pub fn get(&self, name: &'a str) -> Result<Self, FieldError> {
        match self.value {
            Value::Object(fields) => {
                Ok(self.step(Step::Name(name), fields.get(name).unwrap_or(&Value::Null)))
            }
            Value::Null => Ok(self.step(Step::Name(name), &Value::Null)),
            _ => Err(self.error("not an object")),
        }
    }

    /// Returns a nested field by its path.
    pub fn at(&self, path: &[&'a str]) -> Result<Self, FieldError> {
        path.iter().try_fold(self.clone(), |field, name| field.get(name))
    }

    /// Returns the fields of this object with their names, none when it is absent.
    pub fn entries(&self) -> Result<Vec<(&'a str, Self)>, FieldError> {
        match self.value {
            Value::Object(fields) => Ok(fields
                .iter()
                .map(|(name, value)| (name.as_str(), self.step(Step::Name(name), value)))
                .collect()),
            Value::Null => Ok(Vec::new()),
            _ => Err(self.error("not an object")),
        }
    }

    /// Returns the elements of this list, none when it is absent.
    pub fn elements(&self) -> Result<Vec<Self>, FieldError> {
        match self.value {
            Value::Array(all) => {
                Ok(all.iter().enumerate().map(|(i, value)| self.step(Step::Index(i), value)).collect())
            }
            Value::Null => Ok(Vec::new()),
            _ => Err(self.error("not a list")),
        }
    }

    /// Returns a text.
    pub fn text(&self) -> Result<Option<&'a str>, FieldError> {
        match self.value {
            Value::String(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            _ => Err(self.error("not a text")),
        }
    }

    /// Returns an integer.
    pub fn integer(&self) -> Result<Option<i64>, FieldError> {
        self.read_with("not an integer", Value::as_i64)
    }

    /// Returns a boolean.
    pub fn boolean(&self) -> Result<Option<bool>, FieldError> {
        self.read_with("not a boolean", Value::as_bool)
    }

    fn read_with<T>(
        &self,
        problem: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        if self.is_absent() {
            return Ok(None);
        }
        read(self.value).map(Some).ok_or_else(|| self.error(problem))
    }

    /// Returns a quantity in the model's unit of the resource: thousandths for `cpu`, whole units for the rest. Numbers
    /// are accepted beside texts, as an API server accepts them.
    pub fn quantity(&self, resource: &str) -> Result<Option<i64>, FieldError> {
        let text = match self.value {
            Value::Null => return Ok(None),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(self.error("not a quantity")),
        };
        let parsed = if resource == "cpu" { quantity::milli(&text) } else { quantity::units(&text) };
        parsed.map(Some).map_err(|e| self.error(format_args!("not a quantity: {}", e.problem)))
    }

    /// Returns a point in time (RFC 3339), in seconds since 1970.
    pub fn moment(&self) -> Result<Option<i64>, FieldError> {
        let Some(text) = self.text()? else { return Ok(None) };
        let parsed = text.parse::<jiff::Timestamp>();
        parsed.map(|t| Some(t.as_second())).map_err(|_| self.error("not a point in time"))
    }

    /// Returns a label selector (`matchLabels` and `matchExpressions`). An empty object selects everything.
    pub fn selector(&self) -> Result<Option<LabelSelector>, FieldError> {
        if self.is_absent() {
            return Ok(None);
        }
        let mut all = Vec::new();
        for (key, value) in self.get("matchLabels")?.entries()? {
            let values = Box::new([value.text()?.unwrap_or_default().into()]);
            all.push(Requirement { key: key.into(), operator: Operator::In, values });
        }
        for expression in self.get("matchExpressions")?.elements()? {
            let operator = expression.get("operator")?;
            let read = match operator.text()? {
                Some("In") => Operator::In,
                Some("NotIn") => Operator::NotIn,
                Some("Exists") => Operator::Exists,
                Some("DoesNotExist") => Operator::DoesNotExist,
                _ => return Err(operator.error("must be In, NotIn, Exists or DoesNotExist")),
            };
            let value = |field: Self| Ok::<Name, FieldError>(field.text()?.unwrap_or_default().into());
            let values = expression.get("values")?.elements()?.into_iter().map(value);
            all.push(Requirement {
                key: expression.get("key")?.text()?.unwrap_or_default().into(),
                operator: read,
                values: values.collect::<Result<Vec<_>, _>>()?.into(),
            });
        }
        Ok(Some(LabelSelector::new(all)))
    }

    /// Returns a duration in Go's syntax, such as `5m0s`.
    pub fn duration(&self) -> Result<Option<Duration>, FieldError> {
        let Some(text) = self.text()? else { return Ok(None) };
        duration::parse(text).map(Some).ok_or_else(|| self.error("not a duration"))
    }
}

/// Formats a point in time as Kubernetes does, given seconds since 1970.
pub fn format_moment(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map(|t| t.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_by_path_and_absent_ones_are_none() {
        let object = json!({"spec": {"seats": 3, "each": "90s", "list": [{"cpu": "250m"}], "at": "1970-01-01T00:01:00Z"}});
        let spec = Field::root(&object).get("spec").unwrap();
        assert_eq!(spec.get("seats").unwrap().integer(), Ok(Some(3)));
        assert_eq!(spec.get("each").unwrap().duration(), Ok(Some(Duration::from_secs(90))));
        assert_eq!(spec.get("at").unwrap().moment(), Ok(Some(60)));
        let list = spec.get("list").unwrap().elements().unwrap();
        assert_eq!(list[0].get("cpu").unwrap().quantity("cpu"), Ok(Some(250)));
        let none = Field::root(&object).at(&["status", "pods"]).unwrap();
        assert!(none.is_absent() && none.elements().unwrap().is_empty());
    }

    #[test]
    fn errors_name_path_and_value() {
        let object = json!({"status": {"pods": [{"cpu": 1}, {"cpu": "x"}], "time": "today"}});
        let status = Field::root(&object).get("status").unwrap();
        let pods = status.get("pods").unwrap().elements().unwrap();
        let error = pods[1].get("cpu").unwrap().quantity("cpu").unwrap_err();
        assert_eq!((error.field.as_str(), error.value.as_str()), ("status.pods[1].cpu", "\"x\""));
        let error = status.get("time").unwrap().moment().unwrap_err();
        assert_eq!(error.to_string(), "status.time: not a point in time (\"today\")");
        assert!(status.get("time").unwrap().get("x").is_err());
    }
}
