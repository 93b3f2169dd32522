//! Wiring of the process: threads, scheduling loop, clock, metrics, log and shutdown.
//!
//! An I/O room. Nothing is decided here. Start with [`instance::Instance`], a running scheduler: the scheduling thread
//! that owns the state ([`core_loop`]), the I/O tasks to the cluster, and the REST server. `run`, `demo` and `replay`
//! implement the commands of the same names on top of it.

pub mod access;
pub mod bench;
mod client;
pub mod clock;
pub mod consistency;
pub mod core_loop;
mod definitions;
pub mod demo;
mod health;
pub mod instance;
pub mod log;
pub mod metrics;
pub mod progress;
pub mod replay;
pub mod rest;
pub mod run;
pub mod traces;
pub mod trends;
