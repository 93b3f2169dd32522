//! What several plugins share, whichever crates they are in. No plugin is known here.
//!
//! - `describing` words what nodes do not fulfil;
//! - `koordinator` reads Koordinator's priority classes of pods;
//! - `listing` bounds the lists in endpoint responses;
//! - `loans` says who has how much of another's part;
//! - `scored` selects the resources and amounts that the resource scores use;
//! - `two` finds the amounts of two resources of a node, mostly CPU and memory;
//! - `weighted` is the weighted mean of them that LeastAllocated and MostAllocated score;
//! - `water_filling` shares an amount among claimants with guarantees, weights and requests;
//! - `testing` makes the small clusters of unit tests.

pub mod describing;
pub mod koordinator;
pub mod listing;
pub mod loans;
pub mod scored;
pub mod testing;
pub mod two;
pub mod water_filling;
pub mod weighted;
