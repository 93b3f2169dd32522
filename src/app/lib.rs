//! Wiring of the process: threads, scheduling loop, clock, metrics, log and shutdown.
//!
//! An I/O room. Nothing is decided here. Start with [`instance::Instance`], a running scheduler: the scheduling thread
//! that owns the state ([`core_loop`]), the I/O tasks to the cluster, and the REST server. `run` and `bench` implement the
//! commands of the same names.
//!
//! It knows no plugin: the registry is an argument, so a change in a plugin compiles none of this again.

pub mod access;
pub mod bench;
pub mod client;
pub mod clock;
pub mod consistency;
pub mod core_loop;
mod health;
pub mod instance;
pub mod log;
pub mod metrics;
pub mod object_watch;
pub mod progress;
pub mod quantiles;
pub mod rest;
pub mod run;
pub mod traces;
pub mod trends;
