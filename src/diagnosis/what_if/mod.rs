//! Questions that are worked out on a copy of a snapshot when somebody asks, in the words of the REST API.
//!
//! How a copy is asked is `pellucid_cycle::what_if`; here are the questions. [`simulate`]: what a user's edits would bring.
//! `refresh`: what a cycle would say of a waiting pod now. `requirements`: which filter fails which node, all of them;
//! [`nearest`](fn@nearest::nearest) orders nodes by that, `suggestions` searches changes that help, `feasibility` says whether
//! and how often a pod fits at all. `node_explain` asks from a node's side, `contrast` compares two nodes.

pub(crate) mod contrast;
pub(crate) mod feasibility;
pub(crate) mod nearest;
pub(crate) mod node_explain;
pub(crate) mod refresh;
pub(crate) mod requirements;
pub mod simulate;
pub(crate) mod suggestions;
