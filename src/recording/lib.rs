//! What is recorded of decisions, and the switches that say how much.
//!
//! PURE. Below the cycle, which writes here: verdicts ([`decision`], [`gang_verdict`]), the flight recorder ([`flight`]),
//! score tables and refused nodes while a switch is on ([`recorder`], [`switches`]), and what recording costs ([`meter`]).
//! Numbers, names and shared values only: what people read is made by `diagnosis`, from a published state.

pub mod decision;
pub mod flight;
pub mod gang_verdict;
pub mod meter;
pub mod recorder;
mod rfc3339;
pub mod switches;

pub use decision::{Decision, Group, GroupMeasure, Outcome, Placement, Refusal, Verdict};
pub use gang_verdict::{GangOutcome, GangRefusal, GangShare, GangVerdict};
pub use rfc3339::rfc3339;
