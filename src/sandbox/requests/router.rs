//! Parses request paths.
//!
//! The paths are regular, so they are parsed by hand: `/api/v1/…` and `/apis/{group}/{version}/…`, followed by
//! `[namespaces/{namespace}/]{resource}[/{name}[/{subresource}]]`.

use std::sync::Arc;

use crate::kinds::registry::{Kind, Registry};
use crate::options::decode;
use crate::store::Key;

/// What a path refers to.
pub(crate) enum Route {
    /// `/version`.
    Version,
    /// `/readyz`, `/livez`, `/healthz`.
    Health,
    /// `/openapi/v2`.
    OpenApi,
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/v1` and `/apis/{group}/{version}`.
    Resources(String, String),
    /// A collection, one object, or a subresource.
    Objects(Target),
    /// A resource that the group and version do not serve.
    UnknownResource,
    /// No known path.
    Unknown,
}

/// The objects that a path refers to.
pub(crate) struct Target {
    pub kind: Arc<Kind>,
    /// The namespace, empty for all namespaces or a cluster-scoped object, and the name, empty for a collection.
    pub key: Key,
    /// The subresource, empty for the object itself.
    pub subresource: String,
}

/// Parses a path. Only served kinds are found.
pub(crate) fn route(kinds: &Registry, path: &str) -> Route {
    let segments: Vec<String> = path.split('/').filter(|s| !s.is_empty()).map(decode).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["version"] => Route::Version,
        ["readyz" | "livez" | "healthz", ..] => Route::Health,
        ["openapi", "v2"] => Route::OpenApi,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["api", version] => Route::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Route::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => objects(kinds, "", version, rest),
        ["apis", group, version, rest @ ..] => objects(kinds, group, version, rest),
        _ => Route::Unknown,
    }
}

fn objects(kinds: &Registry, group: &str, version: &str, rest: &[&str]) -> Route {
    if !kinds.serves(group, version) {
        return Route::Unknown;
    }
    let (namespace, rest) = match rest {
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        _ => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::UnknownResource,
    };
    let Some(kind) = kinds.find(group, version, plural) else { return Route::UnknownResource };
    let is_misplaced = !namespace.is_empty() && !kind.namespaced
        || !name.is_empty() && namespace.is_empty() && kind.namespaced;
    if is_misplaced || (!subresource.is_empty() && kind.subresource(subresource).is_none()) {
        return Route::UnknownResource;
    }
    Route::Objects(Target {
        kind: kind.clone(),
        key: (namespace.into(), name.into()),
        subresource: subresource.to_owned(),
    })
}
