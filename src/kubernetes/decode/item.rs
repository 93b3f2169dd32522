//! Decodes one object of a list or of a watch event.
//!
//! One deserialiser reads the text of every object, because each wire type is compiled once per deserialiser it is
//! used with. So values that are not text are first serialised, and the frames around objects (lists, watch events)
//! are removed before.

use std::borrow::Cow;
use std::sync::Arc;

use kube::core::Status;
use pellucid_cluster::input::Quarantined;
use pellucid_model::manifest::FieldError;
use pellucid_model::{CustomKindRef, CustomObject, Name, Node, Object, ObjectKind, Pod};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::{self, Body, ObjectBody};
use crate::decode::slim::{self, NodeBody, PodBody};
use crate::decode::slim_objects::{
    AttachmentBody, BudgetBody, CapacityBody, ClaimBody, ClassBody, CsiDriverBody, CsiNodeBody, GroupBody,
    NamedBody, NamespaceBody, PairsBody, SetBody, VolumeBody,
};
use crate::decode::{node, pod, quarantined};
use crate::kind::Kind;

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

impl Item {
    /// Reads the text of an object. Fails when it is no JSON.
    pub(crate) fn read(kind: Kind, text: &[u8]) -> serde_json::Result<Self> {
        Ok(match kind {
            Kind::Pod => pod_item(text)?.map(|pod| Decoded::Pod(Arc::new(pod))),
            Kind::Node => node_item(text)?.map(|node| Decoded::Node(Arc::new(node))),
            Kind::Object(kind) => object_item(kind, text)?.map(|object| Decoded::Object(Arc::new(object))),
            Kind::Custom(kind) => custom_item(kind, text)?.map(|object| Decoded::Custom(Arc::new(object))),
        })
    }
}

impl<T> Item<T> {
    fn map<U>(self, make: impl FnOnce(T) -> U) -> Item<U> {
        let Self { namespace, name, resource_version, object } = self;
        Item { namespace, name, resource_version, object: object.map(make) }
    }
}

/// Implements [`Body`] for types with a field `metadata`.
macro_rules! bodies {
    ($($body:ident),*) => {$(
        impl Body for $body {
            fn meta(&self) -> &Lenient<slim::Meta> {
                &self.metadata
            }
        }
    )*};
}

bodies!(PodBody, NodeBody, NamespaceBody, NamedBody, GroupBody, PairsBody, SetBody, BudgetBody, VolumeBody);
bodies!(ClaimBody, ClassBody, CsiNodeBody, CsiDriverBody, CapacityBody, AttachmentBody);

fn pod_item(text: &[u8]) -> serde_json::Result<Item<Pod>> {
    read::<PodBody, _>(text, pod::pod)
}

fn node_item(text: &[u8]) -> serde_json::Result<Item<Node>> {
    read::<NodeBody, _>(text, node::node)
}

fn object_item(kind: ObjectKind, text: &[u8]) -> serde_json::Result<Item<Object>> {
    match kind {
        ObjectKind::Namespace => of_body::<NamespaceBody>(kind, text),
        ObjectKind::Service | ObjectKind::ReplicationController => of_body::<PairsBody>(kind, text),
        ObjectKind::ReplicaSet | ObjectKind::StatefulSet => of_body::<SetBody>(kind, text),
        ObjectKind::PodDisruptionBudget => of_body::<BudgetBody>(kind, text),
        ObjectKind::PersistentVolume => of_body::<VolumeBody>(kind, text),
        ObjectKind::PersistentVolumeClaim => of_body::<ClaimBody>(kind, text),
        ObjectKind::StorageClass => of_body::<ClassBody>(kind, text),
        ObjectKind::CsiNode => of_body::<CsiNodeBody>(kind, text),
        ObjectKind::CsiDriver => of_body::<CsiDriverBody>(kind, text),
        ObjectKind::CsiStorageCapacity => of_body::<CapacityBody>(kind, text),
        ObjectKind::VolumeAttachment => of_body::<AttachmentBody>(kind, text),
        ObjectKind::PodGroupX
        | ObjectKind::PodGroupSigs
        | ObjectKind::PodGroupIncubator
        | ObjectKind::PodGroupSigsDev
        | ObjectKind::PodGroupNative => of_body::<GroupBody>(kind, text),
        ObjectKind::QueueIncubator | ObjectKind::QueueSigsDev | ObjectKind::WorkloadNative => {
            of_body::<NamedBody>(kind, text)
        }
    }
}

/// Reads an object of a plugin's kind: the identity here, the rest by the plugin.
fn custom_item(kind: CustomKindRef, text: &[u8]) -> serde_json::Result<Item<CustomObject>> {
    let manifest: Value = serde_json::from_slice(text)?;
    read::<NamedBody, _>(text, |body| {
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

fn of_body<B: ObjectBody>(kind: ObjectKind, text: &[u8]) -> serde_json::Result<Item<Object>> {
    read::<B, _>(text, |body| objects::object(kind, body))
}

fn read<B: Body, T>(
    text: &[u8],
    make: impl Fn(&Lenient<B>) -> Result<T, Quarantined>,
) -> serde_json::Result<Item<T>> {
    let body: Lenient<B> = serde_json::from_slice(text)?;
    let meta = body.good().and_then(|body| body.meta().good());
    let word = |field: Option<&Lenient<Arc<str>>>| field.and_then(Lenient::good).cloned();
    Ok(Item {
        namespace: meta.and_then(|m| m.namespace.good()).cloned().unwrap_or_default(),
        name: word(meta.map(|m| &m.name)).unwrap_or_default(),
        resource_version: word(meta.map(|m| &m.resource_version)).unwrap_or_default(),
        object: make(&body),
    })
}

/// One event of a watch.
pub(crate) enum Event {
    /// An object was added or changed.
    Applied(Item),
    /// An object was deleted; this is its last state.
    Deleted(Item),
    /// All changes up to this version were sent.
    Bookmark(String),
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
}

impl Event {
    /// Reads one line of a watch. Fails when it is no JSON, or the event type is unknown.
    pub(crate) fn read(kind: Kind, line: &[u8]) -> serde_json::Result<Self> {
        let Frame { r#type, object } = serde_json::from_slice(line)?;
        let text = object.get().as_bytes();
        match &*r#type {
            "ADDED" | "MODIFIED" => Item::read(kind, text).map(Self::Applied),
            "DELETED" => Item::read(kind, text).map(Self::Deleted),
            "BOOKMARK" => {
                let bookmark: Bookmark = serde_json::from_slice(text)?;
                Ok(Self::Bookmark(bookmark.metadata.resource_version))
            }
            "ERROR" => serde_json::from_slice(text).map(Self::Error),
            other => Err(serde::de::Error::custom(format_args!("an event of the unknown type {other:?}"))),
        }
    }
}

fn from_value<T>(
    kind: &'static str,
    value: &Value,
    read: impl FnOnce(&[u8]) -> serde_json::Result<Item<T>>,
) -> Result<T, Quarantined> {
    let item = serde_json::to_vec(value).and_then(|text| read(&text));
    let unread = |e: serde_json::Error| quarantined(kind, None, None, Fault::new("", "", e.to_string()));
    item.map_err(unread)?.object
}

/// Decodes a Pod manifest. Fails with the field that cannot be read.
pub(super) fn pod_from_value(value: &Value) -> Result<Pod, Quarantined> {
    from_value("Pod", value, pod_item)
}

/// Decodes a Node manifest. Fails with the field that cannot be read.
pub(super) fn node_from_value(value: &Value) -> Result<Node, Quarantined> {
    from_value("Node", value, node_item)
}

/// Decodes a manifest of a plugin's kind. Fails with the field that cannot be read.
pub(super) fn custom_from_value(kind: CustomKindRef, value: &Value) -> Result<CustomObject, Quarantined> {
    from_value(kind.0.qualified, value, |text| custom_item(kind, text))
}

/// Decodes a manifest of another kind. Fails with the field that cannot be read.
pub(super) fn object_from_value(kind: ObjectKind, value: &Value) -> Result<Object, Quarantined> {
    from_value(kind.as_str(), value, |text| object_item(kind, text))
}
