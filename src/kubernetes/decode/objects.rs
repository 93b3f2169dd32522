//! The shared part of decoding: the identity of objects, and what all kinds other than Pods and Nodes have in common.
//! The fields of each kind are in `kinds`.

use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{name, required};
use crate::decode::item::Item;
use crate::decode::lenient::{Fault, Lenient, Shape};
use crate::decode::wire::NamedBody;
use crate::decode::{quarantined, wire};

/// The fields that are read of a kind, or of several kinds with the same shape.
pub(crate) trait Body: Shape {
    /// Returns `metadata`.
    fn meta(&self) -> &Lenient<wire::Meta>;
}

/// Implements [`Body`] for types with a field `metadata`.
macro_rules! bodies {
    ($($body:ident),*) => {$(
        impl $crate::decode::objects::Body for $body {
            fn meta(&self) -> &$crate::decode::lenient::Lenient<$crate::decode::wire::Meta> {
                &self.metadata
            }
        }
    )*};
}
pub(crate) use bodies;

bodies!(NamedBody);

/// Reads the text of an object of a kind other than Pods and Nodes; `make` builds it of its fields and `metadata`, or
/// returns the first field that cannot be read. Fails when the text is no JSON.
pub(crate) fn object<B: Body>(
    kind: ObjectKind,
    text: &[u8],
    make: impl Fn(&B, &wire::Meta) -> Result<Object, Fault>,
) -> serde_json::Result<Item<Object>> {
    Item::read(text, |body: &Lenient<B>| {
        let read = || {
            let Some(body) = body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
            let no_meta = wire::Meta::default();
            make(body, body.meta().read("metadata")?.unwrap_or(&no_meta))
        };
        read().map_err(|fault| {
            let meta = body.good().and_then(|body| body.meta().good());
            quarantined(kind.as_str(), meta, None, fault)
        })
    })
}

/// Reads `metadata.name`. Faults lack the prefix `metadata`.
pub(crate) fn own_name(meta: &wire::Meta) -> Result<Name, Fault> {
    required(&meta.name, "name").map(|name| Name::new(&name))
}

/// Reads namespace and name of an object; the namespace is empty for cluster-wide kinds. Faults have the whole path.
pub(crate) fn own_key(meta: &wire::Meta) -> Result<(Name, Name), Fault> {
    let read = || Ok((name(&meta.namespace, "namespace")?, own_name(meta)?));
    read().map_err(|f: Fault| f.under("metadata"))
}
