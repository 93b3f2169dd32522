//! Renders objects as bytes: in full, as metadata only, as tables, in lists and in watch events.
//!
//! The full form is assembled from the bytes in the store; the other forms parse the object.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::events;
use crate::kinds::registry::{Form, Kind};
use crate::options::View;
use crate::requests::table;
use crate::store::Object;

/// Renders objects for one request.
pub(crate) struct Renderer<'a> {
    /// The kind that the client requested.
    pub kind: &'a Kind,
    /// The form that the client requested.
    pub view: View,
    /// The query parameter `includeObject`, for tables.
    pub include_object: &'a str,
    /// The current time, for ages.
    pub now: Timestamp,
    prefix: String,
}

impl<'a> Renderer<'a> {
    /// Creates a renderer for objects of a kind.
    pub(crate) fn new(kind: &'a Kind, view: View, include_object: &'a str, now: Timestamp) -> Self {
        Self { kind, view, include_object, now, prefix: kind.prefix() }
    }

    /// Returns an object in the requested form.
    pub(crate) fn object(&self, object: &Object) -> Bytes {
        let mut out = BytesMut::with_capacity(object.body.len() + 96);
        self.write(object, &mut out);
        out.freeze()
    }

    /// Appends an object in the requested form.
    pub(crate) fn write(&self, object: &Object, out: &mut BytesMut) {
        match (self.view, self.kind.form) {
            (View::Full, Form::Plain) => {
                out.put_slice(self.prefix.as_bytes());
                out.put_slice(object.body.get(1..).unwrap_or(b"}"));
            }
            (View::Full, Form::Event) => {
                let mut value = object.value();
                events::show(&mut value);
                out.put_slice(&to_bytes(&self.kind.typed(value)));
            }
            (View::Metadata, _) => out.put_slice(&to_bytes(&table::partial(&object.value()))),
            (View::Table, _) => {
                let row = table::row(self.kind, &object.value(), self.include_object, self.now);
                let metadata = json!({"resourceVersion": object.revision.to_string()});
                out.put_slice(&to_bytes(&table::table(self.kind, metadata, vec![row])));
            }
        }
    }

    /// Returns a list in the requested form.
    pub(crate) fn list(&self, items: &[Arc<Object>], metadata: Value) -> Bytes {
        if self.view == View::Table {
            let row =
                |object: &Arc<Object>| table::row(self.kind, &object.value(), self.include_object, self.now);
            return to_bytes(&table::table(self.kind, metadata, items.iter().map(row).collect()));
        }
        let (kind, version) = match self.view {
            View::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (format!("{}List", self.kind.kind), self.kind.api_version()),
        };
        let mut out = BytesMut::with_capacity(4096);
        let head =
            format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"items\":[");
        out.put_slice(head.as_bytes());
        for (index, object) in items.iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            let is_bare = self.view == View::Full && self.kind.form == Form::Plain && !self.kind.is_custom();
            if is_bare {
                out.put_slice(&object.body);
            } else {
                self.write(object, &mut out);
            }
        }
        out.put_slice(b"]}");
        out.freeze()
    }

    /// Appends a line of a watch.
    pub(crate) fn line(&self, change: &str, object: &Object, out: &mut BytesMut) {
        out.put_slice(b"{\"type\":\"");
        out.put_slice(change.as_bytes());
        out.put_slice(b"\",\"object\":");
        self.write(object, out);
        out.put_slice(b"}\n");
    }

    /// Appends a line of a watch with the given bytes as its object.
    pub(crate) fn raw_line(change: &str, object: &[u8], out: &mut BytesMut) {
        out.put_slice(b"{\"type\":\"");
        out.put_slice(change.as_bytes());
        out.put_slice(b"\",\"object\":");
        out.put_slice(object);
        out.put_slice(b"}\n");
    }

    /// Appends a bookmark line.
    pub(crate) fn bookmark(&self, revision: u64, is_initial_end: bool, out: &mut BytesMut) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if is_initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.view {
            View::Metadata => table::partial(&json!({"metadata": metadata})),
            View::Table => table::table(self.kind, metadata, Vec::new()),
            View::Full => {
                let mut object = self.kind.typed(self.kind.empty.clone());
                object["metadata"] = metadata;
                object
            }
        };
        Self::raw_line("BOOKMARK", &to_bytes(&object), out);
    }
}

/// Serialises a value.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Returns the size of a value as JSON, in bytes.
pub(crate) fn json_size(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A JSON value always serialises, and this writer never fails.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
