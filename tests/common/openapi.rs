//! Checks bodies against an OpenAPI document. Used by every test that talks to one of our servers.

use serde_json::{Value, json};

/// Panics unless the document describes this JSON body for this status of `GET path`.
///
/// `path` is either a template of the document (`/nodes/{nodeName}`) or a concrete path (`/nodes/n1`).
#[track_caller]
pub(crate) fn check_body_against_openapi(openapi: &Value, path: &str, status: u16, body: &Value) {
    if let Err(problem) = body_fits_openapi(openapi, path, status, body) {
        panic!("GET {path} ({status}): {problem}\n{body:#}");
    }
}

/// Returns how a body deviates from the document, as an error.
pub(crate) fn body_fits_openapi(
    openapi: &Value,
    path: &str,
    status: u16,
    body: &Value,
) -> Result<(), String> {
    let template = template_of(openapi, path).ok_or("the document does not describe this path")?;
    let responses = &openapi["paths"][&template]["get"]["responses"];
    let schema = &responses[status.to_string()]["content"]["application/json"]["schema"];
    if schema.is_null() {
        return Err("the document does not describe a JSON body for this status".to_owned());
    }
    let root = json!({"allOf": [schema], "components": openapi["components"]});
    let validator = jsonschema::draft202012::new(&root).map_err(|error| format!("a bad schema: {error}"))?;
    let errors: Vec<String> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if errors.is_empty() { Ok(()) } else { Err(format!("the body does not fit its schema: {errors:#?}")) }
}

fn template_of(openapi: &Value, path: &str) -> Option<String> {
    let path = path.split('?').next().unwrap_or_default();
    let templates = openapi["paths"].as_object()?;
    if templates.contains_key(path) {
        return Some(path.to_owned());
    }
    let fits = |template: &&String| {
        let (pattern, given): (Vec<&str>, Vec<&str>) =
            (template.split('/').collect(), path.split('/').collect());
        pattern.len() == given.len()
            && pattern.iter().zip(given).all(|(pattern, given)| pattern.starts_with('{') || *pattern == given)
    };
    // Of several templates that fit, the server routes to the one with the fewest parameters.
    templates.keys().filter(fits).min_by_key(|template| template.matches('{').count()).cloned()
}
