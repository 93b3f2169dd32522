//! The program: its commands, its configuration, the demo, and a scheduler that is connected to a sandbox.
//!
//! - `bench`: measuring, and what it leaves behind
//! - `command_lines`: help and bad input; `commands`: those that query a scheduler; `command_lists`: the same on a
//!   crowded cluster
//! - `config`: configuration files
//! - `consistency`: the state compared with the API server
//! - `demo`: the main use end to end
//! - `run`: binding, conditions, events, faults, shutdown; `shadow`: beside another scheduler
//! - `relations`, `volumes`: pods that are placed by other pods and by volumes
//! - `numa`: CPUs and NUMA nodes
//! - `health`: `/livez` and `/readyz`; `dashboards`: the metrics that dashboards and alerts name
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod command_lines;
mod command_lists;
mod commands;
mod config;
mod consistency;
mod dashboards;
mod demo;
mod devices;
mod health;
mod node_resources;
mod numa;
mod queues;
mod quotas;
mod relations;
mod reservations;
mod run;
mod shadow;
mod volumes;
