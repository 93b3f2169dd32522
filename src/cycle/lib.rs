//! One attempt at a unit: filter, score, choose.
//!
//! PURE. [`rows::Rows`] holds what is known about each node for one shape and catches up with what
//! changed; [`search`] chooses from it; [`scheduler::Scheduler`] is the one writer that takes inputs, plans
//! units, orders effects and publishes snapshots. The same code runs on a published snapshot for explanations
//! ([`question`]).

mod attempt;
mod best;
mod bind;
mod chain;
mod chronicle;
pub mod exhaustive;
pub mod gangs;
mod inputs;
pub mod kept;
mod leaving;
mod metering;
mod nominations;
mod post_filter;
mod pre_bind;
mod preempt;
pub mod question;
mod record;
mod restore;
mod row_cache;
pub mod rows;
pub mod scheduler;
mod scores;
pub mod search;
pub mod shadow;
mod snapshot;
mod tell;
pub mod turn;
mod wakeups;
pub mod whatif;
mod work;

pub use inputs::quarantine_message;
pub use rows::Rows;
pub use scheduler::Scheduler;
pub use snapshot::{Registry, Snapshot};
