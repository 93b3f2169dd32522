//! One attempt to find a node for one pod: run filters, run scores, select a node.
//!
//! [`node_result_cache::NodeResultCache`] holds what is known about each node for the pods of one shape and catches up with
//! what changed; `chain` runs the plugins over nodes; `global_plugins` runs those whose answers depend on more than one
//! node, at every attempt; `scores` adds up, `best` keeps the best node at hand; `search` selects the node or makes the
//! refusal. `nominations` is the two-pass filter, `post_filter` asks for victims, `cache_by_shape` keeps the caches, and
//! `work` counts what an attempt costs.
//!
//! Not here: the queue, effects, and what becomes of a decision.

mod best;
pub(crate) mod cache_by_shape;
pub(crate) mod chain;
pub(crate) mod global_plugins;
pub mod node_result_cache;
pub(crate) mod nominations;
pub(crate) mod post_filter;
mod scores;
pub mod search;
pub(crate) mod work;
