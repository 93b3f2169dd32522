//! Wiring of the process: threads, scheduling loop, clock, metrics, log and shutdown.
//!
//! An I/O room. Nothing is decided here. Start with [`instance::Instance`], a running scheduler: the scheduling thread
//! that owns the state ([`core_loop`]), the I/O tasks to the cluster, and the REST server. `run`, `demo` and `replay`
//! implement the commands of the same names on top of it.

mod client;
pub mod clock;
pub mod core_loop;
pub mod demo;
pub mod diagnosis_metrics;
pub mod dump;
mod effect_metrics;
pub mod flags;
mod gang_metrics;
mod health;
pub mod instance;
mod log_fields;
pub mod metrics;
mod pending_metrics;
pub mod progress;
pub mod quantiles;
pub mod replay;
pub mod replay_dump;
pub mod replay_gangs;
mod replay_stage;
mod replay_watch;
pub mod resource_metrics;
pub mod routes;
mod rows;
pub mod run;
mod simulate;
pub mod telemetry;
pub mod traces;
mod watch_metrics;
mod what_if;
mod what_if_names;
