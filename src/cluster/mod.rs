//! The state.
pub mod input;
