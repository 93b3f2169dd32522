//! The scheduler: applies inputs, plans units, orders effects and publishes snapshots.
//!
//! Start at [`Scheduler`], then follow a pod from the queue to its Binding: `scheduler::turn`,
//! `scheduler::schedule_one`. A *unit* is a pod or a gang group in the queue.
//!
//! *Invariant:* this crate never waits, reads no clock and does no I/O. It knows no plugin by name, and not how
//! anything is shown.
//!
//! - [`scheduler`]: the only writer of all state, with its gangs ([`scheduler::gangs`])
//! - [`attempt`]: one attempt to find a node for one pod (run filters, run scores, select a node)
//! - [`what_if`]: the same code on a copy of the state, to answer questions

pub mod attempt;
pub mod scheduler;
pub mod what_if;

pub use attempt::node_result_cache::NodeResultCache;
pub use scheduler::{Registry, Scheduler, Snapshot, quarantine_message};
