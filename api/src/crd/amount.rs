//! Resource amounts as YAML has them: `4` and `"4"` mean the same.
//!
//! Keeps text and number as they came; the reader parses them as quantities.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Resource name → amount.
pub type ResourceList = BTreeMap<String, Amount>;

/// A quantity such as `100m`, `8Gi` or 4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// With quotes in YAML.
    Text(String),
    /// Without.
    Number(serde_json::Number),
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// What an API server checks a quantity with. The text is the one that every definition with amounts has.
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_written_as_they_came() {
        let given = serde_json::json!({"cpu": 4, "memory": "8Gi"});
        let read: ResourceList = serde_json::from_value(given.clone()).expect("amounts");
        assert_eq!(read["cpu"].to_string(), "4");
        assert_eq!(read["memory"].to_string(), "8Gi");
        assert_eq!(serde_json::to_value(&read).expect("JSON"), given);
    }
}
