//! One attempt at a unit: filter, score, choose.
//!
//! PURE. [`node_result_cache::NodeResultCache`] holds what is known about each node for one shape and catches up with what
//! changed; [`search`] chooses from it; [`scheduler::Scheduler`] is the one writer that takes inputs, plans
//! units, orders effects and publishes snapshots. The same code runs on a published snapshot for explanations
//! ([`question`]).

mod attempt;
mod best;
mod bind;
mod cache_by_shape;
mod chain;
pub mod exhaustive;
pub mod gangs;
mod inputs;
pub mod last_attempt;
mod leaving;
mod metering;
pub mod node_result_cache;
mod nominations;
mod post_filter;
mod pre_bind;
mod preempt;
pub mod question;
mod record;
mod record_events;
mod report;
mod restore;
pub mod scheduler;
mod scores;
pub mod search;
pub mod shadow;
pub mod simulation;
mod snapshot;
pub mod turn;
mod wakeups;
mod work;

pub use inputs::quarantine_message;
pub use node_result_cache::NodeResultCache;
pub use scheduler::Scheduler;
pub use snapshot::{Registry, Snapshot};
