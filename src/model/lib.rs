//! Pods, nodes and what they are made of: compact, integer, without wire types.
//!
//! PURE. Nothing here knows how an object looked on the wire (that is `kubernetes::decode`) or what
//! the cluster currently holds (that is `cluster`). Reading order: names and collections, quantities
//! and requests, selectors, taints, relations, volumes, then [`pod::Pod`], [`node::Node`] and the other
//! [`object::Object`]s.

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
