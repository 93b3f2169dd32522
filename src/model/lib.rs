//! Kubernetes objects as the scheduler sees them: compact, with integer amounts, without wire types.
//!
//! PURE. This crate knows neither the wire format of an object (`kubernetes::decode` does) nor the contents of the
//! cluster (`cluster` has them). Start at [`pod::Pod`] and [`node::Node`]. In reading order:
//!
//! - [`name`], [`naming`], [`collections`], [`time`], [`duration`]: interned names, valid names, maps, clocks;
//! - [`named!`]: enums whose variants have names;
//! - [`quantity`], [`requests`]: amounts of resources, and what pods request;
//! - [`selector`], `selector_text`, [`taint`], [`relations`], [`storage`]: what decides where a pod fits;
//! - [`pod`], [`node`], [`object`], [`custom`]: the objects, and those of kinds that plugins bring;
//! - [`manifest`]: reading the fields of such an object;
//! - [`gang`], [`group_status`]: gangs as declared, and the status of PodGroups;
//! - [`cause`], [`effect`], [`merge_patch`]: why a node was refused, and the writes that a decision orders;
//! - [`pages`], [`cow_map`], [`cow_index`], `mirror`, `published`: containers that are cheap to publish;
//! - [`cancellation`], [`stable_hash`], [`escape`], [`sentence`], [`similar`], [`viewer`]: cancelling reads, a fixed hash,
//!   texts of others, typos, whose names a reader may see.

pub mod cancellation;
pub mod cause;
mod data;
pub mod effect;
pub mod escape;
pub mod manifest;
pub mod merge_patch;
mod named;
mod object_write;
mod objects;
mod published;
pub mod sentence;
pub mod time;
pub mod viewer;

pub use data::{collections, cow_index, cow_map, name, pages, similar, stable_hash};
pub use objects::{
    custom, duration, gang, group_status, naming, node, object, pod, priority_class, quantity, relations,
    requests, selector, storage, taint,
};

pub use cow_index::CowIndex;
pub use cow_map::CowMap;
pub use custom::{CustomKindRef, CustomObject};
pub use data::{Mirror, Slots, natural_order};
pub use gang::GangKey;
pub use name::Name;
pub use node::{Node, NodeIdx};
pub use object::{Object, ObjectKind};
pub use pages::{InPage, Pages};
pub use pod::{Pod, PodId, PodKey, PodSpec};
pub use prefetch_index::prefetch_index;
pub use published::Published;
pub use time::Now;
pub use viewer::Viewer;
