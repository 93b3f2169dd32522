//! What people read: published roots, verdicts in words, score tables, switches.
//!
//! PURE. The scheduler stores numbers and cause ids; text is made here, from a published root, when
//! somebody asks. [`reads::reads`] lists every read as data; `http/` serves them.

mod debug_view;
pub(crate) mod explain;
mod gang_reads;
pub mod gangs;
mod meta;
pub mod meter;
pub(crate) mod nearest;
mod node_views;
mod plugin_views;
mod preemption;
mod queue_view;
pub mod reads;
pub mod recorder;
pub mod root;
pub mod score_views;
pub mod switches;
mod wakeups;

pub use meta::rfc3339;
pub use plugin_views::points;
pub use root::Root;
