//! The shared part of decoding kinds other than Pods and Nodes. The readers are in `workloads`, `storage`,
//! `persistent_volume` and `gangs`.

use pellucid_cluster::input::Quarantined;
use pellucid_model::{Object, ObjectKind};

use crate::decode::lenient::{Fault, Lenient, Shape};
use crate::decode::{quarantined, slim};

/// The fields that are read of a kind, or of several kinds with the same shape.
pub(super) trait Body: Shape {
    /// Returns `metadata`.
    fn meta(&self) -> &Lenient<slim::Meta>;
}

/// The fields that are read of a kind other than Pods and Nodes.
pub(super) trait ObjectBody: Body {
    /// Builds an object of this kind. Fails with the first field that cannot be read.
    fn object(&self, kind: ObjectKind, meta: &slim::Meta) -> Result<Object, Fault>;
}

/// Decodes an object of a kind. Fails with its identity and the first field that cannot be read.
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
