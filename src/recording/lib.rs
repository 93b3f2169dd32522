//! Records of decisions, and the switches that select what is recorded.
//!
//! PURE, and below the cycle, which writes here. Stores only numbers, names and shared values; `diagnosis` renders text
//! from a published snapshot. Start at [`Verdict`]. In reading order:
//!
//! - [`decision`], [`gang_verdict`]: verdicts about pods and gangs;
//! - [`flight`]: the flight recorder, which is always on;
//! - [`switches`]: run-time switches that enable more records;
//! - [`recorder`]: score tables and refused nodes, while a switch is on;
//! - [`meter`]: the cost of recording.

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
