//! Preemption end to end: a sandbox, a scheduler connected to it, and what both show over HTTP while victims
//! terminate.
//!
//! The test advances the sandbox's clock, so victims terminate for as long as the test needs to observe them.

#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "common/client.rs"]
mod client;
#[path = "common/cluster.rs"]
mod cluster;
#[path = "preemption/corners.rs"]
mod corners;
#[path = "preemption/crowd.rs"]
mod crowd;
#[path = "common/driver.rs"]
mod driver;
#[path = "preemption/echoes.rs"]
mod echoes;
#[path = "preemption/faults.rs"]
mod faults;
#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "core/made.rs"]
mod made;
#[path = "common/running.rs"]
mod running;
#[path = "preemption/views.rs"]
mod views;
