//! API calls of `demo` and `replay`, which are ordinary clients of the API server.

use kube::Resource;
use kube::api::{DynamicObject, PostParams, Request};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// Creates an object of any kind.
pub async fn create(client: &kube::Client, object: &Value) -> Result<(), kube::Error> {
    client.request_text(creation(object)?).await.map(|_| ())
}

/// Returns the request that creates an object of any kind.
pub fn creation(object: &Value) -> Result<http::Request<Vec<u8>>, kube::Error> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    let path = DynamicObject::url_path(&resource, namespace);
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    Request::new(path).create(&PostParams::default(), body).map_err(kube::Error::BuildRequest)
}

/// Lists the objects at a path as raw JSON.
pub async fn list(client: &kube::Client, path: &str) -> Result<Vec<Value>, kube::Error> {
    let request = http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    let mut body: Value = client.request(request).await?;
    match body.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

/// Deletes the object at a path without grace. An object that does not exist is no error.
pub async fn delete(client: &kube::Client, path: &str) -> Result<(), kube::Error> {
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0 });
    let request = http::Request::delete(path).header("Content-Type", "application/json");
    let request = request.body(options.to_string().into_bytes()).map_err(kube::Error::HttpError)?;
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}
