//! What would happen if: every question about a state, asked of a copy of it.
//!
//! Three ways, from the cheapest to the most general. [`exhaustive`] asks every filter about every node and keeps one word
//! of bits per node. [`question`] asks what a cycle would say of one pod, or of one pod and one node, as things are.
//! [`simulation`] applies edits ([`edit`]) to a scheduler of its own and runs the same code that schedules.
//!
//! *Invariant:* nothing of it is kept, and no decision reads it.

pub mod edit;
pub mod exhaustive;
pub mod question;
pub mod simulation;
