//! The arguments of InterPodAffinity.

use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use super::super::args::{Problems, field};

const HARD_WEIGHT: &str = "hardPodAffinityWeight";
const IGNORE: &str = "ignorePreferredTermsOfExistingPods";

/// The effective arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Args {
    /// Weight of a placed pod's required affinity term for a pod that matches it, 0 to 100.
    pub(super) hard_weight: i64,
    /// Whether pods without preferred terms of their own ignore the terms of placed pods.
    pub(super) ignore_preferred_of_existing: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self { hard_weight: 1, ignore_preferred_of_existing: false }
    }
}

impl Args {
    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(self) -> Value {
        json!({HARD_WEIGHT: self.hard_weight, IGNORE: self.ignore_preferred_of_existing})
    }
}

/// Parses the arguments. Fails with every problem found, not only the first.
pub(super) fn read(args: &Value) -> Result<Args, Vec<ArgsError>> {
    let mut problems = Problems::default();
    let mut made = Args::default();
    if let Some(fields) = problems.object("", args, &[HARD_WEIGHT, IGNORE]) {
        if let Some(weight) = problems.integer(HARD_WEIGHT, field(fields, HARD_WEIGHT)) {
            if !(0..=100).contains(&weight) {
                problems.add(HARD_WEIGHT, "must be 0 to 100", field(fields, HARD_WEIGHT));
            }
            made.hard_weight = weight;
        }
        match field(fields, IGNORE) {
            Value::Null => {}
            Value::Bool(ignore) => made.ignore_preferred_of_existing = *ignore,
            other => problems.add(IGNORE, "must be true or false", other),
        }
    }
    problems.into_result().map(|()| made)
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            HARD_WEIGHT: {"type": "integer", "minimum": 0, "maximum": 100, "default": 1},
            IGNORE: {"type": "boolean", "default": false},
        },
    })
}
