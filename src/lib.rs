//! Pellucid, a Kubernetes scheduler whose every decision can be read over HTTP while it runs.
//!
//! The modules in reading order. *Pure* rooms are functions from values to values: no clock, no I/O,
//! no wire types. Effects live in the *edge* rooms. `tests/tidy.rs` checks the imports of each room.

pub mod app;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod cycle;
pub mod diagnosis;
pub mod framework;
pub mod http;
pub mod kubernetes;
pub mod model;
pub mod plugins;
pub mod queue;
pub mod replay;
pub mod sandbox;
