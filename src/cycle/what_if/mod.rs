//! What-if questions about a published state, answered on a copy of it.
//!
//! From the cheapest to the most general:
//!
//! - [`exhaustive`]: runs every filter on every node, and keeps one word of bits per node
//! - [`question`]: what a cycle would decide now about one pod, or about one pod and one node
//! - [`simulation`]: applies edits ([`edit`]) to a separate scheduler and runs the code that schedules
//!
//! *Invariant:* answers are not stored, and no decision reads them.

pub mod edit;
pub mod exhaustive;
mod line;
mod orders;
pub mod question;
mod quorum;
pub mod simulation;
mod waits;
mod writes;
