//! What people read: verdicts in words, explanations, score tables, histories.
//!
//! PURE. The scheduler stores numbers and cause ids; text is made here, from a published snapshot, when
//! somebody asks. [`reads::reads`] lists every read as data; `http/` serves them.

pub mod dump;
mod explain;
pub mod gangs;
pub mod history;
mod meta;
pub mod reads;
pub mod views;
pub mod what_if;

pub use explain::{TIE_RULE, summary};
pub use views::plugin_views::points;
pub use what_if::nearest::nearest;
