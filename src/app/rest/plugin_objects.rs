//! Reads objects of plugins' kinds, and of kinds that the scheduler itself reads and a plugin decides by, in a question of
//! `POST /apis/v1/simulate`. Every error names the field and its value.

use std::sync::Arc;

use pellucid_api::rest::simulate::ObjectOf;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_http::ReadError;
use pellucid_kubernetes::decode::Decoder;
use pellucid_kubernetes::kinds::Kind;
use pellucid_model::gang::GangProblem;
use pellucid_model::{CustomKindRef, Name, Object, ObjectKind};
use serde_json::Value;

use crate::rest::names::{invalid, namespace, object_name, shown};
use crate::rest::question::{names, unreadable, with_namespace};

/// The kinds that the scheduler itself reads and of which a simulation may change objects. None has a namespace.
const KNOWN: [ObjectKind; 2] = [ObjectKind::QueueIncubator, ObjectKind::QueueSigsDev];

/// Reads a manifest of a kind that an enabled plugin brings, or of one of the known ones.
pub(super) fn applied(decoder: &Decoder, manifest: &Value, field: &str) -> Result<Edit, ReadError> {
    let text = |of: &str| manifest.get(of).and_then(Value::as_str).unwrap_or_default();
    let (word, version) = (text("kind"), text("apiVersion"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    if let Some(kind) = KNOWN.into_iter().find(|kind| kind.as_str() == format!("{word}.{group}")) {
        return known(decoder, kind, manifest, field);
    }
    let of_group = |kind: &CustomKindRef| !group.is_empty() && group == kind.0.group;
    let kind = decoder.kinds().iter().copied().find(|kind| kind.0.kind == word && of_group(kind));
    let kind =
        kind.ok_or_else(|| unknown(decoder, &format!("{field}.kind"), &format!("{version} {word}")))?;
    has_version(version, kind.0.group, kind.0.version, field)?;
    let manifest = match kind.0.is_namespaced {
        true => with_namespace(manifest, field, kind.0.kind)?,
        false => manifest.clone(),
    };
    let mut object = decoder.custom(kind, &manifest).map_err(|q| unreadable(field, &q))?;
    if kind.0.is_namespaced {
        names(&manifest, field)?;
    } else {
        no_namespace(kind.0.kind, &object.namespace, &format!("{field}.metadata.namespace"))?;
        object_name(&object.name, &format!("{field}.metadata.name"))?;
    }
    // Objects of equal versions count as equal, and an edited copy of an object still has its version.
    object.resource_version = "".into();
    Ok(Edit::ApplyCustom(Arc::new(object)))
}

/// Reads a manifest of a kind that the scheduler itself reads.
fn known(decoder: &Decoder, kind: ObjectKind, manifest: &Value, field: &str) -> Result<Edit, ReadError> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let of = Kind::Object(kind).resource();
    has_version(text("/apiVersion"), of.group, of.version, field)?;
    no_namespace(text("/kind"), text("/metadata/namespace"), &format!("{field}.metadata.namespace"))?;
    object_name(text("/metadata/name"), &format!("{field}.metadata.name"))?;
    let object = decoder.object(kind, manifest).map_err(|q| unreadable(field, &q))?;
    if let Object::QueueIncubator(queue) | Object::QueueSigsDev(queue) = &object
        && let Some(GangProblem { field: of, value, problem, .. }) = queue.problems.first()
    {
        return Err(invalid(&format!("{field}.{of}"), &format!("{}: {problem}", shown(value))));
    }
    Ok(Edit::ApplyObject(Arc::new(object)))
}

fn has_version(found: &str, group: &str, version: &str, field: &str) -> Result<(), ReadError> {
    let known = format!("{group}/{version}");
    if found == known {
        return Ok(());
    }
    Err(invalid(&format!("{field}.apiVersion"), &format!("want {known}, found {}", shown(found))))
}

/// Reads the reference to a deleted object.
pub(super) fn deleted(decoder: &Decoder, object: &ObjectOf, field: &str) -> Result<Edit, ReadError> {
    if let Some(kind) = KNOWN.into_iter().find(|kind| kind.as_str() == object.kind) {
        let of = object.namespace.as_deref().unwrap_or_default();
        no_namespace(&object.kind, of, &format!("{field}.namespace"))?;
        object_name(&object.name, &format!("{field}.name"))?;
        return Ok(Edit::DeleteObject(kind, (Name::default(), Name::new(&object.name))));
    }
    let of_word = |kind: &&CustomKindRef| kind.0.qualified == object.kind || kind.0.kind == object.kind;
    let kind = match decoder.kinds().iter().filter(of_word).collect::<Vec<_>>().as_slice() {
        [only] => **only,
        _ => return Err(unknown(decoder, &format!("{field}.kind"), &object.kind)),
    };
    let at = format!("{field}.namespace");
    let of = match (kind.0.is_namespaced, object.namespace.as_deref().unwrap_or_default()) {
        (false, of) => {
            no_namespace(kind.0.kind, of, &at)?;
            Name::default()
        }
        (true, "") => Name::new("default"),
        (true, of) => {
            namespace(of, &at)?;
            Name::new(of)
        }
    };
    object_name(&object.name, &format!("{field}.name"))?;
    Ok(Edit::DeleteCustom(kind, (of, Name::new(&object.name))))
}

fn no_namespace(kind: &str, of: &str, field: &str) -> Result<(), ReadError> {
    if of.is_empty() {
        return Ok(());
    }
    Err(invalid(field, &format!("{} given, and a {kind} has no namespace", shown(of))))
}

/// Returns the error for a kind that no enabled plugin brings, or that several bring.
fn unknown(decoder: &Decoder, field: &str, given: &str) -> ReadError {
    let of_plugins = decoder.kinds().iter().map(|kind| kind.0.qualified);
    let known: Vec<&str> = of_plugins.chain(KNOWN.map(ObjectKind::as_str)).collect();
    let known = known.join(", ");
    invalid(
        field,
        &format!(
            "{} is not a kind that an enabled plugin brings or decides by; kinds are {known}",
            shown(given)
        ),
    )
}
