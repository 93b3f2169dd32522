//! Questions that are answered on a copy of a snapshot on request, as bodies of the REST API.
//!
//! `pellucid_cycle::what_if` makes the copy and evaluates it. The questions are:
//! - [`simulate`]: what a user's edits would change
//! - `refresh`: what a cycle would decide about a pending pod now
//! - `suggestions`: changes that help
//! - `feasibility`: whether a pod fits at all, and how many copies do
//! - `node_explain`: which pending pods a node takes and refuses
//! - `compare_nodes`: one node compared with another

pub(crate) mod compare_nodes;
pub(crate) mod feasibility;
pub(crate) mod node_explain;
pub(crate) mod refresh;
pub mod simulate;
pub(crate) mod suggestions;
