//! Preemption end to end: a sandbox, a scheduler connected to it, and what both show over HTTP while victims
//! terminate.
//!
//! The test advances the sandbox's clock, so victims terminate for as long as the test needs to observe them.

mod corners;
mod crowd;
mod faults;
mod views;
