//! Reads objects of plugins' kinds in a question of `POST /apis/v1/simulate`. Every error names the field and its
//! value.

use std::sync::Arc;

use pellucid_api::rest::simulate::ObjectOf;
use pellucid_cycle::what_if::edit::Edit;
use pellucid_http::ReadError;
use pellucid_kubernetes::decode::Decoder;
use pellucid_model::{CustomKindRef, Name};
use serde_json::Value;

use crate::rest::names::{invalid, namespace, object_name, shown};
use crate::rest::question::{names, unreadable, with_namespace};

/// Reads a manifest of a kind that an enabled plugin brings.
pub(super) fn applied(decoder: &Decoder, manifest: &Value, field: &str) -> Result<Edit, ReadError> {
    let text = |of: &str| manifest.get(of).and_then(Value::as_str).unwrap_or_default();
    let (word, version) = (text("kind"), text("apiVersion"));
    let of_group = |kind: &CustomKindRef| version.split_once('/').is_some_and(|(of, _)| of == kind.0.group);
    let kind = decoder.kinds().iter().copied().find(|kind| kind.0.kind == word && of_group(kind));
    let kind =
        kind.ok_or_else(|| unknown(decoder, &format!("{field}.kind"), &format!("{version} {word}")))?;
    let known = format!("{}/{}", kind.0.group, kind.0.version);
    if version != known {
        return Err(invalid(
            &format!("{field}.apiVersion"),
            &format!("want {known}, found {}", shown(version)),
        ));
    }
    let manifest = match kind.0.is_namespaced {
        true => with_namespace(manifest, field, kind.0.kind)?,
        false => manifest.clone(),
    };
    let mut object = decoder.custom(kind, &manifest).map_err(|q| unreadable(field, &q))?;
    if kind.0.is_namespaced {
        names(&manifest, field)?;
    } else {
        no_namespace(kind, &object.namespace, &format!("{field}.metadata.namespace"))?;
        object_name(&object.name, &format!("{field}.metadata.name"))?;
    }
    // Objects of equal versions count as equal, and an edited copy of an object still has its version.
    object.resource_version = "".into();
    Ok(Edit::ApplyCustom(Arc::new(object)))
}

/// Reads the reference to a deleted object of a plugin's kind.
pub(super) fn deleted(decoder: &Decoder, object: &ObjectOf, field: &str) -> Result<Edit, ReadError> {
    let of_word = |kind: &&CustomKindRef| kind.0.qualified == object.kind || kind.0.kind == object.kind;
    let kind = match decoder.kinds().iter().filter(of_word).collect::<Vec<_>>().as_slice() {
        [only] => **only,
        _ => return Err(unknown(decoder, &format!("{field}.kind"), &object.kind)),
    };
    let at = format!("{field}.namespace");
    let of = match (kind.0.is_namespaced, object.namespace.as_deref().unwrap_or_default()) {
        (false, of) => {
            no_namespace(kind, of, &at)?;
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

fn no_namespace(kind: CustomKindRef, of: &str, field: &str) -> Result<(), ReadError> {
    if of.is_empty() {
        return Ok(());
    }
    Err(invalid(field, &format!("{} given, and a {} has no namespace", shown(of), kind.0.kind)))
}

/// Returns the error for a kind that no enabled plugin brings, or that several bring.
fn unknown(decoder: &Decoder, field: &str, given: &str) -> ReadError {
    let known: Vec<&str> = decoder.kinds().iter().map(|kind| kind.0.qualified).collect();
    let known = match known.is_empty() {
        true => "none, for no enabled plugin brings one".to_owned(),
        false => known.join(", "),
    };
    invalid(
        field,
        &format!("{} is not a kind that an enabled plugin brings; kinds are {known}", shown(given)),
    )
}
