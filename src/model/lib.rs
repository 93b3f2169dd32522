//! Pods, nodes and what they are made of: compact, integer, without wire types.
//!
//! PURE. Nothing here knows how an object looked on the wire (that is `kubernetes::decode`) or what
//! the cluster currently holds (that is `cluster`). Reading order: names and collections, quantities
//! and requests, selectors, taints, relations, volumes, then [`pod::Pod`], [`node::Node`] and the other
//! [`object::Object`]s.

pub mod cause;
mod data;
pub mod effect;
pub mod escape;
mod objects;
pub mod patience;
mod published;
pub mod time;

pub use data::{collections, cow_map, name, pages, stable_hash};
pub use objects::{
    duration, gang, group_status, naming, node, object, pod, quantity, relations, requests, selector,
    storage, taint,
};

pub use cow_map::CowMap;
pub use data::Mirror;
pub use gang::GangKey;
pub use name::Name;
pub use node::{Node, NodeIdx};
pub use object::{Object, ObjectKind};
pub use pages::Pages;
pub use pod::{Pod, PodId, PodKey, PodSpec};
pub use published::Published;
pub use time::Now;
