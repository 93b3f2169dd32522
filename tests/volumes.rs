//! The plugins around volumes, devices and features, against kube-scheduler's semantics.
//!
//! Golden tables say per case which objects there are and what a plugin says about a pod on every node
//! (`tests/data/volumes/*.txt`); next to them stand the way from the decision to bound volumes, and
//! properties over random histories.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "volumes/ask.rs"]
mod ask;
#[path = "volumes/binding.rs"]
mod binding;
#[path = "volumes/golden.rs"]
mod golden;
#[path = "volumes/limits.rs"]
mod limits;
#[path = "volumes/random.rs"]
mod random;
#[path = "volumes/wakes.rs"]
mod wakes;
#[path = "volumes/world.rs"]
mod world;
