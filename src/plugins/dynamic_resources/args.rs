//! DynamicResourcesArgs: read and shown, so that a configuration loads; nothing acts on them yet.

use serde_json::{Value, json};

use super::super::args::{Problems, field};
use crate::framework::plugin::ArgsError;

/// The arguments, as they were given or by default.
pub(super) struct Args {
    filter_timeout: String,
    binding_timeout: String,
}

impl Args {
    pub(super) fn shown(&self) -> Value {
        json!({"filterTimeout": self.filter_timeout, "bindingTimeout": self.binding_timeout})
    }
}

/// Reads the arguments. Durations are texts such as `10s`; kube-scheduler checks their form.
pub(super) fn read(args: &Value) -> Result<Args, Vec<ArgsError>> {
    let mut problems = Problems::default();
    let mut made = Args { filter_timeout: "10s".into(), binding_timeout: "10m0s".into() };
    if let Some(fields) = problems.object("", args, &["filterTimeout", "bindingTimeout"]) {
        for (name, slot) in
            [("filterTimeout", &mut made.filter_timeout), ("bindingTimeout", &mut made.binding_timeout)]
        {
            if let Some(text) = problems.text(name, field(fields, name)) {
                *slot = text.to_owned();
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
