//! What is told about refused pods is true: over random clusters, with the answers that people read.
//!
//! Every answer comes from the registered reads on a published snapshot. What it claims is checked against a scheduler
//! of its own that is fed the changed objects: `world` makes them, with edits of its own, so that nothing is
//! checked with the code that made the claim.

#[path = "common/cluster.rs"]
mod cluster;
#[path = "common/driver.rs"]
mod driver;

#[path = "why/claims.rs"]
mod claims;
#[path = "why/world.rs"]
mod world;
