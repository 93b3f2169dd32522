//! The arguments of VolumeBinding.

use std::time::Duration;

use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use super::super::args::{Problems, field};

/// Default of `bindTimeoutSeconds`, in seconds.
const DEFAULT_TIMEOUT: i64 = 600;

/// The arguments of VolumeBinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Args {
    /// Maximum time for binding a pod's volumes, counted from the decision.
    pub(super) bind_timeout: Duration,
}

impl Args {
    /// Parses the arguments. Fails with every problem found. Refuses `shape`, like kube-scheduler without feature gate
    /// StorageCapacityScoring, because it would have no effect.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut seconds = DEFAULT_TIMEOUT;
        if let Some(fields) = problems.object("", args, &["bindTimeoutSeconds", "shape"]) {
            let given = field(fields, "bindTimeoutSeconds");
            seconds = problems.integer("bindTimeoutSeconds", given).unwrap_or(DEFAULT_TIMEOUT);
            if seconds < 0 {
                problems.add("bindTimeoutSeconds", "must not be negative", given);
            }
            let shape = field(fields, "shape");
            if !shape.is_null() {
                problems.add("shape", "must not be given: nodes are not scored by storage capacity", shape);
            }
        }
        let bind_timeout = Duration::from_secs(seconds.unsigned_abs());
        problems.into_result().map(|()| Self { bind_timeout })
    }

    /// Returns the arguments in the form of the configuration file.
    pub(super) fn show(self) -> Value {
        json!({"bindTimeoutSeconds": self.bind_timeout.as_secs()})
    }
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "bindTimeoutSeconds": {"type": "integer", "minimum": 0, "default": DEFAULT_TIMEOUT},
            "shape": {"type": "null", "description": "Needs scoring by storage capacity, which there is not"},
        },
    })
}
