//! Bodies of the REST API from a snapshot, one file per part of the state. Nothing is evaluated anew.

pub(crate) mod debug_view;
pub(crate) mod evictions;
pub(crate) mod node_views;
pub mod pending;
pub(crate) mod preemption;
mod preemption_verdict;
pub(crate) mod queue_view;
pub mod score_views;
pub(crate) mod shadow_view;
pub mod summary;
pub(crate) mod wakeups;
