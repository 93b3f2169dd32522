//! What people read: verdicts in words, explanations, score tables, histories.
//!
//! PURE. The scheduler stores numbers and cause ids; text is made here, from a published snapshot, when
//! somebody asks. [`reads::reads`] lists every read as data; `http/` serves them.

mod contrast;
mod debug_view;
pub mod dump;
mod explain;
mod feasibility;
mod gang_reads;
pub mod gangs;
pub mod history;
mod meta;
mod nearest;
mod node_explain;
mod node_views;
pub mod pending;
mod plugin_views;
mod preemption;
mod queue_view;
pub mod reads;
mod refresh;
mod requirements;
pub mod score_views;
pub mod simulate;
mod snapshot_read;
mod suggestion_reads;
mod suggestions;
mod view_reads;
mod wakeups;

pub use explain::{TIE_RULE, summary};
pub use nearest::nearest;
pub use plugin_views::points;
