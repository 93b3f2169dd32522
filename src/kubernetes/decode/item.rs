//! Decodes one object of a list or of a watch event: the frame around it and its identity. Its fields are read by the
//! kind (`kinds`).
//!
//! One deserialiser reads the text of every object, because each wire type is compiled once per deserialiser it is
//! used with. So values that are not text are first serialised, and the frames around objects (lists, watch events)
//! are removed before.

use std::borrow::Cow;
use std::sync::Arc;

use kube::core::Status;
use pellucid_cluster::input::Quarantined;
use pellucid_model::{CustomObject, Name, Node, Object, Pod};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::Body;
use crate::decode::quarantined;

/// A decoded object of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Decoded {
    Pod(Arc<Pod>),
    Node(Arc<Node>),
    Object(Arc<Object>),
    Custom(Arc<CustomObject>),
}

/// One decoded object with its identity. Texts that are absent or unreadable are empty.
#[derive(Clone, Debug)]
pub(crate) struct Item<T = Decoded> {
    pub(crate) namespace: Name,
    pub(crate) name: Arc<str>,
    pub(crate) resource_version: Arc<str>,
    /// The object in the model, or the field that cannot be read.
    pub(crate) object: Result<T, Quarantined>,
}

impl<T> Item<T> {
    /// Reads the text of an object; `make` builds the object of the fields that are read. Fails when it is no JSON.
    pub(crate) fn read<B: Body>(
        text: &[u8],
        make: impl Fn(&Lenient<B>) -> Result<T, Quarantined>,
    ) -> serde_json::Result<Self> {
        let body: Lenient<B> = serde_json::from_slice(text)?;
        let meta = body.good().and_then(|body| body.meta().good());
        let word = |field: Option<&Lenient<Arc<str>>>| field.and_then(Lenient::good).cloned();
        Ok(Self {
            namespace: meta.and_then(|m| m.namespace.good()).cloned().unwrap_or_default(),
            name: word(meta.map(|m| &m.name)).unwrap_or_default(),
            resource_version: word(meta.map(|m| &m.resource_version)).unwrap_or_default(),
            object: make(&body),
        })
    }

    /// Changes the object, if it can be read.
    pub(crate) fn map<U>(self, make: impl FnOnce(T) -> U) -> Item<U> {
        let Self { namespace, name, resource_version, object } = self;
        Item { namespace, name, resource_version, object: object.map(make) }
    }
}

/// One event of a watch.
pub(crate) enum Event {
    /// An object was added or changed.
    Applied(Item),
    /// An object was deleted; this is its last state.
    Deleted(Item),
    /// All changes up to this version were sent.
    Bookmark {
        /// The version.
        version: String,
        /// Whether the objects with which the watch began are complete.
        ends_initial: bool,
    },
    /// The watch failed and ends.
    Error(Box<Status>),
}

/// A watch event before its object is decoded.
#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: BookmarkAnnotations,
}

#[derive(Default, Deserialize)]
struct BookmarkAnnotations {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_events_end: String,
}

impl Event {
    /// Reads one line of a watch; `item` reads the text of an object. Fails when it is no JSON, or the event type is
    /// unknown.
    pub(crate) fn read(
        line: &[u8],
        item: impl FnOnce(&[u8]) -> serde_json::Result<Item>,
    ) -> serde_json::Result<Self> {
        let Frame { r#type, object } = serde_json::from_slice(line)?;
        let text = object.get().as_bytes();
        match &*r#type {
            "ADDED" | "MODIFIED" => item(text).map(Self::Applied),
            "DELETED" => item(text).map(Self::Deleted),
            "BOOKMARK" => {
                let BookmarkMeta { resource_version, annotations } =
                    serde_json::from_slice::<Bookmark>(text)?.metadata;
                let ends_initial = annotations.initial_events_end == "true";
                Ok(Self::Bookmark { version: resource_version, ends_initial })
            }
            "ERROR" => serde_json::from_slice(text).map(Self::Error),
            other => Err(serde::de::Error::custom(format_args!("an event of the unknown type {other:?}"))),
        }
    }
}

/// Decodes a manifest of a kind with this name; `read` reads its text. Fails with the field that cannot be read.
pub(crate) fn from_manifest<T>(
    kind: &'static str,
    manifest: &Value,
    read: impl FnOnce(&[u8]) -> serde_json::Result<Item<T>>,
) -> Result<T, Quarantined> {
    let item = serde_json::to_vec(manifest).and_then(|text| read(&text));
    let response_budget =
        |e: serde_json::Error| quarantined(kind, None, None, Fault::new("", "", e.to_string()));
    item.map_err(response_budget)?.object
}
