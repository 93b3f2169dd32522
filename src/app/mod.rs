//! Wiring: threads, the loop, the clock, metrics, logs, shutdown.
//!
//! EDGE. Nothing is decided here. [`instance::Instance`] is a running scheduler: a scheduling thread that
//! owns the state ([`core_loop`]), the edge tasks to the cluster, and the REST server. `run`, `demo` and
//! `replay` are what the commands of the same names do with it.

mod client;
pub mod clock;
pub mod core_loop;
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
