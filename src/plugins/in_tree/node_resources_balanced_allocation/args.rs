//! The arguments of NodeResourcesBalancedAllocation: the resources to even out.

use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use super::super::args::{Problems, field};
use pellucid_plugin_helper::scored::{ScoredResource, cpu_and_memory, read_resources};

/// Returns the resources. Fails with all problems at once.
pub(super) fn read(args: &Value) -> Result<Vec<ScoredResource>, Vec<ArgsError>> {
    let mut problems = Problems::default();
    let mut resources = cpu_and_memory();
    if let Some(fields) = problems.object("", args, &["resources"]) {
        resources = read_resources(&mut problems, "resources", field(fields, "resources"));
    }
    for (i, resource) in resources.iter().enumerate() {
        if resource.weight != 1 {
            problems.add(format!("resources[{i}].weight"), "must be 1", &json!(resource.weight));
        }
        if resources[..i].iter().any(|r| r.name == resource.name) {
            let name = json!(resource.name.as_str());
            problems.add(format!("resources[{i}].name"), "must not be listed twice", &name);
        }
    }
    problems.into_result()?;
    Ok(resources)
}

pub(super) fn schema() -> Value {
    let resource = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "weight": {"const": 1}},
    });
    let resources = json!({"type": "array", "items": resource});
    json!({"type": "object", "additionalProperties": false, "properties": {"resources": resources}})
}
