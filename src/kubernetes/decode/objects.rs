//! The kinds beside Pods and Nodes: what is common to their readers.

use pellucid_cluster::input::Quarantined;
use pellucid_model::{Object, ObjectKind};

use super::lenient::{Fault, Lenient, Shape};
use super::{quarantined, slim};

/// What is read of a kind (or of two that look alike), and how an object is made of it.
pub(super) trait ObjectBody: Shape {
    /// Returns `metadata`.
    fn meta(&self) -> &Lenient<slim::Meta>;
    /// Makes an object of this kind.
    fn object(&self, kind: ObjectKind, meta: &slim::Meta) -> Result<Object, Fault>;
}

/// Decodes an object of a kind.
pub(super) fn object<B: ObjectBody>(kind: ObjectKind, body: &Lenient<B>) -> Result<Object, Quarantined> {
    let read = || {
        let Some(body) = body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
        let no_meta = slim::Meta::default();
        body.object(kind, body.meta().read("metadata")?.unwrap_or(&no_meta))
    };
    read().map_err(|fault| {
        let meta = body.good().and_then(|body| body.meta().good());
        quarantined(kind.as_str(), meta, None, fault)
    })
}
