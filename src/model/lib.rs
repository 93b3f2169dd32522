//! Kubernetes objects as the scheduler sees them: compact, with integer amounts, without wire types.
//!
//! PURE. This crate knows neither the wire format of an object (`kubernetes::decode` does) nor the contents of the
//! cluster (`cluster` has them). Start at [`pod::Pod`] and [`node::Node`]. In reading order:
//!
//! - [`name`], [`naming`], [`collections`], [`time`], [`duration`]: interned names, valid names, maps, clocks;
//! - [`quantity`], [`requests`]: amounts of resources, and what pods request;
//! - [`selector`], `selector_text`, [`taint`], [`relations`], [`storage`]: what decides where a pod fits;
//! - [`pod`], [`node`], [`object`]: the objects;
//! - [`gang`], [`group_status`]: gangs as declared, and the status of PodGroups;
//! - [`cause`], [`effect`]: why a node was refused, and the writes that a decision orders;
//! - [`pages`], [`cow_map`], `mirror`, `published`: containers that are cheap to publish;
//! - [`patience`], [`stable_hash`], [`escape`]: cancelling reads, a fixed hash, untrusted text.

pub mod cause;
pub mod collections;
pub mod cow_map;
pub mod duration;
pub mod effect;
pub mod escape;
pub mod gang;
pub mod group_status;
mod mirror;
pub mod name;
pub mod naming;
pub mod node;
pub mod object;
pub mod pages;
pub mod patience;
pub mod pod;
mod published;
pub mod quantity;
pub mod relations;
pub mod requests;
pub mod selector;
mod selector_text;
pub mod stable_hash;
pub mod storage;
pub mod taint;
pub mod time;

pub use cow_map::CowMap;
pub use gang::GangKey;
pub use mirror::Mirror;
pub use name::Name;
pub use node::{Node, NodeIdx};
pub use object::{Object, ObjectKind};
pub use pages::Pages;
pub use pod::{Pod, PodId, PodKey, PodSpec};
pub use published::Published;
pub use time::Now;
