//! DynamicResourcesArgs: parsed and shown so that configurations load; the values have no effect yet.

use std::time::Duration;

use pellucid_framework::plugin::ArgsError;
use pellucid_model::duration;
use serde_json::{Value, json};

use super::super::args::{Problems, field};

/// The arguments, as given or by default.
pub(super) struct Args {
    filter_timeout: Duration,
    binding_timeout: Duration,
}

impl Args {
    pub(super) fn shown(&self) -> Value {
        let (filter, binding) = (duration::show(self.filter_timeout), duration::show(self.binding_timeout));
        json!({"filterTimeout": filter, "bindingTimeout": binding})
    }
}

/// Parses the arguments. Fails with every problem found.
pub(super) fn read(args: &Value) -> Result<Args, Vec<ArgsError>> {
    let mut problems = Problems::default();
    let mut made =
        Args { filter_timeout: Duration::from_secs(10), binding_timeout: Duration::from_secs(600) };
    if let Some(fields) = problems.object("", args, &["filterTimeout", "bindingTimeout"]) {
        for (name, slot) in
            [("filterTimeout", &mut made.filter_timeout), ("bindingTimeout", &mut made.binding_timeout)]
        {
            let value = field(fields, name);
            let Some(text) = problems.text(name, value) else { continue };
            match duration::parse(text) {
                Some(read) => *slot = read,
                None => problems.add(name, "must be a duration from 0, such as 10s or 1m30s", value),
            }
        }
    }
    problems.into_result().map(|()| made)
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "filterTimeout": {"type": "string", "default": "10s", "description": "Not used: nothing is allocated"},
            "bindingTimeout": {"type": "string", "default": "10m0s", "description": "Not used: nothing is allocated"},
        },
    })
}
