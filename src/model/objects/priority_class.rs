//! PriorityClass (`scheduling.k8s.io/v1`): what the API server's admission takes a new pod's priority from.
//!
//! Decisions read the priority of the pod. The classes are kept for simulated pods, which no admission has seen: without
//! the right to list them everything else works.

use std::sync::Arc;

use crate::custom::CustomKind;
use crate::manifest::{Field, FieldError};
use serde_json::{Value, json};

/// PriorityClasses by name.
pub static PRIORITY_CLASS: CustomKind = CustomKind {
    group: "scheduling.k8s.io",
    version: "v1",
    kind: "PriorityClass",
    plural: "priorityclasses",
    qualified: "PriorityClass.scheduling.k8s.io",
    is_namespaced: false,
    is_required: false,
    is_decisive: false,
    verbs: &[],
    pod: None,
    decode: |manifest| Ok(Arc::new(PriorityClass::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, PriorityClass::manifest),
};

/// A PriorityClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorityClass {
    /// `value`: the priority of its pods.
    pub value: i32,
    /// Whether its pods never preempt others.
    pub never_preempts: bool,
    /// Whether pods that name no class are of this one.
    pub is_default: bool,
}

impl PriorityClass {
    /// Returns a class that every API server has.
    pub fn built_in(name: &str) -> Option<Self> {
        let value = match name {
            "system-cluster-critical" => 2_000_000_000,
            "system-node-critical" => 2_000_001_000,
            _ => return None,
        };
        Some(Self { value, never_preempts: false, is_default: false })
    }

    fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let value = root.get("value")?;
        let number = value.integer()?.unwrap_or(0);
        Ok(Self {
            value: i32::try_from(number).map_err(|_| value.error("not a 32-bit integer"))?,
            never_preempts: root.get("preemptionPolicy")?.text()? == Some("Never"),
            is_default: root.get("globalDefault")?.boolean()?.unwrap_or(false),
        })
    }

    /// Writes the manifest that [`Self::read`] reads alike.
    fn manifest(&self) -> Value {
        let policy = if self.never_preempts { "Never" } else { "PreemptLowerPriority" };
        json!({"value": self.value, "globalDefault": self.is_default, "preemptionPolicy": policy})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_alike() {
        for manifest in [
            json!({"value": 1000, "preemptionPolicy": "Never"}),
            json!({"value": -7, "globalDefault": true}),
            json!({"metadata": {"name": "x"}}),
        ] {
            let class = PriorityClass::read(&manifest).expect("readable");
            assert_eq!(PriorityClass::read(&class.manifest()), Ok(class), "{manifest}");
        }
        let error = PriorityClass::read(&json!({"value": 3_000_000_000_i64})).expect_err("too large");
        assert_eq!(error.field, "value");
    }
}
