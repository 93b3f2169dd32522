//! Reads objects of kinds that plugins bring: the identity here, the rest by the plugin.

use std::sync::Arc;

use pellucid_model::manifest::FieldError;
use pellucid_model::{CustomKindRef, CustomObject, Name};
use serde_json::Value;

use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::Body;
use crate::decode::wire::NamedBody;
use crate::decode::{Item, quarantined};

/// Reads the text of an object of a plugin's kind. Fails when it is no JSON.
pub(crate) fn read(kind: CustomKindRef, text: &[u8]) -> serde_json::Result<Item<CustomObject>> {
    let manifest: Value = serde_json::from_slice(text)?;
    Item::read(text, |body: &Lenient<NamedBody>| {
        let meta = body.good().and_then(|body| body.meta().good());
        let own = (kind.0.decode)(&manifest);
        let fault = |e: FieldError| {
            quarantined(kind.0.qualified, meta, None, Fault::new(&e.field, &e.value, e.problem))
        };
        let value = own.map_err(fault)?;
        let word = |field: Option<&Lenient<Arc<str>>>| field.and_then(Lenient::good).cloned();
        let text = |field| word(field).unwrap_or_default();
        Ok(CustomObject {
            kind,
            namespace: meta.and_then(|m| m.namespace.good()).cloned().unwrap_or_default(),
            name: Name::new(&text(meta.map(|m| &m.name))),
            uid: text(meta.map(|m| &m.uid)),
            resource_version: text(meta.map(|m| &m.resource_version)),
            value,
        })
    })
}
