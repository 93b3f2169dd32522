//! Decodes request bodies from JSON or YAML, with the errors of a real server.
//!
//! Kubernetes' protobuf encoding is not supported: clients that always use it (`kubectl create deployment`) get a 415.
//! `kubectl apply` and kube-rs send JSON.

use serde_json::{Value, json};

use crate::errors::{ApiError, ApiResult};
use crate::kinds::registry::Kind;
use crate::requests::patch::PatchKind;

/// Decodes an object of a kind, for POST and PUT.
pub(crate) fn object(kind: &Kind, content_type: &str, bytes: &[u8]) -> ApiResult<Value> {
    let object = any(content_type, bytes, &kind.kind)?;
    let (given, version) = (object["kind"].as_str(), object["apiVersion"].as_str());
    if let Some(given) = given.filter(|given| *given != kind.kind) {
        let version = version.unwrap_or_default();
        let package = version.rsplit('/').next().unwrap_or_default();
        let internal = kind.group.split('.').next().filter(|g| !g.is_empty()).unwrap_or("core");
        let wanted = &kind.kind;
        return Err(ApiError::bad_request(format!(
            "{given} in version \"{version}\" cannot be handled as a {wanted}: converting ({package}.{given}) to \
             ({internal}.{wanted}): unknown conversion"
        )));
    }
    if let Some(version) = version.filter(|version| **version != kind.api_version()) {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            kind.api_version()
        )));
    }
    if given.is_none() && kind.is_custom() {
        return Err(ApiError::bad_request(format!(
            "Object 'Kind' is missing in '{}'",
            String::from_utf8_lossy(bytes)
        )));
    }
    Ok(object)
}

/// Decodes any object; `wanted` is its kind in an error.
pub(crate) fn any(content_type: &str, bytes: &[u8], wanted: &str) -> ApiResult<Value> {
    match content_type {
        "" | "application/json" | "*/*" => {}
        "application/yaml" | "application/x-yaml" | "text/yaml" => return yaml(bytes),
        _ => return Err(ApiError::media_type_not_accepted("application/json, application/yaml")),
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(bytes);
        let why = if error.is_eof() { "unexpected end of JSON input".to_owned() } else { error.to_string() };
        let shown: String = text.chars().take(200).collect();
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {wanted}): couldn't get version/kind; json parse \
             error: {why} ({shown})"
        ))
    })
}

/// Decodes a patch.
pub(crate) fn patch(how: PatchKind, bytes: &[u8]) -> ApiResult<Value> {
    if how == PatchKind::Apply {
        return yaml(bytes);
    }
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))
}

/// Decodes delete options; an empty body means none.
pub(crate) fn options(bytes: &[u8]) -> ApiResult<Value> {
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(format!("error decoding delete options: {error}")))
}

/// Decodes YAML, of which JSON is a subset.
fn yaml(bytes: &[u8]) -> ApiResult<Value> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ApiError::bad_request(error.to_string()))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}
