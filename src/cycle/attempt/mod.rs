//! One attempt to find a node for one pod: run filters, run scores, select a node.
//!
//! Start at [`node_result_cache::NodeResultCache`]. The queue, effects and the consequences of a decision are not here.
//!
//! - [`node_result_cache`]: cached results of every node for the pods of one shape; catches up with changes
//! - `chain`: runs plugins over sets of nodes
//! - `changed_nodes`: the nodes of which results are made anew
//! - `alignment`: refuses nodes whose topology hints do not agree
//! - `global_plugins`: plugins that depend on more than one node and run at every attempt
//! - `scores`: the raw scores and totals of the feasible nodes, and the best of them
//! - [`search`]: selects the node
//! - `refusal`: says why there is none
//! - `nominations`: the two-pass filter for nominated pods
//! - `overrides`, `kept_overrides`: nodes that the pod sees without some pods, and what is kept of them
//! - [`question`]: all of this for one pod on a copy of a state
//! - `post_filter`: lets PostFilter search for victims
//! - `work`: counts what an attempt costs

pub(crate) mod alignment;
pub(crate) mod chain;
mod changed_nodes;
pub(crate) mod global_plugins;
pub(crate) mod kept_overrides;
pub mod node_result_cache;
pub(crate) mod nominations;
pub(crate) mod overrides;
pub(crate) mod post_filter;
pub mod question;
pub(crate) mod refusal;
pub mod reserve;
mod scores;
pub mod search;
pub(crate) mod work;
