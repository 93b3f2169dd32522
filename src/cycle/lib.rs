//! The scheduler: takes inputs, plans units, orders effects, publishes snapshots.
//!
//! Start at [`Scheduler`], then `scheduler::turn` and `scheduler::schedule_one`, which a pod passes from the queue to its
//! Binding. PURE: it never waits, reads no clock and does no I/O; it knows no plugin by name, and not how anything is shown.
//!
//! - [`attempt`]: one attempt to find a node for one pod (run filters, run scores, select a node)
//! - [`scheduler`]: the one writer of all state, with its gangs ([`scheduler::gangs`])
//! - [`what_if`]: the same code on a copy, for questions

pub mod attempt;
pub mod scheduler;
pub mod what_if;

pub use attempt::node_result_cache::NodeResultCache;
pub use scheduler::{Registry, Scheduler, Snapshot, quarantine_message};
