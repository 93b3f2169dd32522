//! Pods, nodes and what they are made of: compact, integer, without wire types.
//!
//! PURE. Nothing here knows how an object looked on the wire (that is `kubernetes::decode`) or what
//! the cluster currently holds (that is `cluster`). Reading order: names and collections, quantities
//! and requests, selectors, taints, then [`pod::Pod`] and [`node::Node`].

pub mod collections;
pub mod cow_map;
pub mod name;
pub mod node;
pub mod pages;
pub mod pod;
pub mod quantity;
pub mod requests;
pub mod selector;
pub mod taint;
pub mod time;

pub use cow_map::CowMap;
pub use name::Name;
pub use node::{Node, NodeIdx};
pub use pages::Pages;
pub use pod::{Pod, PodId, PodKey, PodSpec};
pub use time::Now;
