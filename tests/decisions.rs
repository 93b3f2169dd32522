//! Decisions of the core, without an API server.

mod common;

mod core;
mod fuzz;
mod gangs;
mod laws;
mod preemption;
mod quotas;
mod why;
