//! What people read: published roots, verdicts in words, score tables, switches.
//!
//! PURE. The scheduler stores numbers and cause ids; text is made here, from a published root, when
//! somebody asks. [`reads::reads`] lists every read as data; `http/` serves them.

mod contrast;
mod debug_view;
pub(crate) mod explain;
mod feasibility;
pub mod flight;
mod gang_reads;
pub mod gangs;
mod meta;
pub mod meter;
pub(crate) mod nearest;
mod node_explain;
mod node_views;
pub mod pending;
mod plugin_views;
mod preemption;
mod queue_view;
pub mod reads;
pub mod recorder;
mod refresh;
mod requirements;
pub mod root;
mod root_read;
pub mod score_views;
pub mod simulate;
pub mod snapshot;
mod suggestion_reads;
mod suggestions;
pub mod switches;
mod view_reads;
mod wakeups;

pub use meta::rfc3339;
pub use plugin_views::points;
pub use root::Root;
