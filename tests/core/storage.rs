//! The plugins for volumes, devices and features, against kube-scheduler's semantics.
//!
//! Golden tables (`tests/data/volumes/*.txt`) list per case the existing objects and a plugin's result for a pod on
//! every node. Other modules test the way from the decision to bound volumes, and properties over random histories.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ask;
mod binding;
mod golden;
mod limits;
mod random;
mod wakes;
mod world;
