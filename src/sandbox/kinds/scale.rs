//! The scale subresource: the replica count of a workload as an object of its own.

use serde_json::{Value, json};

use crate::kinds::meta;
use crate::kinds::printers;

pub(crate) fn show(object: &Value) -> Value {
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        metadata[key] = meta::text(object, key).into();
    }
    let replicas = |part: &str| object[part]["replicas"].as_i64().unwrap_or_default();
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": replicas("spec")},
        "status": {"replicas": replicas("status"), "selector": printers::selector(object)}
    })
}

/// Returns the workload with the replica count of a Scale.
pub(crate) fn apply(object: &Value, scale: &Value) -> Value {
    let mut object = object.clone();
    object["spec"]["replicas"] = scale["spec"]["replicas"].as_i64().unwrap_or_default().into();
    let revision = meta::text(scale, "resourceVersion");
    if !revision.is_empty() {
        object["metadata"]["resourceVersion"] = revision.into();
    }
    object
}
