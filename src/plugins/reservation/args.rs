//! The arguments of Reservation (`ReservationArgs`), with Koordinator's names and defaults.

use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use super::object::Reservation;
use pellucid_framework::args::{Problems, field};

/// The arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReservationArgs {
    /// Seconds after its end at which a reservation is deleted.
    gc_seconds: i64,
    /// Whether reservations that have ended are deleted.
    collects: bool,
    /// Whether reservations of lower priority are evicted for pods.
    pub(super) is_preemptible: bool,
}

impl Default for ReservationArgs {
    fn default() -> Self {
        Self { gc_seconds: 86_400, collects: true, is_preemptible: false }
    }
}

const GC_SECONDS: &str = "gcDurationSeconds";
const NO_GC: &str = "disableGarbageCollection";
const PREEMPTION: &str = "enablePreemption";

impl ReservationArgs {
    /// Parses the arguments. Fails with every problem found, not only the first.
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let mut made = Self::default();
        if let Some(fields) = problems.object("", args, &[GC_SECONDS, NO_GC, PREEMPTION]) {
            match field(fields, GC_SECONDS) {
                Value::Null => {}
                value => match value.as_i64().filter(|seconds| *seconds > 0) {
                    Some(seconds) => made.gc_seconds = seconds,
                    None => problems.add(GC_SECONDS, "must be a number of seconds above 0", value),
                },
            }
            match field(fields, NO_GC) {
                Value::Null => {}
                Value::Bool(is_off) => made.collects = !is_off,
                value => problems.add(NO_GC, "must be true or false", value),
            }
            match field(fields, PREEMPTION) {
                Value::Null => {}
                Value::Bool(is_on) => made.is_preemptible = *is_on,
                value => problems.add(PREEMPTION, "must be true or false", value),
            }
        }
        problems.into_result().map(|()| made)
    }

    /// Returns the arguments as a configuration has them.
    pub(super) fn show(&self) -> Value {
        json!({GC_SECONDS: self.gc_seconds, NO_GC: !self.collects, PREEMPTION: self.is_preemptible})
    }

    /// Returns when a reservation that has ended is deleted, in seconds since 1970.
    pub(super) fn deleted_at(&self, spec: &Reservation) -> Option<i64> {
        self.collects.then(|| spec.ended_at().saturating_add(self.gc_seconds))
    }
}

/// Returns the JSON schema of the arguments.
pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            GC_SECONDS: {
                "type": "integer",
                "minimum": 1,
                "default": 86_400,
                "description": "Seconds after its end at which a reservation is deleted.",
            },
            NO_GC: {
                "type": "boolean",
                "default": false,
                "description": "Keeps reservations that have ended.",
            },
            PREEMPTION: {
                "type": "boolean",
                "default": false,
                "description": "Evicts reservations for pods of higher priority, as pods are.",
            },
        },
    })
}
