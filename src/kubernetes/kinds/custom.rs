//! Reads objects of kinds that plugins bring: the identity here, the rest by the plugin.

use std::sync::Arc;

use pellucid_model::custom::{CustomKind, StandIn};
use pellucid_model::manifest::FieldError;
use pellucid_model::pod::StandsFor;
use pellucid_model::{CustomKindRef, CustomObject, Name};
use serde_json::Value;

use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::Body;
use crate::decode::wire::NamedBody;
use crate::decode::{Item, from_manifest, quarantined};
use crate::kinds::pod::POD;

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
        let namespace = meta.and_then(|m| m.namespace.good()).cloned().unwrap_or_default();
        let name = Name::new(&text(meta.map(|m| &m.name)));
        let stand_in = |make: fn(&Value) -> Value| stand_in(kind, (&namespace, &name), &make(&manifest));
        let pod = kind.0.pod.map(stand_in);
        Ok(CustomObject {
            kind,
            namespace,
            name,
            uid: text(meta.map(|m| &m.uid)),
            resource_version: text(meta.map(|m| &m.resource_version)),
            value,
            pod,
        })
    })
}

/// Reads the pod that stands for an object.
fn stand_in(kind: CustomKindRef, (namespace, name): (&Name, &Name), manifest: &Value) -> StandIn {
    let read = from_manifest("Pod", manifest, POD.read);
    let mut pod = read.map_err(|q| Arc::from(format!("{}: {} ({})", q.field, q.problem, q.value)))?;
    let CustomKind { group, version, kind, .. } = kind.0;
    pod.stands_for = Some(Arc::new(StandsFor {
        api_version: Name::new(&format!("{group}/{version}")),
        kind: Name::new(kind),
        namespace: namespace.clone(),
        name: name.clone(),
    }));
    Ok(Arc::new(pod))
}
