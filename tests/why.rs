//! Explanations of refused pods are true: over random clusters, as users read them.
//!
//! Every explanation comes from the registered reads on a published snapshot. Its claims are checked against a
//! separate scheduler that is given the changed objects. `world` makes the changes with edits of its own, so that no
//! claim is checked with the code that made it.

#[path = "common/cluster.rs"]
mod cluster;
#[path = "common/driver.rs"]
mod driver;

#[path = "why/claims.rs"]
mod claims;
#[path = "why/world.rs"]
mod world;
