//! One file per part of the state, as people read it: bodies of the REST API from a snapshot, nothing worked out anew.

pub(crate) mod debug_view;
pub(crate) mod node_views;
pub mod pending;
pub(crate) mod plugin_views;
pub(crate) mod preemption;
pub(crate) mod queue_view;
pub mod score_views;
pub(crate) mod wakeups;
