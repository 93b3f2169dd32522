//! Pellucid, a Kubernetes scheduler whose every decision can be read over HTTP while it runs.
//!
//! The modules in reading order. *Pure* rooms are functions from values to values: no clock, no I/O,
//! no wire types. Effects live in the *edge* rooms. `tests/tidy.rs` checks the imports of each room.

// The pure rooms. (Blank lines keep the reading order; the formatter sorts neighbours.)

pub mod model;

pub mod cluster;

pub mod queue;

pub mod framework;

pub mod plugins;

pub mod recording;

pub mod cycle;

pub mod diagnosis;

pub mod config;

// The edge rooms.

pub mod kubernetes;

pub mod http;

pub mod sandbox;

pub mod replay;

pub mod app;

pub mod cli;
