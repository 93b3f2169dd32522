//! The scale subresource: the replica count of a workload as an object of its own.

use serde_json::{Value, json};

use crate::errors::ApiResult;
use crate::kinds::meta;

/// Returns the Scale of a workload.
pub(crate) fn show(object: &Value) -> Value {
    let selector = &object["spec"]["selector"];
    // The selector of a ReplicationController is the map of labels itself.
    let labels = selector.get("matchLabels").unwrap_or(selector).as_object().into_iter().flatten();
    let selector: Vec<String> = labels.filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?))).collect();
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        metadata[key] = meta::text(object, key).into();
    }
    let replicas = |part: &str| object[part]["replicas"].as_i64().unwrap_or_default();
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": replicas("spec")},
        "status": {"replicas": replicas("status"), "selector": selector.join(",")}
    })
}

/// Returns the workload with the replica count of a Scale.
pub(crate) fn apply(object: &Value, scale: &Value) -> ApiResult<Value> {
    let mut object = object.clone();
    object["spec"]["replicas"] = scale["spec"]["replicas"].as_i64().unwrap_or_default().into();
    let revision = meta::text(scale, "resourceVersion");
    if !revision.is_empty() {
        object["metadata"]["resourceVersion"] = revision.into();
    }
    Ok(object)
}
